//! Outcomes of a segment, as values: each refusal has a reason, each reason a counter.

use core::ops::ControlFlow;

use whimbrel_base::drop_reasons;
use whimbrel_wire::tcp::{TcpFlags, Timestamps};
use whimbrel_wire::{RawWindow, SeqNum};

/// One step of a segment's way: [`ControlFlow::Continue`] to the next, or done with a verdict.
pub type Step = ControlFlow<Verdict>;

/// The step that ends a segment's way.
pub use ControlFlow::Break as Done;
/// The step that hands the segment on.
pub use ControlFlow::Continue;

/// The outcome of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Verdict {
    /// The connection took what it could use.
    Accepted,
    /// Refused by this stateless segment to the peer.
    Reply(Reply, DropReason),
    /// Refused. If an acknowledgment is due for it, the record has noted so itself.
    Drop(DropReason),
    /// Accepted, and it ended the connection.
    Closed(CloseReason),
}

/// A segment that needs no connection to be sent: a reset, or the answer of a dying record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// SEG.SEQ of the reply.
    pub seq: SeqNum,
    /// ACK; meaningful if `flags` has it.
    pub ack: SeqNum,
    /// The control bits of the reply.
    pub flags: TcpFlags,
    /// SEG.WND of the reply, unscaled.
    pub window: RawWindow,
    /// The timestamps option, if the reply has one.
    pub timestamps: Option<Timestamps>,
}

impl Reply {
    /// The reset that answers a segment which no connection owns (RFC 9293 3.10.7.1).
    pub fn reset_for(seg: &crate::RxSegment<'_>) -> Self {
        let header = &seg.header;
        let (seq, ack, flags) = if header.flags.contains(TcpFlags::ACK) {
            // RFC 9293 3.10.7.1: "If the ACK bit is on, <SEQ=SEG.ACK><CTL=RST>"
            (header.ack, SeqNum::new(0), TcpFlags::RST)
        } else {
            // RFC 9293 3.10.7.1: "If the ACK bit is off, sequence number zero is used,
            // <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>"
            (SeqNum::new(0), header.seq + seg.len(), TcpFlags::RST | TcpFlags::ACK)
        };
        Self { seq, ack, flags, window: RawWindow::new(0), timestamps: None }
    }

    /// Returns the reply with the timestamps of the connection that sends it, if it negotiated them.
    #[must_use]
    pub fn stamped(self, timestamps: Option<Timestamps>) -> Self {
        // RFC 7323 3.2: "and SHOULD be sent in an <RST> segment".
        // RFC 7323 3.2: "If the ACK bit is not set in the outgoing TCP header, the sender of that
        // segment SHOULD set the TSecr field to zero."
        let ecr = |stamps: Timestamps| if self.flags.is_ack() { stamps.ecr } else { 0 };
        let timestamps = timestamps.map(|stamps| Timestamps { ecr: ecr(stamps), ..stamps });
        Self { timestamps, ..self }
    }
}

/// Why a connection is over, as its application learns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both directions were closed by FIN and all was acknowledged.
    Finished,
    /// The peer sent a reset (`ECONNRESET`; while opening, `ECONNREFUSED`).
    Reset,
    /// The peer sent FIN, then a reset while this side could still send: the peer takes no more
    /// (`EPIPE`).
    BrokenPipe,
    /// The peer refused the connection: a reset answered our SYN.
    Refused,
    /// Retransmissions went unanswered for too long (`ETIMEDOUT`).
    TimedOut,
    /// This side aborted it.
    Aborted,
    /// The network reported that the peer cannot be reached (RFC 5461 hard error).
    Unreachable,
}

