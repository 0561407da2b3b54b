//! SYNs that arrive, and the end of a handshake.

use whimbrel_wire::tcp::Timestamps;

use crate::conn::transfer::Transfer;
use crate::conn::{Flags, Signals, State};
use crate::{Context, RxSegment};

impl Transfer {
    /// Takes the place of a connection of ours in TIME-WAIT, whose TS.Recent was `recent`: what is
    /// older than that is not for this one (RFC 7323 B.2).
    pub(in crate::conn) fn reuse_time_wait(&mut self, cx: &Context, recent: u32) {
        self.tcb.flags.set(Flags::REUSES);
        self.stamps.recent = recent;
        self.stamps.recent_at = cx.tick;
    }

    /// True if a segment bears a timestamp older than the former connection's last.
    pub(in crate::conn) fn is_of_former_connection(&self, timestamps: Option<Timestamps>) -> bool {
        let recent = self.tcb.flags.has(Flags::REUSES).then_some(self.stamps.recent);
        let older =
            |(recent, stamps): (u32, Timestamps)| stamps.val.wrapping_sub(recent).cast_signed() < 0;
        recent.zip(timestamps).is_some_and(older)
    }

    /// Takes the peer's SYN: its number, and the options that both sides want.
    pub(in crate::conn) fn take_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let header = &seg.header;
        let irs = header.seq;
        self.tcb.receiver.begin(irs, self.tcb.unscaled_window());
        self.tcb.sender.on_syn(irs, header.window);
        self.negotiate(cx, &header.options);
        if self.tcb.flags.has(Flags::ECN) {
            self.tcb.negotiate_ecn(seg);
        }
    }

    /// Both SYNs are acknowledged.
    pub(in crate::conn) fn establish(&mut self) {
        self.tcb.state =
            if self.tcb.sender.fin_queued() { State::FinWait1 } else { State::Established };
        if !self.tcb.is_early() {
            self.tcb.signals.raise(Signals::CONNECTED);
        }
        self.tcb.flags.clear(Flags::FAST_OPEN);
        self.timers.stop_sender();
        self.tcb.sender.on_established();
    }
}
