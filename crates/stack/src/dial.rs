//! A connection that a peer asks for, while an application decides what becomes of it.

use whimbrel_wire::Flow;

use crate::ip::Unreachable;

/// Names a SYN that waits for an answer, or whose handshake is under way. Once that is over it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SynHandle {
    pub(crate) index: u32,
    /// Number of entries the place had before, modulo 2^16: a peer that resets its SYN and repeats it at once
    /// gets the same ISS (RFC 6528).
    pub(crate) generation: u16,
    /// Our ISS, by which those are told apart between which the generation went round.
    pub(crate) iss: u32,
}

/// A SYN that waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynRequest {
    /// The handle that an answer names.
    pub syn: SynHandle,
    /// Its source and its destination.
    pub flow: Flow,
}

/// The answer that the peer of a SYN gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// A SYN-ACK: [`Event::Opened`](crate::Event::Opened) follows, or [`Event::Withdrawn`](crate::Event::Withdrawn).
    Accept,
    /// A reset, as of a port without a listener.
    Reset,
    /// An ICMP error, as of a router or a host that forbids all traffic.
    Unreachable(Unreachable),
    /// Nothing. If it repeats its SYN, that is a new one.
    Ignore,
}

/// Why a SYN that waited for an answer, or whose handshake was under way, is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Withdrawal {
    /// Its peer reset it, or was reset.
    Reset,
    /// No answer was given for 127 s, or none came to the SYN-ACK.
    TimedOut,
    /// A newer one took its place: of 4,096 that are incomplete, of `max_dials_per_destination` to one address and
    /// port, or, while the memory budget is used up, of 64 in all, the oldest gives way. Its peer's next SYN is asked about anew.
    Displaced,
}