drop_reasons! {
    /// Why a segment was refused. The names are those of Linux' `enum skb_drop_reason` where it
    /// has one for the same reason.
    pub enum DropReason;

    /// No connection, half-open entry or listener is there; answered by a reset.
    NoSocket = Linux "NO_SOCKET",
    /// A reset for something that does not exist; never answered (RFC 9293 3.10.7.1).
    ResetWithoutSocket = Own "RST_NO_SOCKET",
    /// A combination of control bits that means nothing, such as SYN with FIN, or none at all.
    Flags = Linux "TCP_FLAGS",
    /// The segment lies wholly before RCV.NXT: a duplicate; acknowledged again.
    OldData = Linux "TCP_OLD_DATA",
    /// The segment lies beyond the receive window; acknowledged.
    OverWindow = Linux "TCP_OVERWINDOW",
    /// Out of order, and more held ranges or memory than the bounds allow.
    OutOfOrderLimit = Linux "TCP_OFO_QUEUE_PRUNE",
    /// The peer contradicts itself: a FIN in front of text that is held, or a second FIN while one waits, or text
    /// behind that; acknowledged.
    FinConflict = Own "TCP_FIN_CONFLICT",
    /// Memory is short (`mem.budget`): text out of order, or more text in order than the connection's share
    /// of what is left.
    MemoryBudget = Linux "PROTO_MEM",
    /// TSval older than TS.Recent (RFC 7323 5.3), by more than a tick; acknowledged.
    Paws = Linux "TCP_RFC7323_PAWS",
    /// A pure acknowledgment of nothing new with an old timestamp, late by no more than RTO; not answered.
    PawsAck = Linux "TCP_RFC7323_PAWS_ACK",
    /// Timestamps were negotiated and this segment has none (RFC 7323 3.2).
    TimestampMissing = Own "TCP_TS_MISSING",
    /// A reset in the window but not at RCV.NXT; challenged (RFC 5961 3.2).
    ResetChallenged = Linux "TCP_RESET",
    /// A reset outside the window; ignored (RFC 5961 3.2).
    ResetOutsideWindow = Linux "TCP_INVALID_SEQUENCE",
    /// A SYN on a synchronized connection; challenged (RFC 5961 4.2).
    SynChallenged = Linux "TCP_INVALID_SYN",
    /// The ACK bit is off where every segment must carry it.
    NoAck = Own "TCP_NO_ACK",
    /// ACK below SND.UNA by more than the largest window ever seen; challenged (RFC 5961 5.2).
    TooOldAck = Linux "TCP_TOO_OLD_ACK",
    /// ACK of something never sent; acknowledged (RFC 9293 3.10.7.4).
    AckUnsentData = Linux "TCP_ACK_UNSENT_DATA",
    /// SYN-SENT: an ACK that does not acknowledge our SYN; answered by a reset.
    UnacceptableAck = Linux "TCP_INVALID_ACK_SEQUENCE",
    /// Data for a connection whose application is gone; answered by a reset (RFC 9293 3.6.1).
    DataAfterClose = Linux "TCP_ABORT_ON_DATA",
    /// The accept queue is full; the SYN-ACK will be repeated.
    ListenOverflow = Linux "TCP_LISTEN_OVERFLOW",
    /// The third segment of a handshake, without text, for a listener that waits for text
    /// (`TCP_DEFER_ACCEPT`).
    AcceptDeferred = Own "TCP_DEFER_ACCEPT",
    /// The SYN cache is full.
    SynCacheFull = Own "SYN_CACHE_FULL",
    /// An acknowledgment without a record, for a listener that sends SYN cookies, that brought none
    /// back; answered by a reset.
    SynCookie = Own "TCP_SYNCOOKIE",
    /// A SYN, or the end of a handshake, with as many connections as `max_connections` allows.
    ConnectionLimit = Own "TCP_CONNECTION_LIMIT",
    /// A segment for a record in TIME-WAIT that needs no answer.
    TimeWait = Own "TCP_TIMEWAIT",
    /// A reset in TIME-WAIT, ignored (RFC 1337).
    TimeWaitReset = Own "TCP_TIMEWAIT_RST",
    /// A SYN that looks old to TIME-WAIT; answered as `tw.answer` says.
    TimeWaitSyn = Own "TCP_TIMEWAIT_SYN",
    /// The connection is closed.
    Closed = Linux "TCP_CLOSE",
}

/// The outcome of an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum IcmpVerdict {
    /// The quoted segment is not in flight: a forgery, or long out of date.
    OutOfWindow,
    /// Noted for a caller of [`Connection::soft_error`](crate::conn::Connection::soft_error).
    Noted,
    /// The path carries less than was thought. Whatever was too big is sent again.
    Lowered,
    /// Segments as large were acknowledged before: it waits until the quoted one times out, and is
    /// forgotten if that is acknowledged.
    Held,
    /// Nothing new, or nothing that could be true.
    Ignored,
    /// It ended the attempt to open.
    Closed(CloseReason),
}
