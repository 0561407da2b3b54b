//! Agreement of both SYNs: what ours offers, and what comes of the peer's.

use whimbrel_wire::tcp::{OptionsView, Timestamps};
use whimbrel_wire::{Mss, WindowScale};

use crate::conn::transfer::Transfer;
use crate::conn::{Flags, Handshake, Signals, State, SynOptions};
use crate::tunables::MtuProbing;
use crate::{Context, RxSegment};

impl Transfer {
    /// The options of our SYN or SYN-ACK other than timestamps and Fast Open.
    #[inline]
    pub(in crate::conn) fn offered(&self, cx: &Context) -> SynOptions {
        let (scaling, sack_permitted) = if self.tcb.state == State::SynReceived {
            (self.tcb.scaling(), self.tcb.flags.has(Flags::SACK))
        } else {
            (cx.tunables.window_scaling, cx.tunables.sack)
        };
        SynOptions {
            mss: Mss::new(self.tcb.receiver.advertised_mss()),
            window_scale: scaling.then_some(self.tcb.receiver.scale()),
            sack_permitted,
            fast_open: None,
        }
    }

    /// Takes the values that both SYNs agreed upon.
    #[inline(always)]
    pub(in crate::conn) fn agree(&mut self, cx: &Context, handshake: &Handshake) {
        if let Some((send_scale, recv_scale)) = handshake.scales {
            self.tcb.sender.set_scale(send_scale);
            self.tcb.receiver.set_scale(recv_scale);
        }
        if let Some(recent) = handshake.ts_recent {
            self.tcb.flags.set(Flags::TIMESTAMPS);
            self.stamps.recent = recent;
        }
        if handshake.sack {
            self.tcb.flags.set(Flags::SACK);
        }
        self.tcb.agree_mss(handshake.peer_mss, &cx.tunables);
    }

    /// Takes the options of the peer's SYN that both sides want.
    fn negotiate(&mut self, cx: &mut Context, options: &OptionsView<'_>) {
        let opening = options.opening();
        match opening.window_scale.filter(|_| cx.tunables.window_scaling) {
            Some(scale) => self.tcb.sender.set_scale(scale),
            None => self.tcb.receiver.set_scale(WindowScale::ZERO),
        }
        match options.timestamps.filter(|_| self.tcb.flags.has(Flags::TIMESTAMPS)) {
            Some(stamps) => {
                self.stamps.recent = stamps.val;
            }
            None => self.tcb.flags.clear(Flags::TIMESTAMPS),
        }
        if opening.sack_permitted && cx.tunables.sack {
            self.tcb.flags.set(Flags::SACK);
        }
        let default = cx.tunables.default_mss(&self.tcb.ends.remote);
        self.tcb.agree_mss(opening.mss.unwrap_or(default), &cx.tunables);
        if cx.tunables.mtu_probing == MtuProbing::Always {
            self.begin_mtu_search(cx);
        }
        self.tcb.apply_window_metrics();
    }

    /// Takes the place of a connection of ours in TIME-WAIT, whose TS.Recent was `recent`: what is
    /// older than that is not for this one (RFC 7323 B.2).
    pub(in crate::conn) fn reuse_time_wait(&mut self, recent: u32) {
        self.tcb.flags.set(Flags::REUSES);
        self.stamps.recent = recent;
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
