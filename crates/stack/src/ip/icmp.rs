//! ICMP and ICMPv6: echo (RFC 792, RFC 4443 4).

use bytes::Bytes;
use whimbrel_tcp::TxSegment;
use whimbrel_tcp::segment::TxChecksum;
use whimbrel_wire::{
    Address, Family, IcmpMessage, Icmpv6Message, IpHeader, Protocol, Sum, TrafficClass,
};

use super::output::IpOut;
use super::{FrameDrop, Host};

/// The answer to an echo request.
#[derive(Clone, Debug)]
pub struct EchoReply {
    local_index: u16,
    remote: Address,
    traffic_class: TrafficClass,
    identifier: u16,
    sequence: u16,
    data: Bytes,
}

impl EchoReply {
    /// The answer to the message in `payload`, if it is an echo request.
    pub(super) fn to(ip: &IpHeader, local_index: u16, payload: &[u8]) -> Result<Self, FrameDrop> {
        let (identifier, sequence, data) = match (ip.src.family(), ip.protocol) {
            (Family::V4, Protocol::ICMP) => {
                match IcmpMessage::parse(payload).map_err(|_| FrameDrop::IcmpHeader)? {
                    IcmpMessage::EchoRequest { identifier, sequence, data } => {
                        (identifier, sequence, data)
                    }
                    _ => return Err(FrameDrop::IcmpType),
                }
            }
            (Family::V6, Protocol::ICMPV6) => {
                let (src, dst) = (v6(&ip.src), v6(&ip.dst));
                let parsed = Icmpv6Message::parse(src, dst, payload);
                match parsed.map_err(|_| FrameDrop::IcmpHeader)? {
                    Icmpv6Message::EchoRequest { identifier, sequence, data } => {
                        (identifier, sequence, data)
                    }
                    _ => return Err(FrameDrop::IcmpType),
                }
            }
            // ICMPv6 in an IPv4 packet, or the reverse.
            _ => return Err(FrameDrop::Protocol),
        };
        Ok(Self {
            local_index,
            remote: ip.src,
            traffic_class: ip.traffic_class,
            identifier,
            sequence,
            data: Bytes::copy_from_slice(data),
        })
    }
}

impl Host {
    /// Writes an echo reply.
    pub(crate) fn write_echo(&mut self, echo: EchoReply, tx: &mut TxSegment) -> bool {
        let EchoReply { local_index, remote, traffic_class, identifier, sequence, data } = echo;
        let Some(local) = self.addresses.get(local_index).copied() else { return false };
        let v4 = remote.is_v4();
        let protocol = if v4 { Protocol::ICMP } else { Protocol::ICMPV6 };
        let message_type = if v4 { ECHO_REPLY_V4 } else { ECHO_REPLY_V6 };
        let mut icmp = [message_type, 0, 0, 0, 0, 0, 0, 0];
        icmp[4..6].copy_from_slice(&identifier.to_be_bytes());
        icmp[6..8].copy_from_slice(&sequence.to_be_bytes());
        let len = icmp.len() + data.len();
        let pseudo = if v4 {
            Sum::new()
        } else {
            Sum::pseudo_header(local, remote, Protocol::ICMPV6.0, len as u32)
        };
        let checksum = pseudo.add_bytes(&icmp).add_bytes(&data).finish();
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        // RFC 1349 5.1: the reply's type of service is that of the request.
        let ip = IpOut { local: &local, remote: &remote, protocol, class: traffic_class };
        let at = self.write_ip(&ip, len, tx);
        tx.header_room()[at..at + icmp.len()].copy_from_slice(&icmp);
        tx.set_header_len(at + icmp.len());
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        self.counters.echo_replies += 1;
        tx.payload.push(data).is_ok()
    }
}

const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

fn v6(addr: &Address) -> core::net::Ipv6Addr {
    core::net::Ipv6Addr::from(*addr.octets())
}
