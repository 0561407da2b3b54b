//! Messages that leave in one packet, or in fragments if the path carries less (RFC 791 2.3,
//! RFC 8200 4.5). Segments never do: TCP cuts its text itself (RFC 9293 3.7.1). Towards an IPv4 path that
//! carries less than is believed of one, packets leave whole and routers may fragment them.
//!
//! Identifications are RFC 7739 5.3's: an offset for each pair of hosts, and a counter that few
//! networks share, so that no host learns from its packets how many go to others. A host that
//! fills what 16 bits of IPv4 count asks for 65,536 large echoes within two minutes, and spoils
//! his own alone (RFC 6864 4.3).

use alloc::boxed::Box;

use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_base::{Instant, Key, PairHasher};
use whimbrel_udp::Fragmenting;
use whimbrel_wire::{Address, Family, Fragment, Ipv4Header, Ipv6Header, Protocol};

use super::IpLayer;
use super::datagram::Datagram;
use super::output::IpOut;

/// Chooses identifications: where they begin for each pair of hosts, and counters for many.
#[derive(Debug)]
pub(crate) struct Identifications {
    hasher: PairHasher,
    /// Made when the first packet leaves in fragments.
    counters: Option<Box<[u32]>>,
}

impl Identifications {
    /// RFC 7739 5.3: "System-wide array of 32-bit counters (e.g. with 8K elements or more)": 32 KiB.
    const COUNTERS: u16 = 8_192;

    /// Those of a host with this key.
    pub(crate) fn new(key: &Key) -> Self {
        Self { hasher: PairHasher::new(key), counters: None }
    }

    /// The next one of packets from `local` to `remote`; with it so many less one that follow are taken.
    fn next(&mut self, shard: u16, local: &Address, remote: &Address, count: u32) -> u32 {
        let Self { hasher, counters } = self;
        // "Each counter should be initialized to a pseudo-random value".
        let start = || (0..Self::COUNTERS).map(|it| start(hasher, shard, it)).collect();
        let counters = counters.get_or_insert_with(start);
        let place = counter(hasher, local, remote) % u32::from(Self::COUNTERS);
        let Some(counter) = counters.get_mut(place as usize) else { return 0 };
        let first = counter.wrapping_add(1);
        *counter = counter.wrapping_add(count);
        offset(hasher, local, remote).wrapping_add(first)
    }
}

/// Returns the first identification of fragments towards one host (RFC 7739 5.3's F): no one
/// else can guess them, and spoil packets by fragments of his own.
fn offset(hasher: &PairHasher, local: &Address, remote: &Address) -> u32 {
    // The other half of the hash, so that what a peer sees of TCP's timestamps tells nothing of this.
    (hasher.hash(local, remote) >> 32) as u32
}

/// Which of many counters counts the fragmented packets towards one network (RFC 7739 5.3's
/// G): all 32 bits are to be used, by a remainder.
///
/// "the 'Destination Prefix' (rather than Destination Address) is used, such that the ability of
/// an attacker of searching the 'increments' space by using multiple addresses of the same
/// subnet is reduced": 64 bits of an IPv6 address, 24 of an IPv4 address.
fn counter(hasher: &PairHasher, local: &Address, remote: &Address) -> u32 {
    // Lengths that nothing else has under this key: its other hashes tell nothing of this one.
    if local.is_v4() {
        let ([a, b, c, d], [e, f, g, _]) = (local.v4_bytes(), remote.v4_bytes());
        return hasher.prf().hash(&[a, b, c, d, e, f, g]) as u32;
    }
    let mut bytes = [0; 24];
    let (front, back) = bytes.split_at_mut(16);
    front.copy_from_slice(local.as_bytes());
    back.copy_from_slice(&remote.as_bytes()[..8]);
    hasher.prf().hash(&bytes) as u32
}

/// Returns the start of a counter of fragmented packets. Shards of one host share their keys, and
/// each starts elsewhere.
fn start(hasher: &PairHasher, shard: u16, counter: u16) -> u32 {
    let ([a, b], [c, d]) = (shard.to_be_bytes(), counter.to_be_bytes());
    hasher.prf().hash(&[a, b, c, d]) as u32
}

