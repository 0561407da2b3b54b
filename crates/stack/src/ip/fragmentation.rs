//! Messages that leave in one packet, or in fragments if the path carries less (RFC 791 2.3,
//! RFC 8200 4.5). Segments never do: TCP cuts its text itself (RFC 9293 3.7.1).
//!
//! Identifications are RFC 7739 5.3's: an offset for each pair of hosts, and a counter that few
//! networks share, so that nobody learns from packets to himself how many go to others. Whoever
//! fills what 16 bits of IPv4 count asks for 65,536 large echoes within two minutes, and spoils
//! his own alone (RFC 6864 4.3).

use alloc::boxed::Box;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::TxSegment;
use whimbrel_tcp::segment::TxChecksum;
use whimbrel_tcp::table::Identity;
use whimbrel_wire::{Address, Family, Fragment, Ipv4Header, Ipv6Header, Protocol, TrafficClass};

use super::Host;
use super::output::{HOP_LIMIT, IpOut};

/// A message with its transport header, and how much of it left already.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub(super) local_index: u16,
    pub(super) remote: Address,
    pub(super) protocol: Protocol,
    pub(super) class: TrafficClass,
    /// What did not leave yet.
    pub(super) payload: Bytes,
    /// The fragment to come, once the first of them left.
    pub(super) next: Option<Fragment>,
}

impl Datagram {
    /// Whether all of it left.
    pub(crate) fn is_done(&self) -> bool {
        self.payload.is_empty()
    }

    /// Octets that did not leave yet.
    pub(crate) fn octets(&self) -> usize {
        self.payload.len()
    }
}

/// The counters of fragmented packets, made when the first is.
#[derive(Debug, Default)]
pub(crate) struct Identifications(Option<Box<[u32]>>);

impl Identifications {
    /// RFC 7739 5.3: "System-wide array of 32-bit counters (e.g. with 8K elements or more)": 32 KiB.
    const COUNTERS: u16 = 8_192;

    /// The next one of packets from `local` to `remote`.
    fn next(&mut self, identity: &Identity, shard: u16, local: &Address, remote: &Address) -> u32 {
        // "Each counter should be initialized to a pseudo-random value".
        let start = || (0..Self::COUNTERS).map(|it| identity.fragment_start(shard, it)).collect();
        let counters = self.0.get_or_insert_with(start);
        let place = identity.fragment_counter(local, remote) % u32::from(Self::COUNTERS);
        let Some(counter) = counters.get_mut(place as usize) else { return 0 };
        *counter = counter.wrapping_add(1);
        identity.fragment_offset(local, remote).wrapping_add(*counter)
    }
}

impl Host {
    /// Writes the next packet of `datagram`, and takes it off. `false` if there is none.
    pub(crate) fn write_datagram(
        &mut self,
        datagram: &mut Datagram,
        identity: &Identity,
        now: Instant,
        tx: &mut TxSegment,
    ) -> bool {
        let Some(local) = self.addresses.get(datagram.local_index).copied() else {
            datagram.payload.clear();
            return false;
        };
        let remote = datagram.remote;
        let mtu = self.path_mtus.find(now, &remote).unwrap_or(self.capabilities.mtu);
        let (whole, part) = room(remote.family(), usize::from(mtu));
        if datagram.next.is_none() && datagram.payload.len() > whole {
            self.counters.fragmented += 1;
            let shard = self.capabilities.steering.queue();
            let identification = self.identifications.next(identity, shard, &local, &remote);
            datagram.next = Some(Fragment { identification, offset: 0, more: true });
        }
        let fragment = datagram.next.as_mut().map(|next| {
            next.more = datagram.payload.len() > part;
            let this = *next;
            next.offset = this.offset.saturating_add(part as u16);
            this
        });
        let len = if fragment.is_some() { part } else { whole }.min(datagram.payload.len());
        let octets = datagram.payload.split_to(len);
        self.counters.fragments_created += u64::from(fragment.is_some());
        let Datagram { protocol, class, .. } = *datagram;
        let ip = IpOut {
            local: &local,
            remote: &remote,
            protocol,
            class,
            hop_limit: HOP_LIMIT,
            fragment,
        };
        let at = self.write_ip(&ip, len, tx);
        tx.set_header_len(at);
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        tx.payload.push(octets).is_ok()
    }
}

/// The octets that a whole packet of `mtu` carries, and a fragment: units of eight (RFC 791 3.1).
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
