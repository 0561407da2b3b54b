//! Echo requests that this host sends (RFC 792, RFC 4443 4.1): whom they ask, and what came of them.
//!
//! Only what was asked is believed: a reply must come from there, name a number that no other host can
//! guess, and repeat every byte.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use whimbrel_base::{Instant, Key, SipHasher24};
use whimbrel_udp::{Fragmenting, SocketError};
use whimbrel_wire::Address;

/// An echo request to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ping {
    /// The host that is asked for a reply.
    pub to: Address,
    /// From which address of this host; `None`: by the route.
    pub source: Option<Address>,
    /// Bytes of data: 56 by default, up to 65,507 (IPv6: 65,527). The first eight tell it from a forgery.
    pub size: u16,
    /// Hop limit; `None`: as the tunables have it.
    pub hop_limit: Option<u8>,
    /// The permission to leave in fragments if the path carries less.
    pub fragmenting: Fragmenting,
    /// The time for which its reply is awaited: a second by default.
    pub timeout: Duration,
}

impl Ping {
    /// 56 bytes to this host, awaited for a second.
    pub fn new(to: IpAddr) -> Self {
        let (to, size, timeout) = (to.into(), 56, Duration::from_secs(1));
        Self { to, source: None, size, hop_limit: None, fragmenting: Fragmenting::Allowed, timeout }
    }
}

/// Names an echo request that was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PingId(pub(crate) u64);

/// The result of an echo request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PingEnd {
    /// The echo request that this is the end of.
    pub id: PingId,
    /// Its reply, or why there is none.
    pub result: Result<Pong, PingFailure>,
}

/// A reply that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Pong {
    /// The host that answered, which is the one that was asked.
    pub from: Address,
    /// From the request to the reply.
    pub round_trip: Duration,
    /// The hop limit (time to live) that the reply had left.
    pub hop_limit: u8,
    /// Bytes of data, all as they were sent.
    pub size: usize,
}

/// Why no reply came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PingFailure {
    /// Nothing was heard in time.
    #[error("no reply within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// A host on the way, or this host itself, says that it did not arrive.
    #[error("{from}: {error} (ICMP code {code})")]
    Reported {
        /// The host that reports it.
        from: Address,
        /// The error that it reports.
        error: SocketError,
        /// The code of its message.
        code: u8,
    },
    /// The address that it was sent from is no more.
    #[error("the address that it was sent from was removed")]
    AddressRemoved,
}

/// Why an echo request was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// The address is not that of one host.
    #[error("{0} names no single host: give a unicast address")]
    NotAHost(Address),
    /// There is no route to it.
    #[error("no route to {0}: add one, or an address in its network")]
    NoRoute(Address),
    /// This host has no address of its family.
    #[error("no address of the family of {0}: give this host one")]
    NoSource(Address),
    /// The address to send from is none of this host's, or of the other family.
    #[error("{0} is no address of this host that can reach there: give one of its own, or none")]
    NotLocal(Address),
    /// More than a packet, or the path where it must not be cut, carries.
    #[error("{len} bytes of data, and an echo request there carries {most} at most")]
    TooLong {
        /// Bytes to be sent.
        len: usize,
        /// The most that can be.
        most: usize,
    },
    /// As many are under way as may be.
    #[error("{limit} echo requests are under way, the most at a time: await some first")]
    TooMany {
        /// The most at a time.
        limit: usize,
    },
    /// Too much waits to be sent.
    #[error("768 answers, or 1 MiB of them, wait to leave: try again when the device takes some")]
    Full,
}

/// Those that are under way.
#[derive(Debug)]
pub(crate) struct Pings {
    key: SipHasher24,
    next: u64,
    /// By identifier and sequence number, as one.
    waiting: BTreeMap<u32, Waiting>,
    by_deadline: BTreeSet<(Instant, u32)>,
    ended: VecDeque<PingEnd>,
}

/// One that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: PingId,
    pub(crate) ping: Ping,
    pub(crate) local_index: u16,
    pub(crate) nonce: u64,
    sent: Instant,
    deadline: Instant,
    /// Number of times it was sent anew because a path carried less.
    cuts: u8,
}

impl Pings {
    /// At a time, those included whose end was not polled: some 200 bytes each.
    pub(crate) const MOST: usize = 256;
    /// A path becomes narrower once or twice; reports without end are not believed.
    const MOST_CUTS: u8 = 4;

