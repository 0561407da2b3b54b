//! The receiving half of a connection: which numbers it takes, what it promises to take, and which
//! acknowledgments it owes. What arrived stands in the [`RecvBuffer`](super::RecvBuffer), which is there
//! only while something is in it.

use whimbrel_wire::{RawWindow, SeqNum, WindowScale, WindowSize};

use super::{RecvSequence, Text};
use crate::tunables::ReceiveWindow;
use crate::{RxSegment, Tunables};

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    seq: RecvSequence,
    /// Bytes that may wait to be read.
    size: u32,
    /// The MSS that we announce, bytes of a segment's text and options.
    advertised_mss: u16,
    /// Segments received and not acknowledged.
    unacked_segs: u16,
    /// Acknowledgments to be sent now: more than one only where duplicates must be counted.
    acks_owed: u8,
    /// The scale of our window fields.
    scale: WindowScale,
    /// The peer's FIN was taken: RCV.NXT is beyond it.
    fin_received: bool,
    /// The buffer became smaller than what had been announced, or the field's unit did.
    overpromised: bool,
}

/// Bounds of the window other than the receiver's own size and the window field.
#[derive(Clone, Copy, Debug)]
pub struct WindowBounds {
    /// Bytes in order that are not read yet.
    pub unread: u32,
    /// The most bytes that application and memory let us announce; `u32::MAX` without a limit.
    pub most: u32,
    /// True if memory is short, and this connection gets little.
    pub is_memory_limited: bool,
    /// Bytes of text in a full segment.
    pub mss: u32,
}

/// The beginning of a connection.
impl Receiver {
    /// One that knows no number of the peer's, with a buffer of `size` bytes; announces `mss`.
    pub fn new(size: u32, mss: u16) -> Self {
        Self {
            seq: RecvSequence::new(SeqNum::new(0), WindowSize::default()),
            size,
            advertised_mss: mss,
            unacked_segs: 0,
            acks_owed: 0,
            scale: WindowScale::ZERO,
            fin_received: false,
            overpromised: false,
        }
    }

    /// The peer's SYN has the number `irs`; our SYN announced `window`, or ours with its ACK will.
    pub fn begin(&mut self, irs: SeqNum, window: WindowSize) {
        self.seq = RecvSequence::new(irs + 1, window);
    }

    /// Takes `window` as announced by the SYN-ACK: it stays promised (RFC 9293 3.8.6).
    pub fn set_first_window(&mut self, window: WindowSize) {
        self.seq.edge = self.seq.nxt + window.get();
    }

    /// Our window fields are scaled by `scale`: offered on the SYN, or agreed upon.
    pub const fn set_scale(&mut self, scale: WindowScale) {
        self.scale = scale;
    }

    /// The peer no longer offers a scale. A window that was rounded up to a unit of the former may be
    /// beyond the buffer by less.
    pub const fn withdraw_scale(&mut self) {
        self.scale = WindowScale::ZERO;
        self.overpromised = true;
    }

    /// Announces no more than `most` bytes as MSS.
    pub fn limit_mss(&mut self, most: u16) {
        self.advertised_mss = self.advertised_mss.min(most);
    }

    /// From now on `size` bytes may wait to be read. A window that was announced is not taken back.
    pub const fn set_size(&mut self, size: u32) {
        if size < self.size {
            // RFC 9293 3.8.6: "A TCP receiver SHOULD NOT shrink the window, i.e., move the right
            // window edge to the left (SHLD-14)": what it admits is taken, beyond the new size.
            self.overpromised = true;
        }
        self.size = size;
    }

    /// The buffer is `size` bytes from now on, more than it was.
    pub fn grow(&mut self, size: u32) {
        debug_assert!(size > self.size, "it grows");
        self.size = size;
    }

    /// The buffer is `size` bytes, which is no less than it was: whole segments, once their size is
    /// known.
    pub fn round_size(&mut self, size: u32) {
        debug_assert!(size >= self.size, "rounded up");
        self.size = size;
    }
}

/// Queries that are possible at any time.
impl Receiver {
    /// The receive sequence variables.
    #[inline]
    pub const fn seq(&self) -> &RecvSequence {
        &self.seq
    }

    /// RCV.NXT: the next number expected.
    #[inline]
    pub const fn nxt(&self) -> SeqNum {
        self.seq.nxt
    }

    /// The scale of our window fields: offered while opening, and agreed upon since.
    pub const fn scale(&self) -> WindowScale {
        self.scale
    }

    /// The bytes that one in the window field stands for.
    pub fn unit(&self) -> u32 {
        RawWindow::new(1).scaled(self.scale).get()
    }

    /// The window field that announces the right edge.
    #[inline]
    pub fn raw_window(&self) -> RawWindow {
        self.seq.raw_window(self.scale)
    }

    /// The MSS that we announce, bytes.
    pub const fn advertised_mss(&self) -> u16 {
        self.advertised_mss
    }

