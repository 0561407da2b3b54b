//! Fragments back into packets (RFC 791 3.2, RFC 8200 4.5, RFC 5722), within bounds.
//!
//! Any sender can send fragments that never become whole. So what waits is
//! bounded: the pieces of a datagram, what one source has here, and all together. At a bound the
//! oldest datagram goes of whichever source holds the most by the measure of that bound: datagrams
//! where these are too many, and among equals the oldest of all; bytes where these are. To refuse
//! the newest would let one flood lock everybody out for a minute, to forget the oldest of all would
//! let it push out everybody's, and to go by bytes where datagrams are too many would let many small
//! ones push out each large one. A source is an IPv4 address, or the network of 64 bits that an IPv6
//! host may take any address of. Who forges sources takes no more from an honest one than an even
//! share: one datagram, until as many others came as there may be, and 4 KiB.
//! What became whole is a packet without a trace of fragmentation, and is read like one that came
//! in one piece.
//!
//! A fragment's bytes are copied once, so that what is held counts itself and not the frame that
//! brought it. Taking one costs a look-up among the datagrams and one among its datagram's pieces,
//! in trees; what is thrown away was paid for by its sender.
//!
//! Fragments that overlap discard their datagram in silence, as RFC 5722 4 demands for IPv6. IPv4
//! is treated alike: RFC 791's "later overwrites" lets two hosts on a path see different packets
//! (RFC 1858), and no sender overlaps on purpose. Exact duplicates are the network's doing and
//! only dropped.

mod sources;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{
    Address, Ecn, Family, Fragment, IpHeader, Ipv4Header, Ipv6Header, Protocol, TrafficClass,
};

use super::FrameDrop;
use sources::{Measure, Source, Sources};

/// Limits on what waits for missing fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Datagrams. Fewer lets a short flood push out honest ones before they are whole.
    pub(crate) datagrams: usize,
    /// Bytes in all, with what it costs to keep them. Below 80,000 the largest datagram could
    /// never become whole; more is memory that anybody can pin.
    pub(crate) bytes: usize,
    /// Datagrams of one source. Fewer: a host that sends many large ones at once loses some. More:
    /// one address fills what all share.
    pub(crate) source_datagrams: usize,
    /// Bytes of one source, counted alike, within the same limits.
    pub(crate) source_bytes: usize,
    /// Fragments of one datagram. 65,535 bytes over links of 576 take 119.
    pub(crate) fragments: usize,
}

impl Bounds {
    /// 256 datagrams and 1 MiB, of one source a quarter, 128 fragments each.
    pub(crate) const DEFAULT: Self = Self {
        datagrams: 256,
        bytes: 1 << 20,
        source_datagrams: 64,
        source_bytes: 256 << 10,
        fragments: 128,
    };
}

/// The longest time a datagram stays incomplete.
///
/// RFC 1122 3.3.2: "The reassembly timeout value SHOULD be a fixed value, not set from the
/// remaining TTL. It is recommended that the value lie between 60 seconds and 120 seconds." RFC
/// 8200 4.5: "within 60 seconds of the reception of the first-arriving fragment". One constant for
/// both makes a queue of it.
pub(crate) const TIME_OUT: Duration = Duration::from_secs(60);

/// Datagrams of which a part is here.
#[derive(Debug)]
pub(crate) struct Reassembly {
    bounds: Bounds,
    datagrams: BTreeMap<Key, Datagram>,
    /// Their keys in the order in which their first fragment came.
    by_age: BTreeMap<u64, Key>,
    sources: Sources,
    next_serial: u64,
    bytes: usize,
    given_up: Abandoned,
}

/// Numbers of datagrams given up before their time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Abandoned {
    /// Their own fragments contradicted each other, or were too many.
    pub(crate) refused: u64,
    /// Their source had too much here.
    pub(crate) crowded: u64,
    /// All sources together had, and theirs the most by that measure.
    pub(crate) evicted: u64,
}

/// The key that fragments of one datagram share: IPv4's protocol is part of it, IPv6 needs none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    src: Address,
    dst: Address,
    identification: u32,
    protocol: u8,
}

/// A datagram that did not become whole in time.
#[derive(Debug)]
pub(crate) struct Expired {
    /// Its first fragment as it came, if it did: what an ICMP error quotes.
    pub(crate) first: Option<Vec<u8>>,
}

