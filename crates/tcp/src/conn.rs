//! A connection: the record of a flow that carries data (RFC 9293 3.3.1's TCB).
//!
//! LISTEN, passive SYN-RECEIVED and TIME-WAIT have records of their own and never come here. The
//! record is one piece of 216 bytes; the text that it buffers is in [`Buffers`], which are there
//! only while something is in them.
//!
//! It has three layers, each a field of the next, and none calls the one above it:
//!
//! | type | holds | does |
//! |---|---|---|
//! | `Tcb` | addresses, state, [`Sender`](crate::send::Sender), [`Receiver`](crate::recv::Receiver), options, counts, buffers | says what may be sent and received now |
//! | `Transfer` | a `Tcb`, timers, timestamps | makes segments, repeats them, takes acknowledgments |
//! | [`Connection`] | a `Transfer` | judges arrivals and ICMP errors, opens, closes; the calls of a host |
//!
//! A segment's way is [`Connection::on_segment`]; whatever happened, [`Connection::wants_transmit`]
//! then says whether there is something to send, and [`Connection::poll_transmit`] makes it.

mod accurate_ecn;
mod ack;
mod attempt;
mod budget;
mod calls;
mod close;
mod cold;
mod context;
mod duplicate;
mod ends;
mod fast_open;
mod fin;
mod handshake;
mod icmp;
mod info_counts;
mod input;
mod invariants;
mod limit;
mod marks;
mod mtu_search;
mod open;
mod options;
mod output;
mod path_mtu;
mod refuse;
mod remains;
mod settings;
mod snapshot;
mod stamps;
mod stats;
mod tcb;
mod text;
mod timers;
mod transfer;

use alloc::boxed::Box;

use whimbrel_base::Tick;
use whimbrel_wire::Address;
use whimbrel_wire::tcp::SackBlock;

use crate::flags::flags;
use crate::recv::{RecvBuffer, RecvSequence, RightSizing};
use crate::send::{RttEstimator, SendQueue, SendSequence};
use crate::verdict::CloseReason;

pub use attempt::Attempt;
use cold::ColdRecord;
pub use context::{BufferPool, Context};
pub use handshake::{ActiveOpen, FastSyn, FirstTrip, Handshake, SynOptions};
pub use info_counts::TcpInfoCounts;
pub use limit::Limit;
use limit::LimitSpan;
pub use marks::EcnFeedback;
pub(crate) use marks::{INITIAL_CE_PACKETS, reported};
pub use mtu_search::PathFinding;
pub use options::{AckTiming, Marking, SocketOptions, SocketOverrides};
pub use output::{Feedback, OutgoingSegment, RareOptions};
use path_mtu::TooBig;
pub use remains::Remains;
pub use settings::KeepAlive;
pub use snapshot::Snapshot;
pub use stats::Tally;
use stats::Wraps;
pub use tcb::initial_window;
pub use timers::{TimerFinding, TimerPurpose, Timers};
use transfer::Transfer;
pub use transfer::WriteClosed;

pub use crate::RouteMetrics;
pub use crate::buffer_size::{BufferSize, SizeRange};
pub use crate::send::{Cork, Nagle};
pub use crate::verdict::IcmpVerdict;

/// The states of RFC 9293 3.3.2 that a connection can be in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Our SYN is out.
    SynSent,
    /// Both SYNs are out: a simultaneous open.
    SynReceived,
    /// Both SYNs are acknowledged, and neither side has closed: data flows both ways.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed; the peer has not.
    FinWait2,
    /// The peer closed; we have not.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we did; our FIN is not acknowledged.
    LastAck,
    /// Both closed, and the peer may still repeat its FIN: a [`TimeWait`](crate::table::TimeWait)
    /// record takes over.
    TimeWait,
    /// Over. What was received may still be read.
    Closed,
}

/// News for an application, merged until it asks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Signals(u8);

impl Signals {
    /// An opened connection is established.
    pub const CONNECTED: Self = Self(1);
    /// The peer announced urgent data.
    pub const URGENT: Self = Self(2);
    /// Text or the end of the stream can be read.
    pub const READABLE: Self = Self(4);
    /// There is room to send, after there was none.
    pub const WRITABLE: Self = Self(8);
    /// The connection is over.
    pub const CLOSED: Self = Self(16);

