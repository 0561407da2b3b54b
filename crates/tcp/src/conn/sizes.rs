//! How large a connection's buffers are: what its application asks for, what the route says, and what
//! the path needs.

use whimbrel_recovery::cc::{INITIAL_SEGMENTS, initial_cwnd};

use super::{BufferSize, Connection, Flags, SizeRange, State};
use crate::budget::Pressure;
use crate::recv::{RoundTripEnd, recv_scale};
use crate::{Context, RxSegment, Tunables};

/// The sizes in force.
impl Connection {
    /// What the receive buffer may come to be.
    pub(super) fn recv_range(&self, tunables: &Tunables) -> SizeRange {
        match self.stats.apart.as_deref() {
            Some(apart) => apart.recv_size.recv_range(self.recv_pipe(tunables), tunables),
            None => BufferSize::Auto.recv_range(0, tunables),
        }
    }

    /// What the send buffer may be now: while memory is short no more than it is, and when it is shorter
    /// the floor, or what the path takes if that is less. One of an exact size has that.
    #[inline]
    pub(super) fn send_range(&self, cx: &Context) -> SizeRange {
        let range = match self.stats.apart.as_deref() {
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
    pub(super) fn update_send_size(&mut self, cx: &Context) {
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

    /// How many octets may wait to be acknowledged. What is there beyond a lesser size stays.
    pub fn set_send_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        let size = size.into();
        if self.asked_sizes().0 != size {
            self.apart().send_size = size;
            self.update_send_size(cx);
            self.tell_room(cx);
        }
    }

    /// How many octets may wait to be read, 1 GiB at most (RFC 7323 2.3: more cannot be announced). A
    /// window that was announced is not taken back; before the SYN was sent, the window scale follows.
    /// What was rounded up to full segments when their size became known stays so; another size is
    /// taken as it is.
    pub fn set_recv_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        let size = size.into();
        if self.asked_sizes().1 != size {
            let before = self.recv_range(&cx.tunables);
            self.apart().recv_size = size;
            self.update_recv_size(cx, before);
        }
    }

    /// The receive buffer has been `before`; it is what was asked for since, and what it grew to stays
    /// as far as that admits.
    pub(super) fn update_recv_size(&mut self, cx: &Context, before: SizeRange) {
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
    pub(super) fn offer_scale(&mut self, cx: &Context) {
        if self.is_before_syn() {
            let most = self.asked_sizes().1.scale_limit(&cx.tunables).max(self.receiver.size());
            self.receiver.set_scale(recv_scale(&cx.tunables, most.min(self.window_clamp())));
        }
    }

    /// What the application asked for: send and receive buffer.
    pub(super) fn asked_sizes(&self) -> (BufferSize, BufferSize) {
        self.stats.apart.as_deref().map_or_else(Default::default, |it| (it.send_size, it.recv_size))
    }
}

/// Dynamic right-sizing: the receive buffer follows what the application reads.
impl Connection {
    /// Text in order arrived, and as much as an eighth of the buffer since the round trip under way
    /// began: if that is over, the buffer may grow.
    #[inline(never)]
    pub(super) fn right_size(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let stamps = self.flags.has(Flags::TIMESTAMPS).then_some(seg.header.options.timestamps);
        let echo = stamps.flatten().map(|stamps| stamps.ecr);
        let trip = self.judge_trip(cx, echo);
        let unread = self.unread();
        let stats = &mut *self.stats;
        let read = (stats.tally.bytes_received as u32).wrapping_sub(unread);
        let mss = u32::from(self.sender.mss());
        let Some(needed) = stats.sizing.on_text(read, self.receiver.size(), mss, trip) else {
            return;
        };
        if needed > self.receiver.size() {
            self.grow(cx, needed);
        }
    }

    /// Whether the round trip under way is over. Timestamps tell of it: what echoes one that was sent
    /// since it began is an answer. Their clock has milliseconds; below that, and without them, the
    /// round trip counts that was measured on the way out, by the handshake if by nothing else.
    fn judge_trip(&self, cx: &Context, echo: Option<u32>) -> RoundTripEnd {
        let measured = self.sender.rtt().srtt();
        let measured = measured.map(|srtt| srtt.as_micros() as u32);
        match (echo, measured) {
            (Some(echo), None) => RoundTripEnd::Echo { now: self.tsval(cx.tick), echo },
            (Some(echo), Some(rtt)) if rtt > FINE => {
                RoundTripEnd::Echo { now: self.tsval(cx.tick), echo }
            }
            (_, rtt) => RoundTripEnd::Clock { now: cx.now.as_micros() as u32, rtt },
        }
    }

    /// The path brings more than the buffer lets it.
    fn grow(&mut self, cx: &mut Context, needed: u32) {
        let range = self.recv_range(&cx.tunables);
        let most = range.most.min(self.window_clamp()).min(1 << 30);
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
    pub(super) fn give_up_growth(&mut self, cx: &mut Context) {
        let floor = self.in_full_segments(self.recv_range(&cx.tunables).floor, &cx.tunables);
        if self.receiver.size() > floor {
            cx.counters.recv_buffers_shrunk += 1;
            self.receiver.set_size(floor);
        }
    }
}

/// Microseconds: what a clock of milliseconds says nothing of.
const FINE: u32 = 4_000;