impl Reassembly {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            datagrams: BTreeMap::new(),
            by_age: BTreeMap::new(),
            sources: Sources::default(),
            next_serial: 0,
            bytes: 0,
            given_up: Abandoned::default(),
        }
    }

    /// True if no datagram waits for fragments.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// Returns the number of datagrams that wait for fragments.
    pub(crate) fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Bytes held, with what it costs to keep them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the numbers of datagrams given up before their time since the last call.
    pub(crate) fn take_given_up(&mut self) -> Abandoned {
        core::mem::take(&mut self.given_up)
    }

    /// Takes the fragment in `packet`; returns the whole packet if it was the last one missing.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        ip: &IpHeader,
        packet: &[u8],
    ) -> Result<Option<Vec<u8>>, FrameDrop> {
        let arrived = PossibleFragment::judge(ip, packet)?;
        let key = Key::of(ip, arrived.fragment);
        // Before there is room for it: what is refused pushes no other datagram out.
        if let Some(datagram) = self.datagrams.get(&key)
            && let Err(reason) = datagram.judge(&arrived, self.bounds.fragments)
        {
            if reason != FrameDrop::FragmentDuplicate {
                self.remove(&key);
                self.given_up.refused += 1;
            }
            return Err(reason);
        }
        self.make_room(&key, arrived.cost());
        let datagram = match self.datagrams.entry(key) {
            alloc::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
            alloc::collections::btree_map::Entry::Vacant(place) => {
                let serial = self.next_serial;
                self.next_serial += 1;
                self.by_age.insert(serial, key);
                self.sources.enter(key.source(), serial);
                self.sources.grow(&key.source(), DATAGRAM_COST);
                self.bytes += DATAGRAM_COST;
                place.insert(Datagram::new(serial, now))
            }
        };
        datagram.add(&arrived);
        let is_whole = datagram.is_whole();
        self.bytes += arrived.cost();
        self.sources.grow(&key.source(), arrived.cost());
        if !is_whole {
            return Ok(None);
        }
        let whole = self.remove(&key).map(|datagram| datagram.assemble(&key)).transpose();
        self.given_up.refused += u64::from(whole.is_err());
        whole
    }

    /// Sends datagrams away until one more fragment of `key` fits: of its source, or of the source
    /// that has most by the measure that is full.
    fn make_room(&mut self, key: &Key, cost: usize) {
        let more = |known: bool| if known { (0, cost) } else { (1, cost + DATAGRAM_COST) };
        let Bounds { source_datagrams, source_bytes, .. } = self.bounds;
        while let Some((datagrams, bytes, oldest)) = self.sources.share(&key.source()) {
            let (one, cost) = more(self.datagrams.contains_key(key));
            if datagrams + one <= source_datagrams && bytes + cost <= source_bytes {
                break;
            }
            self.give_up(oldest);
            self.given_up.crowded += 1;
        }
        loop {
            let (one, cost) = more(self.datagrams.contains_key(key));
            let full = if self.len() + one > self.bounds.datagrams {
                Measure::Datagrams
            } else if self.bytes + cost > self.bounds.bytes {
                Measure::Bytes
            } else {
                return;
            };
            let Some(oldest) = self.sources.oldest_of_greatest(full) else { return };
            self.give_up(oldest);
            self.given_up.evicted += 1;
        }
    }

    fn give_up(&mut self, serial: u64) {
        if let Some(key) = self.by_age.get(&serial).copied() {
            self.remove(&key);
        }
    }

    /// When the oldest datagram's time is over.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.by_age.is_empty() { None } else { self.oldest_deadline() }
    }

    #[inline(never)]
    fn oldest_deadline(&self) -> Option<Instant> {
        let (_, key) = self.by_age.first_key_value()?;
        self.datagrams.get(key).map(|datagram| datagram.since + TIME_OUT)
    }

    /// The next datagram whose time is over.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<Expired> {
        if self.next_deadline()? > now {
            return None;
        }
        let (_, key) = self.by_age.first_key_value()?;
        let key = *key;
        self.remove(&key).map(|datagram| Expired { first: datagram.into_first() })
    }

    fn remove(&mut self, key: &Key) -> Option<Datagram> {
        let datagram = self.datagrams.remove(key)?;
        self.by_age.remove(&datagram.serial);
        self.bytes -= datagram.cost();
        self.sources.leave(&key.source(), datagram.serial, datagram.cost());
        Some(datagram)
    }
}