    /// Bytes that may wait to be read.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The most bytes that the buffer lets us announce at once, and `most`.
    #[inline]
    pub fn limit(&self, most: u32) -> u32 {
        self.size.min(most)
    }

    /// True if the peer's FIN was taken: the stream has an end.
    #[inline]
    pub const fn fin_received(&self) -> bool {
        self.fin_received
    }

    /// True if the window may exceed the buffer, because it was promised before.
    pub const fn is_overpromised(&self) -> bool {
        self.overpromised
    }
}

/// Arrivals: segments, text in order, and the peer's FIN.
impl Receiver {
    /// True if any of `len` numbers from `seq` on lies in the window (RFC 9293 3.10.7.4, the first check).
    #[inline]
    pub fn accepts(&self, seq: SeqNum, len: u32) -> bool {
        let (nxt, edge) = (self.seq.nxt, self.seq.edge);
        if len == 0 {
            seq == nxt || seq.in_window(nxt, self.seq.wnd())
        } else if nxt == edge {
            // RFC 9293 3.10.7.4: "If the RCV.WND is zero, no segments will be acceptable, but
            // special allowance should be made to accept valid ACKs, URGs, and RSTs." The text
            // is refused where it would be taken.
            seq == nxt
        } else {
            // The table of 3.10.7.4 asks whether the first or last number lies in the window; a
            // segment that spans all of it overlaps it as well.
            seq.before(edge) && (seq + len).after(nxt)
        }
    }

    /// The part of the segment's `len` bytes that lies in the window: from RCV.NXT to the right edge.
    pub fn clip(&self, seg: &RxSegment<'_>, len: u32) -> Text {
        let (seq, nxt) = (seg.text_seq(), self.seq.nxt);
        let skip = if seq.before(nxt) { nxt.offset_from(seq) } else { 0 };
        if skip >= len {
            return Text { skip: len, take: 0 };
        }
        let room = self.seq.edge.offset_from(seq + skip);
        Text { skip, take: (len - skip).min(room) }
    }

    /// The place of a FIN that has the number `end`, in bytes beyond RCV.NXT, if it may be taken. One
    /// beyond the window goes with the text in front of it: it will come again.
    pub fn place_of_fin(&self, end: SeqNum) -> Option<u32> {
        let within = end.at_or_after(self.seq.nxt) && end.at_or_before(self.seq.edge);
        (within && !self.fin_received).then(|| end.offset_from(self.seq.nxt))
    }

    /// `bytes` more of the stream are in order.
    #[inline]
    pub fn advance(&mut self, bytes: u32) {
        self.seq.nxt += bytes;
    }

    /// Text in order came in `segs` segments. Returns how many are not acknowledged now.
    #[inline]
    pub fn count_segs(&mut self, segs: u16) -> u16 {
        self.unacked_segs = self.unacked_segs.saturating_add(segs);
        self.unacked_segs
    }

    /// The peer's FIN is the next number in sequence.
    pub fn on_fin(&mut self) {
        // RFC 9293 3.10.7.4: "advance RCV.NXT over the FIN, and send an acknowledgment for the
        // FIN"
        self.seq.nxt += 1;
        self.seq.edge = self.seq.edge.later(self.seq.nxt);
        self.fin_received = true;
        self.owe_ack();
    }
}

/// Which acknowledgments are owed to the peer.
impl Receiver {
    /// True if an acknowledgment is to be sent now.
    #[inline]
    pub const fn ack_pending(&self) -> bool {
        self.acks_owed > 0
    }

    /// True if something arrived in order that no segment of ours acknowledged.
    pub fn is_behind(&self) -> bool {
        self.seq.last_ack != self.seq.nxt
    }

    /// Owes an acknowledgment of all that was received; one serves for all of a burst.
    #[inline]
    pub fn owe_ack(&mut self) {
        self.acks_owed = self.acks_owed.max(1);
    }

    /// Text out of order is acknowledged segment by segment: the sender counts the duplicates
    /// (RFC 5681 3.2), and a burst that was merged into one would hide a loss from it.
    pub const fn owe_duplicate(&mut self) {
        self.acks_owed = self.acks_owed.saturating_add(1);
    }

    /// The connection is over: nothing is owed.
    pub const fn owe_nothing(&mut self) {
        self.acks_owed = 0;
    }

    /// A segment is made that acknowledges everything received. It counts as one of those that are owed
    /// unless it had no room to name what is held out of order.
    #[inline(always)]
    pub fn on_ack_made(&mut self, names_all: bool) {
        self.unacked_segs = 0;
        if names_all {
            self.acks_owed = self.acks_owed.saturating_sub(1);
        }
    }

    /// The window is all that the bounds allow, by [`ReceiveWindow::FullSegments`].
    #[cold]
    pub fn open_whole(&mut self, bounds: &WindowBounds, tunables: &Tunables) {
        self.seq.edge = self.judge_whole_edge(*bounds, tunables);
    }