    pub(crate) fn new(key: &Key) -> Self {
        Self {
            key: key.prf(),
            next: 0,
            waiting: BTreeMap::new(),
            by_deadline: BTreeSet::new(),
            ended: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.ended.len()
    }

    /// Begins to await the reply to `ping`; returns under which number it asks.
    pub(crate) fn begin(&mut self, ping: Ping, local_index: u16, now: Instant) -> (u32, Waiting) {
        // Lengths that nothing else has under this key: its other hashes tell nothing of these.
        let (nonce, number) = loop {
            self.next += 1;
            let [a, b, c, d, e, f, g, h] = self.next.to_be_bytes();
            let nonce = self.key.hash(&[0, a, b, c, d, e, f, g, h]);
            let number = self.key.hash(&[1, 0, a, b, c, d, e, f, g, h]) as u32;
            // Of 256 among 4 billion hardly ever a second time.
            if !self.waiting.contains_key(&number) {
                break (nonce, number);
            }
        };
        let (id, deadline) = (PingId(self.next), now + ping.timeout);
        let waiting = Waiting { id, ping, local_index, nonce, sent: now, deadline, cuts: 0 };
        self.waiting.insert(number, waiting);
        self.by_deadline.insert((deadline, number));
        (number, waiting)
    }

    /// It could not be sent: nothing is awaited.
    pub(crate) fn forget(&mut self, number: u32) {
        self.take(number);
    }

    /// A reply came. Returns whether it is one to something that was asked.
    pub(crate) fn on_reply(&mut self, reply: &EchoReply<'_>, now: Instant) -> bool {
        let Some(waiting) = self.waiting.get(&reply.number) else { return false };
        let asked = waiting.ping.to == reply.from && waiting.local_index == reply.local_index;
        if !asked || reply.data != data_of(waiting) {
            return false;
        }
        let Some(waiting) = self.take(reply.number) else { return false };
        let pong = Pong {
            from: reply.from,
            round_trip: now.since(waiting.sent),
            hop_limit: reply.hop_limit,
            size: reply.data.len(),
        };
        self.ended.push_back(PingEnd { id: waiting.id, result: Ok(pong) });
        true
    }

    /// A host reports that it did not arrive. Returns it if it is to be sent anew, in smaller pieces.
    pub(crate) fn on_report(
        &mut self,
        number: u32,
        to: &Address,
        failure: PingFailure,
    ) -> Reported {
        let Some(waiting) = self.waiting.get_mut(&number).filter(|it| it.ping.to == *to) else {
            return Reported::Unknown;
        };
        let is_too_big =
            matches!(failure, PingFailure::Reported { error: SocketError::TooBig { .. }, .. });
        let may_cut = waiting.ping.fragmenting == Fragmenting::Allowed;
        if is_too_big && may_cut && waiting.cuts < Self::MOST_CUTS {
            waiting.cuts += 1;
            return Reported::Again(*waiting);
        }
        self.fail(number, failure);
        Reported::Ended
    }

    /// The address with this number is no more.
    pub(crate) fn on_address_removed(&mut self, local: u16) {
        let its = self.waiting.iter().filter(|(_, it)| it.local_index == local);
        let its: Vec<u32> = its.map(|(number, _)| *number).collect();
        for number in its {
            self.fail(number, PingFailure::AddressRemoved);
        }
    }

    /// Ends the next one whose time is over; returns whether there was one.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        !self.by_deadline.is_empty() && self.end_next(now)
    }

    #[inline(never)]
    fn end_next(&mut self, now: Instant) -> bool {
        let Some(&(deadline, number)) = self.by_deadline.first() else { return false };
        if deadline > now {
            return false;
        }
        let timeout = self.waiting.get(&number).map_or(Duration::ZERO, |it| it.ping.timeout);
        self.fail(number, PingFailure::TimedOut(timeout));
        true
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn pop_ended(&mut self) -> Option<PingEnd> {
        self.ended.pop_front()
    }

    fn fail(&mut self, number: u32, failure: PingFailure) {
        if let Some(waiting) = self.take(number) {
            self.ended.push_back(PingEnd { id: waiting.id, result: Err(failure) });
        }
    }

    fn take(&mut self, number: u32) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        self.by_deadline.remove(&(waiting.deadline, number));
        Some(waiting)
    }
}

/// The effect of a report.
#[derive(Debug)]
pub(crate) enum Reported {
    /// It is about nothing that is under way.
    Unknown,
    /// The request is over.
    Ended,
    /// The request is to be sent again.
    Again(Waiting),
}

/// An echo reply that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoReply<'a> {
    pub(crate) from: Address,
    pub(crate) local_index: u16,
    /// Identifier and sequence number, as one.
    pub(crate) number: u32,
    pub(crate) hop_limit: u8,
    pub(crate) data: &'a [u8],
}

/// The data of a request: the nonce, as far as there is room, then bytes that count up.
pub(crate) fn data_of(waiting: &Waiting) -> Vec<u8> {
    let size = usize::from(waiting.ping.size);
    let mut data: Vec<u8> = (0..size).map(|at| at as u8).collect();
    for (place, byte) in data.iter_mut().zip(waiting.nonce.to_be_bytes()) {
        *place = byte;
    }
    data
}