impl Key {
    fn of(ip: &IpHeader, fragment: Fragment) -> Self {
        let protocol = if ip.src.is_v4() { ip.protocol.0 } else { 0 };
        let identification = fragment.identification;
        Self { src: ip.src, dst: ip.dst, identification, protocol }
    }

    fn source(&self) -> Source {
        Source::of(&self.src)
    }
}

/// A fragment that could be part of something.
struct PossibleFragment<'a> {
    ip: &'a IpHeader,
    fragment: Fragment,
    /// The headers in front of its bytes.
    header: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> PossibleFragment<'a> {
    fn judge(ip: &'a IpHeader, packet: &'a [u8]) -> Result<Self, FrameDrop> {
        let fragment = ip.fragment.ok_or(FrameDrop::Header)?;
        let split = packet.split_at_checked(usize::from(ip.header_len));
        let (header, bytes) = split.ok_or(FrameDrop::Header)?;
        // A link may have padded.
        let bytes = bytes.get(..usize::from(ip.payload_len)).ok_or(FrameDrop::Header)?;
        if bytes.is_empty() {
            return Err(FrameDrop::FragmentLength);
        }
        let most = match ip.src.family() {
            Family::V4 => 65_535 - Ipv4Header::LEN,
            Family::V6 => 65_535,
        };
        if usize::from(fragment.offset) + bytes.len() > most {
            return Err(FrameDrop::FragmentLength);
        }
        Ok(Self { ip, fragment, header, bytes })
    }

    /// One past its last byte.
    fn end(&self) -> u16 {
        self.fragment.offset + self.bytes.len() as u16
    }

    fn cost(&self) -> usize {
        let header = if self.fragment.offset == 0 { self.header.len() } else { 0 };
        self.bytes.len() + header + FRAGMENT_COST
    }
}

/// A datagram in pieces.
#[derive(Debug)]
struct Datagram {
    serial: u64,
    /// When its first fragment came.
    since: Instant,
    /// By their offsets, none overlapping another.
    pieces: BTreeMap<u16, FragmentData>,
    /// Bytes of all pieces.
    held: usize,
    /// Bytes of the whole, once the last fragment is here.
    len: Option<u16>,
    /// The header of the first fragment, once it is here.
    first: Option<FirstFragment>,
    /// The ECN fields seen, one bit each.
    ecn: u8,
}

/// The bytes of a fragment, and no more than these.
type FragmentData = Box<[u8]>;

#[derive(Debug)]
struct FirstFragment {
    header: Box<[u8]>,
    protocol: Protocol,
    hop_limit: u8,
    class: TrafficClass,
}

impl Datagram {
    fn new(serial: u64, since: Instant) -> Self {
        Self { serial, since, pieces: BTreeMap::new(), held: 0, len: None, first: None, ecn: 0 }
    }

    /// Takes a fragment that [`Datagram::judge`] let pass.
    fn add(&mut self, arrived: &PossibleFragment<'_>) {
        if !arrived.fragment.more {
            self.len = Some(arrived.end());
        }
        let ip = arrived.ip;
        if arrived.fragment.offset == 0 {
            self.first = Some(FirstFragment {
                header: arrived.header.into(),
                protocol: ip.protocol,
                hop_limit: ip.hop_limit,
                class: ip.traffic_class,
            });
        }
        self.ecn |= ecn_bit(ip.traffic_class.ecn());
        self.held += arrived.bytes.len();
        self.pieces.insert(arrived.fragment.offset, arrived.bytes.into());
    }

    /// Checks that a fragment fits between the others, of which there may be `most`. Any error but a
    /// duplicate ends the datagram.
    fn judge(&self, arrived: &PossibleFragment<'_>, most: usize) -> Result<(), FrameDrop> {
        let (offset, end) = (arrived.fragment.offset, arrived.end());
        let after = self.pieces.range(offset..).next();
        if after.is_some_and(|(at, bytes)| *at == offset && **bytes == *arrived.bytes) {
            // RFC 8200 4.5: "an implementation may choose to detect this case and drop exact
            // duplicate fragments while keeping the other fragments belonging to the same packet."
            return Err(FrameDrop::FragmentDuplicate);
        }
        let end_of = |(at, bytes): (&u16, &FragmentData)| at + bytes.len() as u16;
        let before = self.pieces.range(..offset).next_back();
        let overlaps =
            before.is_some_and(|it| end_of(it) > offset) || after.is_some_and(|(at, _)| *at < end);
        // Two ends, or bytes beyond the end, contradict each other as overlaps do.
        let contradicts = match self.len {
            Some(len) => end > len || (!arrived.fragment.more && end != len),
            None if arrived.fragment.more => false,
            None => self.pieces.last_key_value().is_some_and(|it| end_of(it) > end),
        };
        if overlaps || contradicts {
            return Err(FrameDrop::FragmentOverlap);
        }
        if self.pieces.len() >= most { Err(FrameDrop::FragmentCount) } else { Ok(()) }
    }

