//! ICMP and ICMPv6: echo (RFC 792, RFC 4443 4), and how errors are written. Errors that
//! arrive are in [`reports`], those that leave in [`errors`].

mod budget;
mod errors;
mod reports;

use alloc::vec;

use bytes::Bytes;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_wire::{
    Address, Family, IcmpMessage, Icmpv6Message, IpHeader, Protocol, Sum, TrafficClass,
};

use super::arrival::{Input, Refused};
use super::output::{HOP_LIMIT, IpOut};
use super::{Datagram, FrameDrop, IpLayer};
use crate::ping::EchoReply;

pub(crate) use budget::ErrorBudget;
pub(crate) use errors::ErrorOut;

/// A message to be sent.
#[derive(Debug)]
struct IcmpOut {
    local_index: u16,
    remote: Address,
    class: TrafficClass,
    icmp_type: u8,
    code: u8,
    /// The four bytes behind the checksum.
    word: u32,
    /// The message behind its first eight bytes.
    data: Bytes,
}

impl IpLayer {
    /// Reads an ICMP or ICMPv6 message; `own` is the index of the address that it is for, if that is this
    /// host's own.
    pub(super) fn read_icmp<'a>(
        &self,
        ip: &IpHeader,
        own: Option<u16>,
        payload: &'a [u8],
    ) -> Result<Input<'a>, Refused> {
        match (ip.src.family(), ip.protocol) {
            (Family::V4, Protocol::ICMP) => {
                let message = IcmpMessage::parse(payload).map_err(|_| FrameDrop::IcmpHeader)?;
                if let IcmpMessage::EchoRequest { identifier, sequence, data } = message {
                    // That another is there only who reaches it can say.
                    own.ok_or(FrameDrop::OtherHost)?;
                    let mut bytes = vec![0; payload.len()];
                    IcmpMessage::EchoReply { identifier, sequence, data }.emit(&mut bytes);
                    return Ok(Input::Echo(Datagram::answer(ip, bytes.into())));
                }
                if let IcmpMessage::EchoReply { identifier, sequence, data } = message {
                    let local_index = own.ok_or(FrameDrop::OtherHost)?;
                    let number = number_of(identifier, sequence);
                    return Ok(Input::EchoReply(echo_reply(ip, local_index, number, data)));
                }
                let report = self.read_v4_error(&ip.dst, &message)?;
                Ok(Input::Report(report.said(ip, payload)))
            }
            (Family::V6, Protocol::ICMPV6) => {
                let (src, dst) = (v6(&ip.src), v6(&ip.dst));
                let parsed = Icmpv6Message::parse(src, dst, payload);
                let message = parsed.map_err(|_| FrameDrop::IcmpHeader)?;
                if let Icmpv6Message::EchoRequest { identifier, sequence, data } = message {
                    // That another is there only who reaches it can say.
                    own.ok_or(FrameDrop::OtherHost)?;
                    let mut bytes = vec![0; payload.len()];
                    let echo = Icmpv6Message::EchoReply { identifier, sequence, data };
                    echo.emit(dst, src, &mut bytes);
                    return Ok(Input::Echo(Datagram::answer(ip, bytes.into())));
                }
                if let Icmpv6Message::EchoReply { identifier, sequence, data } = message {
                    let local_index = own.ok_or(FrameDrop::OtherHost)?;
                    let number = number_of(identifier, sequence);
                    return Ok(Input::EchoReply(echo_reply(ip, local_index, number, data)));
                }
                let report = self.read_v6_error(&ip.dst, &message)?;
                Ok(Input::Report(report.said(ip, payload)))
            }
            // ICMPv6 in an IPv4 packet, or the reverse.
            _ => Err(Refused::unknown_protocol(ip)),
        }
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
        let (remote, hop_limit) = (&remote, HOP_LIMIT);
        let ip = IpOut { local: &local, remote, protocol, class, hop_limit, fragment: None };
        let at = self.write_ip(&ip, len, tx);
        tx.header_room()[at..at + icmp.len()].copy_from_slice(&icmp);
        tx.set_header_len(at + icmp.len());
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        tx.payload.push(data).is_ok()
    }
}

/// Identifier and sequence number, as one.
fn number_of(identifier: u16, sequence: u16) -> u32 {
    u32::from(identifier) << 16 | u32::from(sequence)
}

fn echo_reply<'a>(ip: &IpHeader, local_index: u16, number: u32, data: &'a [u8]) -> EchoReply<'a> {
    EchoReply { from: ip.src, local_index, number, hop_limit: ip.hop_limit, data }
}

fn v6(addr: &Address) -> core::net::Ipv6Addr {
    core::net::Ipv6Addr::from(*addr.as_bytes())
}