    /// True if there is nothing to tell.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes the signal `one` out, if it is in.
    pub fn take(&mut self, one: Self) -> bool {
        let present = self.0 & one.0 != 0;
        self.0 &= !one.0;
        present
    }

    /// Takes one out, if any is in: the first in the order in which they are told, which is that of their
    /// bits. What was received comes before the news that nothing more will be.
    #[inline]
    pub fn take_first(&mut self) -> Self {
        let first = self.0 & self.0.wrapping_neg();
        self.0 ^= first;
        Self(first)
    }

    fn raise(&mut self, one: Self) {
        self.0 |= one.0;
    }
}

/// The record of a flow that carries data.
#[derive(Debug)]
pub struct Connection {
    transfer: Transfer,
}

/// The part of a connection that few need: those that receive much, last long, or have settings of their own.
#[derive(Debug, Default)]
pub struct ConnStats {
    wraps: Wraps,
    /// The measure of the receive buffer that the path needs.
    sizing: RightSizing,
    /// When as many challenge acknowledgments as ever may go out at once, if any did.
    challenges: Option<Tick>,
    /// Segments that answered our SYN and acknowledged something else.
    syn_challenges: u8,
    /// Settings of this connection only, and rare counts.
    cold: Option<Box<ColdRecord>>,
}

/// Text and notes that a connection buffers: there only while there are any.
// In this order: a pointer to it is one to its send queue, which is asked for at each step.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Buffers {
    send: SendQueue,
    recv: RecvBuffer,
    /// Text that arrived twice, to be named in the next acknowledgment (RFC 2883).
    duplicate: Option<SackBlock>,
    /// The Fast Open option of our first SYN or SYN-ACK.
    fast_syn: Option<FastSyn>,
    /// A router's report that a segment was too big, not believed yet.
    too_big: Option<TooBig>,
    /// The reason why not more is sent: the application, where nothing is buffered.
    limit: LimitSpan,
    /// When the text came that has been unread for longest, if some is.
    unread_since: Tick,
    /// The bytes of it in its shard's account.
    accounted: u32,
}

impl Buffers {
    /// Clears everything in them, and keeps their room.
    pub(crate) fn reset(&mut self) {
        self.send.clear();
        self.recv.clear();
        self.duplicate = None;
        self.fast_syn = None;
        self.too_big = None;
        self.limit = LimitSpan::default();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        // First what most buffers hold that are not: text.
        self.send.text.is_empty()
            && self.recv.is_empty()
            && self.send.is_empty()
            && self.duplicate.is_none()
            && self.fast_syn.is_none()
    }
}

flags! {
    /// Facts about a connection.
    Flags {
        /// Timestamps were negotiated (RFC 7323 3.2); while opening: are offered.
        TIMESTAMPS = 0,
        /// Selective acknowledgments were negotiated (RFC 2018 2).
        SACK = 1,
        /// The application closed the connection: no one will read.
        ORPHAN = 2,
        /// The application said that it will read no more, and holds the connection.
        DEAF = 3,
        /// The connection is probed when it is silent.
        KEEP_ALIVE = 4,
        /// The path carries less than the least that is believed of one: packets may be fragmented.
        FRAGMENTS = 5,
        /// TS.Recent is a former connection's, of the same 4-tuple.
        REUSES = 6,
        /// Our SYN asks for a Fast Open cookie or brings one, and was not answered.
        FAST_OPEN = 7,
        /// The connection began with the peer's SYN, whose Fast Open cookie was valid, and our own is not
        /// acknowledged.
        EARLY = 8,
        /// A SYN brought text: ours, once it is sent and unless it is refused, or the peer's.
        SYN_DATA = 9,
        /// Memory was short when the connection began, or when text came last: it gets little room.
        MEMORY_LIMITED = 10,
        /// ECN was negotiated (RFC 3168 6.1.1); while opening: was asked for.
        ECN = 11,
        /// A router marked text that arrived, which segments echo until the peer has reduced its window.
        ECHO = 12,
        /// The segment that is being made goes again, or is a probe.
        AGAIN = 13,
        /// A SYN of ours left that did not ask for ECN, after one that did: no text may be marked.
        NO_ECT = 14,
        /// The feedback of ECN is accurate (RFC 9768 3.1); while opening: was asked for.
        ACCURATE = 15,
    }
}