    fn is_whole(&self) -> bool {
        // Pieces never overlap: as many bytes as the whole has are the whole.
        self.len.is_some_and(|len| self.held == usize::from(len))
    }

    fn cost(&self) -> usize {
        let header = self.first.as_ref().map_or(0, |first| first.header.len());
        DATAGRAM_COST + self.held + header + self.pieces.len() * FRAGMENT_COST
    }

    /// The packet that was sent. Options and extension headers in front of the fragment header
    /// were judged with each fragment and are left out.
    fn assemble(self, key: &Key) -> Result<Vec<u8>, FrameDrop> {
        let class = self.class()?;
        let first = self.first.ok_or(FrameDrop::Header)?;
        let len = self.len.ok_or(FrameDrop::Header)?;
        let mut packet = match key.src.family() {
            Family::V4 => emit_v4(key, &first, class, len),
            Family::V6 => emit_v6(key, &first, class, len),
        };
        packet.reserve(usize::from(len));
        for bytes in self.pieces.values() {
            packet.extend_from_slice(bytes);
        }
        Ok(packet)
    }

    /// RFC 3168 5.3: "If any fragment of an IP packet to be reassembled has the CE codepoint set,
    /// then one of two actions MUST be taken": set CE on the whole, or, where the sender is not
    /// capable of ECN, drop it.
    fn class(&self) -> Result<TrafficClass, FrameDrop> {
        let class = self.first.as_ref().map_or(TrafficClass::default(), |first| first.class);
        if self.ecn & ecn_bit(Ecn::Ce) == 0 {
            return Ok(class);
        }
        if self.ecn & ecn_bit(Ecn::NotEct) != 0 {
            return Err(FrameDrop::FragmentEcn);
        }
        Ok(class.with_ecn(Ecn::Ce))
    }

    /// The first fragment as it came, if it did.
    fn into_first(self) -> Option<Vec<u8>> {
        let (_, bytes) = self.pieces.first_key_value()?;
        Some([&*self.first?.header, bytes].concat())
    }
}

fn emit_v4(key: &Key, first: &FirstFragment, class: TrafficClass, len: u16) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    let header = Ipv4Header {
        src: key.src.v4_bytes().into(),
        dst: key.dst.v4_bytes().into(),
        protocol: first.protocol,
        ttl: first.hop_limit,
        tos: class,
        identification: key.identification as u16,
        dont_fragment: false,
        fragment: None,
        // At most 65,535 - 20 bytes were taken.
        total_len: Ipv4Header::LEN as u16 + len,
        header_len: Ipv4Header::LEN as u8,
    };
    header.emit(&mut packet);
    packet
}

fn emit_v6(key: &Key, first: &FirstFragment, class: TrafficClass, len: u16) -> Vec<u8> {
    let mut packet = vec![0; Ipv6Header::LEN];
    let header = Ipv6Header {
        src: (*key.src.as_bytes()).into(),
        dst: (*key.dst.as_bytes()).into(),
        protocol: first.protocol,
        hop_limit: first.hop_limit,
        traffic_class: class,
        flow_label: 0,
        payload_len: len,
        header_len: Ipv6Header::LEN as u16,
        protocol_pointer: 0,
        fragment: None,
    };
    header.emit(&mut packet);
    packet
}

const fn ecn_bit(ecn: Ecn) -> u8 {
    1 << ecn as u8
}

/// Cost of a fragment except its bytes: its place in a tree whose nodes are half full, and what
/// an allocator adds.
const FRAGMENT_COST: usize = 80;
/// Cost of a datagram except its fragments: its record, its places in the orders by key, age and
/// source, each alone in its node, and the first node of its pieces.
const DATAGRAM_COST: usize = 1_024;

#[cfg(test)]
mod tests;
