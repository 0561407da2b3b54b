//! Text in a SYN (RFC 7413), ours or the peer's, as the sequence spaces and buffers have it.

use whimbrel_base::cold_path;
use whimbrel_base::packet::Slices;
use whimbrel_wire::WindowScale;
use whimbrel_wire::tcp::{FastOpen, TcpFlags, TcpOptions};

use crate::conn::tcb::Tcb;
use crate::conn::{FastSyn, Flags, Signals};
use crate::{Context, RxSegment};

impl Tcb {
    /// The SYN is to bring this. To be called before anything is sent.
    pub(in crate::conn) fn open_fast(&mut self, cx: &mut Context, syn: FastSyn) {
        if self.is_before_syn() {
            self.flags.set(Flags::FAST_OPEN);
            self.buffers(cx).fast_syn = Some(syn);
        }
    }

    /// The number of bytes of text the SYN has room for, before it is sent; none without a cookie
    /// (RFC 7413 4.2.2: "default 536 bytes" or what the server announced).
    pub(in crate::conn) fn syn_room(&self) -> u32 {
        let syn = self.buffers.as_ref().and_then(|buffers| buffers.fast_syn);
        let Some(syn) = syn.filter(|syn| !syn.option.is_request() && self.is_before_syn()) else {
            return 0;
        };
        // As Linux: whatever the options take, there is room for them.
        u32::from(syn.mss.get().min(self.sender.mss())).saturating_sub(TcpOptions::MAX_LEN as u32)
    }

    /// The option of the SYN that is made, and its text. The first SYN alone has either: a middlebox
    /// may have swallowed it for that (RFC 7413 4.2.2).
    #[cold]
    pub(in crate::conn) fn take_fast_syn(
        &mut self,
        syn: FastSyn,
        slices: &mut Slices,
    ) -> Option<FastOpen> {
        let first = self.sender.is_idle();
        let room = self.syn_room();
        let buffers = self.buffers.as_mut()?;
        buffers.fast_syn = None;
        if !first {
            return None;
        }
        // A SYN has no urgent pointer: what is urgent waits for a segment that has one.
        if room > 0 && buffers.send.text.urgent().is_none() {
            let text = &mut buffers.send.text;
            text.slice(0, room.min(text.len()), slices);
        }
        if slices.bytes() > 0 {
            self.flags.set(Flags::SYN_DATA);
        }
        Some(syn.option)
    }

    /// Our SYN was answered. Text of it that was not acknowledged goes out at once.
    // RFC 7413 4.2.2: the client should send unacknowledged data again with the handshake's last
    // segment. It says nothing of congestion.
    pub(in crate::conn) fn on_syn_text_judged(&mut self) {
        if !self.sender.is_idle() {
            cold_path();
            self.flags.clear(Flags::SYN_DATA);
            let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.sender.on_syn_text_refused(queue);
        }
    }

    /// The text of the SYN, as much of it as there is room for: the application can read it.
    pub(in crate::conn) fn take_syn_text(&mut self, cx: &mut Context, syn: &RxSegment<'_>) {
        self.counts.on_segment(syn, cx.tick);
        let take = syn.payload.len().min(self.receiver.seq().wnd());
        if take > 0 {
            let buffers = self.buffers(cx);
            buffers.unread_since = cx.tick;
            let advance = buffers.recv.append(&mut cx.pool.chunks, syn.payload, 0, take);
            self.receiver.advance(advance);
            self.counts.on_text(advance);
            self.flags.set(Flags::SYN_DATA);
            self.signals.raise(Signals::READABLE);
        }
    }

    /// True if a segment is the SYN that the connection began with, come again.
    pub(in crate::conn) fn is_first_syn_again(&self, seg: &RxSegment<'_>) -> bool {
        let others = TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN;
        let flags = seg.header.flags;
        // No window update came since: SND.WL1 is IRS.
        self.flags.has(Flags::EARLY)
            && flags.is_syn()
            && !flags.intersects(others)
            && seg.header.seq == self.sender.seq().wl1
    }

    /// It did: the SYN-ACK was lost or is late. Options that the SYN no longer has are withdrawn, as
    /// those of a half-open entry are.
    pub(in crate::conn) fn on_first_syn_again(&mut self, seg: &RxSegment<'_>) {
        let options = seg.header.options.whole();
        if options.timestamps.is_none() {
            self.flags.clear(Flags::TIMESTAMPS);
        }
        if !options.sack_permitted {
            self.flags.clear(Flags::SACK);
        }
        if options.window_scale.is_none() {
            self.sender.set_scale(WindowScale::ZERO);
            self.receiver.withdraw_scale();
        }
        if self.flags.has(Flags::ECN) {
            self.negotiate_ecn(seg);
        }
        self.sender.retransmit();
    }
}
