//! ICMP and ICMPv6: echo (RFC 792, RFC 4443 4), and how every message is written. Errors that
//! arrive are in [`reports`], those that leave in [`errors`].

mod budget;
mod errors;
mod reports;

use bytes::Bytes;
use whimbrel_tcp::TxSegment;
use whimbrel_tcp::segment::TxChecksum;
use whimbrel_wire::{
    Address, Family, IcmpMessage, Icmpv6Message, IpHeader, Protocol, Sum, TrafficClass,
};

use super::input::{Arrived, Refused};
use super::output::{HOP_LIMIT, IpOut};
use super::{FrameDrop, Host};

pub(crate) use budget::ErrorBudget;
pub(crate) use errors::{Answer, ErrorOut};
pub(crate) use reports::Report;

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
    /// The answer to a request with these fields.
    fn to(ip: &IpHeader, local_index: u16, [identifier, sequence]: [u16; 2], data: &[u8]) -> Self {
        Self {
            local_index,
            remote: ip.src,
            traffic_class: ip.traffic_class,
            identifier,
            sequence,
            data: Bytes::copy_from_slice(data),
        }
    }
}

/// A message to be sent.
#[derive(Debug)]
struct IcmpOut {
    local_index: u16,
    remote: Address,
    class: TrafficClass,
    icmp_type: u8,
    code: u8,
    /// The four octets behind the checksum.
    word: u32,
    /// What follows them.
    data: Bytes,
}

impl Host {
    /// Reads an ICMP or ICMPv6 message for the address with this index.
    pub(super) fn read_icmp<'a>(
        &self,
        ip: &IpHeader,
        local_index: u16,
        payload: &[u8],
    ) -> Result<Arrived<'a>, Refused> {
        match (ip.src.family(), ip.protocol) {
            (Family::V4, Protocol::ICMP) => {
                let message = IcmpMessage::parse(payload).map_err(|_| FrameDrop::IcmpHeader)?;
                if let IcmpMessage::EchoRequest { identifier, sequence, data } = message {
                    let echo = EchoReply::to(ip, local_index, [identifier, sequence], data);
                    return Ok(Arrived::Echo(echo));
                }
                Ok(Arrived::Report(self.read_v4_error(local_index, &message)?))
            }
            (Family::V6, Protocol::ICMPV6) => {
                let (src, dst) = (v6(&ip.src), v6(&ip.dst));
                let parsed = Icmpv6Message::parse(src, dst, payload);
                let message = parsed.map_err(|_| FrameDrop::IcmpHeader)?;
                if let Icmpv6Message::EchoRequest { identifier, sequence, data } = message {
                    let echo = EchoReply::to(ip, local_index, [identifier, sequence], data);
                    return Ok(Arrived::Echo(echo));
                }
                Ok(Arrived::Report(self.read_v6_error(local_index, &message)?))
            }
            // ICMPv6 in an IPv4 packet, or the reverse.
            _ => Err(Refused::unknown_protocol(ip)),
        }
    }

    /// Writes an echo reply.
    pub(crate) fn write_echo(&mut self, echo: EchoReply, tx: &mut TxSegment) -> bool {
        let EchoReply { local_index, remote, traffic_class, identifier, sequence, data } = echo;
        let out = IcmpOut {
            local_index,
            remote,
            // RFC 1349 5.1: the reply's type of service is that of the request.
            class: traffic_class,
            icmp_type: if remote.is_v4() { ECHO_REPLY_V4 } else { ECHO_REPLY_V6 },
            code: 0,
            word: (u32::from(identifier) << 16) | u32::from(sequence),
            data,
        };
        self.counters.echo_replies += 1;
        self.write_icmp(out, tx)
    }

    fn write_icmp(&mut self, out: IcmpOut, tx: &mut TxSegment) -> bool {
        let IcmpOut { local_index, remote, class, icmp_type, code, word, data } = out;
        let Some(local) = self.addresses.get(local_index).copied() else { return false };
        let v4 = remote.is_v4();
        let protocol = if v4 { Protocol::ICMP } else { Protocol::ICMPV6 };
        let mut icmp = [icmp_type, code, 0, 0, 0, 0, 0, 0];
        icmp[4..].copy_from_slice(&word.to_be_bytes());
        let len = icmp.len() + data.len();
        let pseudo = if v4 {
            Sum::new()
        } else {
            Sum::pseudo_header(local, remote, Protocol::ICMPV6.0, len as u32)
        };
        let checksum = pseudo.add_bytes(&icmp).add_bytes(&data).finish();
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        let hop_limit = HOP_LIMIT;
        let ip = IpOut { local: &local, remote: &remote, protocol, class, hop_limit };
        let at = self.write_ip(&ip, len, tx);
        tx.header_room()[at..at + icmp.len()].copy_from_slice(&icmp);
        tx.set_header_len(at + icmp.len());
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        tx.payload.push(data).is_ok()
    }
}

const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

fn v6(addr: &Address) -> core::net::Ipv6Addr {
    core::net::Ipv6Addr::from(*addr.octets())
}
