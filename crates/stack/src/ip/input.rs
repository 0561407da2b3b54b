//! From a frame to a segment: whatever does not become one is dropped here, with a reason.

use whimbrel_tcp::conn::Connection;
use whimbrel_tcp::segment::RxChecksum;
use whimbrel_tcp::table::{Ended, SynEntry, TimeWait};
use whimbrel_tcp::{Payload, RxSegment, SegMeta};
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint, IpHeader, ParseError, Protocol, Sum};

use super::{EchoReply, FrameDrop, Host};
use crate::RxFrame;

/// A frame that asks something of this host.
#[derive(Debug)]
pub(crate) enum Arrived<'a> {
    Segment(Arrival<'a>),
    Echo(EchoReply),
}

/// A segment, and the flow it belongs to.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) key: FlowKey,
    pub(crate) segment: RxSegment<'a>,
}

/// A 4-tuple in 22 octets: what every record of a flow holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowKey {
    pub(crate) remote: Address,
    pub(crate) remote_port: u16,
    pub(crate) local_port: u16,
    pub(crate) local_index: u16,
}

impl FlowKey {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            remote: *connection.remote(),
            remote_port: connection.remote_port(),
            local_port: connection.local_port(),
            local_index: connection.local_index(),
        }
    }

    pub(crate) fn of_half_open(entry: &SynEntry) -> Self {
        let Endpoint { addr: remote, port: remote_port } = entry.remote();
        let (local_port, local_index) = (entry.local_port(), entry.local_index());
        Self { remote, remote_port, local_port, local_index }
    }

    pub(crate) fn of_waiting(wait: &TimeWait) -> Self {
        let Ended { remote, remote_port, local_port, local_index, .. } = wait.ended();
        Self { remote, remote_port, local_port, local_index }
    }
}

impl Host {
    /// Reads a frame. Everything that a peer can get wrong is found out here.
    pub(crate) fn read<'a>(&self, frame: &RxFrame<'a>) -> Result<Arrived<'a>, FrameDrop> {
        let (ip, payload) = IpHeader::parse(frame.octets).map_err(|error| match error {
            ParseError::BadChecksum => FrameDrop::Checksum,
            _ => FrameDrop::Header,
        })?;
        // RFC 1122 3.2.1.3: "A host MUST silently discard an incoming datagram that is not
        // destined for the host."
        let local_index = self.addresses.index_of(&ip.dst).ok_or(FrameDrop::OtherHost)?;
        if is_martian(&ip.src) || self.addresses.index_of(&ip.src).is_some() {
            return Err(FrameDrop::Martian);
        }
        if ip.fragment.is_some() {
            return Err(FrameDrop::Fragment);
        }
        match ip.protocol {
            Protocol::TCP => {
                read_segment(&ip, local_index, payload, frame.meta).map(Arrived::Segment)
            }
            Protocol::ICMP | Protocol::ICMPV6 => {
                EchoReply::to(&ip, local_index, payload).map(Arrived::Echo)
            }
            _ => Err(FrameDrop::Protocol),
        }
    }
}

fn read_segment<'a>(
    ip: &IpHeader,
    local_index: u16,
    octets: &'a [u8],
    mut meta: SegMeta,
) -> Result<Arrival<'a>, FrameDrop> {
    let (header, header_len) = TcpHeader::parse(octets).map_err(|_| FrameDrop::TcpHeader)?;
    // RFC 9293 3.1: "The sender MUST generate it (MUST-2) and the receiver MUST check it (MUST-3)."
    if meta.checksum == RxChecksum::Unknown {
        let len = octets.len() as u32;
        let sum = Sum::pseudo_header(ip.src, ip.dst, Protocol::TCP.0, len);
        if !sum.add_bytes(octets).is_valid() {
            return Err(FrameDrop::TcpChecksum);
        }
        meta.checksum = RxChecksum::Verified;
    }
    if header.src_port == 0 || header.dst_port == 0 {
        return Err(FrameDrop::TcpPort);
    }
    let key = FlowKey {
        remote: ip.src,
        remote_port: header.src_port,
        local_port: header.dst_port,
        local_index,
    };
    let text = octets.get(header_len..).unwrap_or_default();
    Ok(Arrival { key, segment: RxSegment { header, payload: Payload::Borrowed(text), meta } })
}

/// RFC 1122 3.2.1.3: "A host MUST silently discard an incoming datagram containing an IP source
/// address that is invalid by the rules of this section."
fn is_martian(src: &Address) -> bool {
    src.is_unspecified() || src.is_multicast_or_broadcast() || src.to_ip().is_loopback()
}

#[cfg(test)]
mod tests;