    /// The segment that is made announces the window that the bounds allow, and has RCV.NXT as SEG.ACK.
    #[inline(always)]
    pub fn announce(&mut self, bounds: &WindowBounds, tunables: &Tunables) {
        self.seq.edge = self.announced_edge(bounds, tunables);
        self.seq.last_ack = self.seq.nxt;
    }
}

/// The window to announce.
impl Receiver {
    /// The right edge to announce now, if it moves by `least` bytes.
    fn judge_edge(&self, bounds: &WindowBounds, least: u32) -> SeqNum {
        self.seq.judge_edge(self.room(bounds), self.most_window(bounds), least)
    }

    /// The right edge that the next segment announces.
    #[inline(always)]
    fn announced_edge(&self, bounds: &WindowBounds, tunables: &Tunables) -> SeqNum {
        match tunables.recv_window {
            ReceiveWindow::FullSegments => self.judge_whole_edge(*bounds, tunables),
            ReceiveWindow::Rfc9293 => self.judge_edge(bounds, bounds.mss),
        }
    }

    /// The edge, moved so that the window is all that is free of the buffer, rounded up to the unit of
    /// the field that tells of it: each byte less would be a unit less in the field. What the field
    /// cannot tell of is taken all the same.
    // By value: by reference they would stand in memory for the other rule, too.
    #[cold]
    fn judge_whole_edge(&self, bounds: WindowBounds, tunables: &Tunables) -> SeqNum {
        let bounds = &bounds;
        let edge = self.judge_edge(bounds, self.least_step(bounds, tunables));
        let room = self.room(bounds);
        let free = match room == self.most_window(bounds) && !bounds.is_memory_limited {
            true => self.limit(bounds.most).saturating_sub(bounds.unread).max(room),
            false => room,
        };
        let whole = self.seq.nxt + free.next_multiple_of(self.unit());
        let is_moving = edge.at_or_after(self.seq.nxt + room);
        if is_moving && whole.after(edge) { whole } else { edge }
    }

    /// The bytes that the peer may be told are free.
    fn room(&self, bounds: &WindowBounds) -> u32 {
        let most = self.most_window(bounds);
        let size = if bounds.is_memory_limited { most } else { self.size.max(most) };
        size.saturating_sub(bounds.unread).min(most)
    }

    /// The largest window that may be announced: what buffer and application admit, and no more than
    /// the field can tell of (RFC 7323 2.3), because an edge beyond it would never be announced, and
    /// forever be news. At least two of the field's units: a buffer that is smaller, because the
    /// scale was chosen for one that it may come to be, would otherwise be announced as closed.
    pub fn most_window(&self, bounds: &WindowBounds) -> u32 {
        let field = RawWindow::new(u16::MAX).scaled(self.scale).get();
        field.min(self.limit(bounds.most)).max(2 * self.unit())
    }

    /// By how much the window grows at least when an acknowledgment can carry the news.
    fn least_step(&self, bounds: &WindowBounds, tunables: &Tunables) -> u32 {
        let mss = bounds.mss;
        match tunables.recv_window {
            ReceiveWindow::FullSegments if self.room(bounds) >= mss.min(self.size / 4) => 1,
            ReceiveWindow::FullSegments | ReceiveWindow::Rfc9293 => mss,
        }
    }

    /// True if so little is announced that reading may call for a window update. While plenty is, the
    /// acknowledgment of what the peer sends next will carry it; below half of the buffer the peer
    /// might be waiting for it. Half of what a SYN can announce is plenty, too, else each handshake
    /// would end with an update: unless the peer's segments are longer, and it waits until it can send
    /// a whole one.
    #[inline]
    pub fn window_update_possible(&self) -> bool {
        self.seq.wnd() < PLENTY.max(u32::from(self.advertised_mss))
    }

    /// True if reading freed so much that the peer should hear of it without waiting for an
    /// acknowledgment to carry the news.
    pub fn window_update_pending(&self, bounds: &WindowBounds) -> bool {
        let half = self.most_window(bounds) / 2;
        let edge = self.judge_edge(bounds, bounds.mss);
        let step = edge.offset_from(self.seq.edge);
        // An update that the field cannot tell of would look like a duplicate, and three like a loss.
        let is_told = edge.offset_from(self.seq.nxt) / self.unit() > self.seq.wnd() / self.unit();
        step > 0 && self.seq.wnd() < half && (step >= 2 * bounds.mss || step >= half) && is_told
    }
}

/// The scale that lets the receive buffer be announced whole, if scaling is offered at all.
pub(crate) fn recv_scale(tunables: &Tunables, buffer: u32) -> WindowScale {
    if tunables.window_scaling { WindowScale::for_window(buffer) } else { WindowScale::ZERO }
}

#[cfg(test)]
impl Receiver {
    /// As if `bytes` more of the stream had been received, acknowledged and read.
    pub fn skip(&mut self, bytes: u32) {
        for number in [&mut self.seq.nxt, &mut self.seq.edge, &mut self.seq.last_ack] {
            *number += bytes;
        }
    }
}

/// Bytes: half of the window that every SYN can announce.
const PLENTY: u32 = 32_768;