impl IpLayer {
    /// Writes the next packet of `datagram`, and takes it off. `false` if there is none.
    pub(crate) fn write_datagram(
        &mut self,
        datagram: &mut Datagram,
        now: Instant,
        tx: &mut TxSegment,
    ) -> bool {
        let (local, remote) = (datagram.local, datagram.remote);
        if self.addresses.local_index_of(&local).is_none() && !self.accepts_foreign(&local) {
            datagram.payload.clear();
            return false;
        }
        let mut mtu = self.datagram_mtu(now, &remote);
        if datagram.protocol != Protocol::UDP {
            mtu = self.reply_mtus.find(now, &remote).map_or(mtu, |known| known.min(mtu));
        }
        let (whole, part) = room(remote.family(), usize::from(mtu));
        if datagram.next.is_none() && datagram.payload.len() > whole {
            self.counters.fragmented += 1;
            let identification = self.next_identification(&local, &remote, 1);
            datagram.next = Some(Fragment { identification, offset: 0, more: true });
        }
        let fragment = datagram.next.as_mut().map(|next| {
            next.more = datagram.payload.len() > part;
            let this = *next;
            next.offset = this.offset.saturating_add(part as u16);
            this
        });
        let len = if fragment.is_some() { part } else { whole }.min(datagram.payload.len());
        let bytes = datagram.payload.split_to(len);
        self.counters.fragments_created += u64::from(fragment.is_some());
        let fragment = fragment.or_else(|| self.may_be_cut(datagram, now));
        let Datagram { protocol, class, hop_limit, .. } = *datagram;
        let ip = IpOut { local: &local, remote: &remote, protocol, class, hop_limit, fragment };
        let at = self.write_ip(&ip, len, tx);
        tx.set_header_len(at);
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        tx.payload.push(bytes).is_ok()
    }

    /// The whole of a message as the only fragment of itself, if routers may cut it.
    fn may_be_cut(&mut self, datagram: &Datagram, now: Instant) -> Option<Fragment> {
        let Datagram { local, remote, protocol, fragmenting, .. } = datagram;
        let is_narrow = self.is_narrow_to_datagrams(now, remote)
            || (*protocol != Protocol::UDP && self.reply_mtus.has_fragments(now, remote));
        let may = is_narrow && *fragmenting == Fragmenting::Allowed;
        may.then(|| self.whole_fragment(local, remote, 1))
    }

    /// A packet that is whole and may be fragmented, or so many that the device cuts of one.
    pub(super) fn whole_fragment(
        &mut self,
        local: &Address,
        remote: &Address,
        count: u32,
    ) -> Fragment {
        let identification = self.next_identification(local, remote, count);
        Fragment { identification, offset: 0, more: false }
    }

    /// Has routers fragment a segment towards a path that carries less than is believed of one.
    pub(crate) fn allow_fragments(&mut self, now: Instant, tx: &mut TxSegment) {
        let at = self.link_header_len();
        let segments = tx.payload.bytes().div_ceil(u32::from(tx.gso_size).max(1));
        let count = if tx.gso_size == 0 { 1 } else { segments.max(1) };
        let Some(bytes) = tx.header_room()[at..].first_chunk_mut::<{ Ipv4Header::LEN }>() else {
            return;
        };
        let [first, .., s0, s1, s2, s3, d0, d1, d2, d3] = *bytes;
        if first >> 4 != 4 || bytes[PROTOCOL_AT] != Protocol::TCP.0 {
            return;
        }
        let local = Address::from_v4_bytes([s0, s1, s2, s3]);
        let remote = Address::from_v4_bytes([d0, d1, d2, d3]);
        // RFC 1191 3: "The host may either reduce the size of the datagrams it is sending along the path, or
        // cease setting the Don't Fragment bit in the headers of those datagrams."
        if self.path_mtus.has_fragments(now, &remote) {
            // RFC 6864 4.3: "Sources emitting non-atomic datagrams MUST NOT repeat IPv4 ID values within one
            // MDL for a given source address/destination address/protocol tuple."
            let identification = self.next_identification(&local, &remote, count);
            Ipv4Header::allow_fragments(bytes, identification as u16);
        }
    }

    fn next_identification(&mut self, local: &Address, remote: &Address, count: u32) -> u32 {
        let shard = self.capabilities.steering.queue();
        self.identifications.next(shard, local, remote, count)
    }
}

/// Offset of IPv4's Protocol field, bytes.
const PROTOCOL_AT: usize = 9;

/// The bytes that a whole packet of `mtu` carries, and a fragment: units of eight (RFC 791 3.1).
fn room(family: Family, mtu: usize) -> (usize, usize) {
    let (header, more) = match family {
        Family::V4 => (Ipv4Header::LEN, 0),
        Family::V6 => (Ipv6Header::LEN, Fragment::HEADER_LEN),
    };
    let part = mtu.saturating_sub(header + more) / 8 * 8;
    (mtu.saturating_sub(header), part.max(8))
}

#[cfg(test)]
mod tests;
