//! Calls of a host and an application that one part of a connection carries out.

use bytes::Bytes;
use whimbrel_base::{Instant, Tick};
use whimbrel_recovery::cc::Algorithm;
use whimbrel_wire::{SeqNum, WindowSize};

use super::{
    BufferSize, Connection, Cork, FastSyn, KeepAlive, Remains, RouteMetrics, SocketOptions,
    WriteClosed,
};
use crate::{Context, RxSegment};

impl Connection {
    /// Bytes in the send buffer, acknowledged ones excluded.
    #[inline]
    pub fn send_queued(&self) -> u32 {
        self.transfer.tcb.send_queued()
    }

    /// Bytes that can be read.
    #[inline]
    pub fn unread(&self) -> u32 {
        self.transfer.tcb.unread()
    }

    /// The number of SYNs it took to open, as long as nothing else was sent again: then each counts as one.
    #[inline]
    pub fn syns_sent(&self) -> u32 {
        self.transfer.tcb.cold().syns_sent()
    }

    /// Bytes of it in the account of its shard.
    #[inline]
    pub fn accounted(&self) -> u32 {
        self.transfer.tcb.accounted()
    }

    /// Memory is short, and our SYN-ACK announced no more than this.
    #[inline]
    pub fn narrow(&mut self, window: WindowSize) {
        self.transfer.tcb.narrow(window);
    }

    /// Sends FIN after what was written; reading goes on (RFC 9293 3.10.4).
    #[inline]
    pub fn shutdown(&mut self, cx: &mut Context) {
        self.transfer.shutdown(cx);
    }

    /// Returns the part of this connection that a TIME-WAIT record keeps.
    #[inline]
    pub fn remains(&self) -> Remains {
        self.transfer.remains()
    }

    /// True if it has options of its own, or state that few connections have.
    #[inline]
    pub fn has_cold_record(&self) -> bool {
        self.transfer.tcb.counts.has_record()
    }

    /// Returns the ACE field of acknowledgments (RFC 9768 3.2.2), 0 to 7, if both SYNs agreed upon accurate feedback.
    #[inline]
    pub fn ace(&self) -> Option<u8> {
        self.transfer.tcb.cold().marks().map(|marks| marks.ace())
    }

    /// The SYN is to bring this. To be called before anything is sent.
    #[inline]
    pub fn open_fast(&mut self, cx: &mut Context, syn: FastSyn) {
        self.transfer.tcb.open_fast(cx, syn);
    }

    /// The number of bytes of text the SYN has room for, before it is sent; none without a cookie
    /// (RFC 7413 4.2.2: "default 536 bytes" or what the server announced).
    #[inline]
    pub fn syn_room(&self) -> u32 {
        self.transfer.tcb.syn_room()
    }

    /// The text of the SYN, as much of it as there is room for: the application can read it.
    #[inline]
    pub fn take_syn_text(&mut self, cx: &mut Context, syn: &RxSegment<'_>) {
        self.transfer.tcb.take_syn_text(cx, syn);
    }

    /// The connection's path leads over a route of which this is known. To be called before anything is
    /// sent or set.
    #[inline]
    pub fn take_metrics(&mut self, cx: &Context, metrics: &RouteMetrics) {
        self.transfer.tcb.take_metrics(cx, metrics);
    }

    /// Takes what was set on its listener, the window that the SYN-ACK announced included.
    #[inline]
    pub fn inherit(&mut self, cx: &mut Context, options: &SocketOptions) {
        self.transfer.inherit(cx, options);
    }

    /// Takes the place of a connection of ours in TIME-WAIT, whose TS.Recent was `recent`: what is
    /// older than that is not for this one (RFC 7323 B.2).
    #[inline]
    pub fn reuse_time_wait(&mut self, recent: u32) {
        self.transfer.reuse_time_wait(recent);
    }

    /// Takes all of `options`; the MSS only if our SYN is not out yet.
    #[inline]
    pub fn set_options(&mut self, cx: &mut Context, options: &SocketOptions) {
        self.transfer.set_options(cx, options);
    }

    /// True if there is something to send now.
    #[inline]
    pub fn wants_transmit(&self, max_text: u32) -> bool {
        self.transfer.tcb.wants_transmit(max_text)
    }

    /// True if what is to be sent next is a SYN, or SYN-ACK in a simultaneous open.
    #[inline]
    pub fn syn_is_next(&self) -> bool {
        self.transfer.tcb.syn_is_next()
    }

