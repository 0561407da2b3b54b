//! Messages that leave in one packet, or in fragments if the path carries less (RFC 791 2.3,
//! RFC 8200 4.5). Segments never do: TCP cuts its text itself (RFC 9293 3.7.1).

use bytes::Bytes;
use whimbrel_tcp::segment::TxChecksum;
use whimbrel_tcp::table::Identity;
use whimbrel_tcp::{Instant, TxSegment};
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
            let offset = identity.fragment_offset(&local, &remote);
            let identification = offset.wrapping_add(self.counters.fragmented as u32);
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
