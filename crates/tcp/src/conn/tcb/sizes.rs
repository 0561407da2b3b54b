//! The sizes of a connection's buffers: what its application asks for, what the route says, and what
//! the path needs.

use whimbrel_recovery::cc::{INITIAL_SEGMENTS, initial_cwnd};

use crate::budget::Pressure;
use crate::conn::stamps::TIMESTAMP_BYTES;
use crate::conn::tcb::Tcb;
use crate::conn::{BufferSize, Flags, SizeRange, State};
use crate::recv::recv_scale;
use crate::tunables::ReceiveWindow;
use crate::{Context, Tunables};

impl Tcb {
    /// The route's metric of the receive buffer, bytes; 0: none.
    pub(in crate::conn) fn recv_pipe(&self, tunables: &Tunables) -> u32 {
        let mss = self.receiver.advertised_mss();
        self.cold().record().map_or(0, |apart| tunables.recv_pipe(&apart.metrics, mss))
    }

    /// A receive buffer of `bytes`, rounded up to whole segments if that is the rule, and it holds
    /// more than one. No buffer becomes larger by that than any may be.
    #[inline]
    pub(in crate::conn) fn in_full_segments(&self, bytes: u32, tunables: &Tunables) -> u32 {
        let options = if self.flags.has(Flags::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        let full = u32::from(self.sender.mss()) + u32::from(options);
        if tunables.recv_window != ReceiveWindow::FullSegments || bytes <= full {
            return bytes;
        }
        round_up(bytes, full, tunables.recv_buffer_max)
    }

    /// The sizes that the receive buffer may have.
    pub(in crate::conn) fn recv_range(&self, tunables: &Tunables) -> SizeRange {
        match self.cold().record() {
            Some(apart) => apart.recv_size.recv_range(self.recv_pipe(tunables), tunables),
            None => BufferSize::Auto.recv_range(0, tunables),
        }
    }

    /// The sizes that the send buffer may have now: while memory is short no more than it is, and when it is shorter
    /// the floor, or what the path takes if that is less. One of an exact size has that.
    #[inline]
    fn send_range(&self, cx: &Context) -> SizeRange {
        let range = match self.cold().record() {
            Some(apart) => {
                let pipe = apart.metrics.sendpipe.unwrap_or(0);
                apart.send_size.send_range(pipe, &cx.tunables)
            }
            None => BufferSize::Auto.send_range(0, &cx.tunables),
        };
        if cx.pool.budget.pressure() == Pressure::None || range.floor == range.most {
            return range;
        }
        self.short_send_range(cx, range)
    }

    /// The send buffer has the size that the path needs now.
    #[inline]
    pub(in crate::conn) fn update_send_size(&mut self, cx: &Context) {
        let (range, queue) = (self.send_range(cx), self.buffers.as_deref());
        self.sender.update_size(range, queue.map(|buffers| &buffers.send));
    }

    #[cold]
    fn short_send_range(&self, cx: &Context, range: SizeRange) -> SizeRange {
        let SizeRange { floor, most } = range;
        if cx.pool.budget.pressure() == Pressure::High {
            return SizeRange { floor, most: self.sender.size().clamp(floor, most) };
        }
        // Whose peer takes nothing would fill its floor, and with many of them nothing were left.
        let least = initial_cwnd(self.sender.mss().into(), INITIAL_SEGMENTS);
        SizeRange { floor: least.min(floor), most: floor }
    }

    /// Sets how many bytes may wait to be read, 1 GiB at most (RFC 7323 2.3: more cannot be announced). A
    /// window that was announced is not taken back; before the SYN was sent, the window scale follows.
    /// A size that was rounded up to full segments when their size became known stays so. Another size
    /// is taken unrounded.
    pub(in crate::conn) fn set_recv_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        let size = size.into();
        if self.cold().asked_sizes().1 != size {
            let before = self.recv_range(&cx.tunables);
            self.cold_mut().recv_size = size;
            self.update_recv_size(cx, before);
        }
    }

    /// The receive buffer has been `before`; it is what was asked for since, and what it grew to stays
    /// as far as that admits.
    pub(in crate::conn) fn update_recv_size(&mut self, cx: &Context, before: SizeRange) {
        const MOST: u32 = 1 << 30;
        let range = self.recv_range(&cx.tunables);
        let (floor, most) = (range.floor.min(MOST), range.most.min(MOST));
        let is_known = self.state != State::SynSent;
        if is_known && self.in_full_segments(floor, &cx.tunables) == self.receiver.size() {
            return;
        }
        let grown = self.receiver.size() > self.in_full_segments(before.floor, &cx.tunables);
        let size = if grown { self.receiver.size().clamp(floor, most) } else { floor };
        self.receiver.set_size(size);
        self.offer_scale(cx);
    }

    /// Before our SYN: the scale that lets the largest window of this connection be announced.
    pub(in crate::conn) fn offer_scale(&mut self, cx: &Context) {
        if self.is_before_syn() {
            let most =
                self.cold().asked_sizes().1.scale_limit(&cx.tunables).max(self.receiver.size());
            self.receiver.set_scale(recv_scale(&cx.tunables, most.min(self.cold().window_clamp())));
        }
    }

    /// The path brings more than the buffer lets it.
    pub(in crate::conn) fn grow(&mut self, cx: &mut Context, needed: u32) {
        let range = self.recv_range(&cx.tunables);
        let most = range.most.min(self.cold().window_clamp()).min(1 << 30);
        let size = self.in_full_segments(needed.min(most), &cx.tunables);
        if size <= self.receiver.size() {
            return;
        }
        if cx.pool.budget.pressure() > Pressure::None {
            cx.counters.recv_buffers_held += 1;
            return;
        }
        cx.counters.recv_buffers_grown += 1;
        self.receiver.grow(size);
    }

    /// Memory is short: of what the receive buffer grew by, the rest is given up. What was announced
    /// stays.
    #[cold]
    pub(in crate::conn) fn give_up_growth(&mut self, cx: &mut Context) {
        let floor = self.in_full_segments(self.recv_range(&cx.tunables).floor, &cx.tunables);
        if self.receiver.size() > floor {
            cx.counters.recv_buffers_shrunk += 1;
            self.receiver.set_size(floor);
        }
    }
}

/// So many bytes in segments of `full`, but no more than `most` if it need not be.
// Out of line: of a usual receive buffer nothing is rounded.
#[inline(never)]
fn round_up(bytes: u32, full: u32, most: u32) -> u32 {
    let rounded = bytes.div_ceil(full).saturating_mul(full);
    rounded.min(most).max(bytes)
}