impl Flags {
    /// A handshake of Fast Open is under way.
    const FAST_OPENING: Self = Self(Self::FAST_OPEN.0 | Self::EARLY.0);
    /// ECN with accurate feedback.
    const ACCURATE_ECN: Self = Self(Self::ECN.0 | Self::ACCURATE.0);
    /// Those that are looked at when text arrives.
    const ECN_OR_READ_SHUTDOWN: Self = Self(Self::ECN.0 | Self::READ_SHUTDOWN.0);
    /// Those that are looked at before a segment leaves.
    const ECN_OR_AGAIN: Self = Self(Self::ECN.0 | Self::AGAIN.0);
    /// Those with which arriving text will not be read.
    const READ_SHUTDOWN: Self = Self(Self::ORPHAN.0 | Self::DEAF.0);
}

/// The next result of reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// The next bytes of the stream.
    Data(bytes::Bytes),
    /// Nothing can be read yet, and more may come.
    Pending,
    /// The peer closed its direction and everything was read.
    End,
    /// The connection is over and everything was read.
    Closed(CloseReason),
}

const _: () = assert!(size_of::<Connection>() <= 216 && size_of::<ConnStats>() <= 64);

#[cfg(test)]
mod tests;

/// Queries that are possible at any time.
impl Connection {
    /// Its state of RFC 9293 3.3.2.
    #[inline]
    pub const fn state(&self) -> State {
        self.transfer.tcb.state
    }

    /// The address that the peer sends from.
    #[inline]
    pub const fn remote(&self) -> &Address {
        &self.transfer.tcb.ends.remote
    }

    /// The port that the peer sends from.
    #[inline]
    pub const fn remote_port(&self) -> u16 {
        self.transfer.tcb.ends.remote_port
    }

    /// The port that this side sends from.
    #[inline]
    pub const fn local_port(&self) -> u16 {
        self.transfer.tcb.ends.local_port
    }

    /// This side's address, as an index into the shard's table of them.
    #[inline]
    pub const fn local_index(&self) -> u16 {
        self.transfer.tcb.ends.local_index
    }

    /// News for the application.
    #[inline]
    pub const fn signals(&self) -> Signals {
        self.transfer.tcb.signals
    }

    /// News for the application.
    #[inline]
    pub fn signals_mut(&mut self) -> &mut Signals {
        &mut self.transfer.tcb.signals
    }

    /// Why it is over, once it is.
    pub const fn closed(&self) -> Option<CloseReason> {
        self.transfer.tcb.closed
    }

    /// True if the application closed it.
    pub const fn is_orphan(&self) -> bool {
        self.transfer.tcb.flags.has(Flags::ORPHAN)
    }

    /// The send sequence variables.
    pub const fn send_sequence(&self) -> &SendSequence {
        self.transfer.tcb.sender.seq()
    }

    /// The receive sequence variables.
    pub const fn recv_sequence(&self) -> &RecvSequence {
        self.transfer.tcb.receiver.seq()
    }

    /// The estimate of the round trip, and the time-out that follows from it (RFC 6298).
    pub const fn rtt(&self) -> &RttEstimator {
        self.transfer.tcb.sender.rtt()
    }

    /// cwnd (RFC 5681 2): how many bytes may be in flight.
    pub fn cwnd(&self) -> u32 {
        self.transfer.tcb.sender.cwnd()
    }

    /// Bytes of text in a full segment.
    pub const fn mss(&self) -> u16 {
        self.transfer.tcb.sender.mss()
    }
}

/// Buffers come and go.
impl Connection {
    /// The record goes, and what it borrowed comes back.
    pub fn retire(mut self, pool: &mut BufferPool) {
        self.transfer.tcb.release(pool);
    }
}