    /// True if there may be something to send: whatever [`Connection::wants_transmit`] finds is
    /// found here by a few comparisons, for asking after each call. What windows or Nagle's
    /// algorithm hold back is found as well; [`Connection::poll_transmit`] judges that, once.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        self.transfer.tcb.may_transmit()
    }

    /// True if there may be more to send after a segment that has announced the window: there is no
    /// news of that; and if text waits for its time, so that a clock is asked for it.
    #[inline]
    pub fn may_transmit_more(&self) -> bool {
        self.transfer.tcb.may_transmit_more()
    }

    /// True if text waits for its time.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.transfer.tcb.sender.is_paced()
    }

    /// Time at which text may leave again that waits for it.
    pub fn paced_until(&self) -> Instant {
        self.transfer.tcb.paced_until()
    }

    /// Ends the wait of text for its time, if that has come.
    pub fn end_pacing_wait(&mut self, now: Instant) {
        self.transfer.tcb.end_pacing_wait(now);
    }

    /// TSval now; shown if timestamps were negotiated.
    #[inline]
    pub fn tsval(&self, now: Tick) -> u32 {
        self.transfer.tsval(now)
    }

    /// Holds back segments that are not full, or lets them go.
    #[inline]
    pub fn set_cork(&mut self, cx: &Context, cork: Cork) {
        self.transfer.set_cork(cx, cork);
    }

    /// Probes the connection when it is silent, or stops to.
    #[inline]
    pub fn set_keep_alive(&mut self, cx: &Context, keep_alive: KeepAlive) {
        self.transfer.set_keep_alive(cx, keep_alive);
    }

    /// From now on this algorithm sets the congestion window, beginning with what it is.
    #[inline]
    pub fn set_congestion_control(&mut self, algorithm: Algorithm) {
        self.transfer.tcb.set_congestion_control(algorithm);
    }

    /// The number of bytes may wait to be acknowledged. What is there beyond a lesser size stays.
    #[inline]
    pub fn set_send_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        self.transfer.tcb.set_send_size(cx, size);
    }

    /// Sets how many bytes may wait to be read, 1 GiB at most (RFC 7323 2.3: more cannot be announced). A
    /// window that was announced is not taken back; before the SYN was sent, the window scale follows.
    /// A size that was rounded up to full segments when their size became known stays so. Another size
    /// is taken unrounded.
    #[inline]
    pub fn set_recv_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        self.transfer.tcb.set_recv_size(cx, size);
    }

    /// Bytes to be read up to the end of the peer's urgent data, if any of it is still to come.
    #[inline]
    pub fn urgent_mark(&self) -> Option<u32> {
        self.transfer.tcb.urgent_mark()
    }

    /// Bytes of text that begin at `seq` and are taken as they come: none unless that is RCV.NXT, nothing
    /// is held beyond it, and both sides may send.
    #[inline]
    pub fn room_in_order(&self, seq: SeqNum) -> u32 {
        self.transfer.tcb.room_in_order(seq)
    }

    /// Returns the text that can be read, piece by piece; it stays unread.
    #[inline]
    pub fn peek(&self) -> impl Iterator<Item = &[u8]> {
        self.transfer.tcb.peek()
    }

    /// Takes from the front of `data` what there is room for. Less than all of it: a
    /// [`Signals::WRITABLE`](super::Signals::WRITABLE) follows.
    #[inline]
    pub fn write(&mut self, cx: &mut Context, data: &mut Bytes) -> Result<usize, WriteClosed> {
        self.transfer.write(cx, data)
    }

    /// Takes all of `data`, whatever room there is: what was promised to an application that closes the
    /// connection now, and that it cannot wait with.
    #[inline]
    pub fn write_whole(&mut self, cx: &mut Context, data: Bytes) -> Result<(), WriteClosed> {
        self.transfer.write_whole(cx, data)
    }

    /// Bytes of send buffer that are free.
    #[inline]
    pub fn send_room(&self) -> u32 {
        self.transfer.tcb.send_room()
    }

    /// Takes from the front of `data` what there is room for, as [`Connection::write`] does, and
    /// marks the stream up to its end as urgent. It stays in the stream: segments announce where
    /// it ends until the peer has acknowledged all of it.
    #[inline]
    pub fn write_urgent(
        &mut self,
        cx: &mut Context,
        data: &mut Bytes,
    ) -> Result<usize, WriteClosed> {
        self.transfer.write_urgent(cx, data)
    }

    /// Probes the connection when it is silent (`SO_KEEPALIVE`).
    #[inline]
    pub fn start_keep_alive(&mut self, cx: &Context) {
        self.transfer.start_keep_alive(cx);
    }
}
