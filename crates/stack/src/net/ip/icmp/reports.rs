//! ICMP errors that arrive: which of our segments or datagrams, and what is wrong with it (RFC 1122
//! 4.1.3.3 and 4.2.3.9, RFC 5461, RFC 5927).

use whimbrel_base::packet::{IcmpError, LEAST_PATH_MTU_V4, SoftError};
use whimbrel_wire::{
    Address, Endpoint, IcmpMessage, Icmpv6Message, IpHeader, Ipv6Header, Protocol, QuotedSegment,
};

use crate::ip::{DatagramReport, EchoReport, ErrorReport, FlowKey, FrameDrop, IcmpReport, IpLayer};

impl IpLayer {
    pub(super) fn read_v4_error(
        &self,
        dst: &Address,
        message: &IcmpMessage<'_>,
    ) -> Result<ErrorReport, FrameDrop> {
        let (error, quoted) = match *message {
            IcmpMessage::DestinationUnreachable { code, quoted } => (judge_v4(code)?, quoted),
            IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted } => {
                (judge_v4_mtu(next_hop_mtu, quoted)?, quoted)
            }
            IcmpMessage::TimeExceeded { code, quoted } => (soft(judge_time(code)), quoted),
            IcmpMessage::ParameterProblem { quoted, .. } => {
                (soft(SoftError::ParameterProblem), quoted)
            }
            // RFC 6633 3: "TCP MUST silently discard any received ICMP Source Quench messages."
            IcmpMessage::SourceQuench { .. } => return Err(FrameDrop::SourceQuench),
            // Anybody could send all traffic astray; routes are the configuration's.
            IcmpMessage::Redirect { .. } => return Err(FrameDrop::Redirect),
            _ => return Err(FrameDrop::IcmpType),
        };
        self.report(dst, error, quoted)
    }

    pub(super) fn read_v6_error(
        &self,
        dst: &Address,
        message: &Icmpv6Message<'_>,
    ) -> Result<ErrorReport, FrameDrop> {
        let (error, quoted) = match *message {
            Icmpv6Message::DestinationUnreachable { code, quoted } => (judge_v6(code)?, quoted),
            Icmpv6Message::PacketTooBig { mtu, quoted } => (judge_v6_mtu(mtu, quoted)?, quoted),
            Icmpv6Message::TimeExceeded { code, quoted } => (soft(judge_time(code)), quoted),
            // Unrecognised next header: IPv6's protocol unreachable.
            Icmpv6Message::ParameterProblem { code: 1, quoted, .. } => (IcmpError::NoTcp, quoted),
            Icmpv6Message::ParameterProblem { quoted, .. } => {
                (soft(SoftError::ParameterProblem), quoted)
            }
            _ => return Err(FrameDrop::IcmpType),
        };
        self.report(dst, error, quoted)
    }

    /// Reports, as this host itself, a packet of its own that never left (RFC 4861 7.2.2: "The
    /// sender MUST return ICMP destination unreachable indications with code 3 (Address
    /// Unreachable) for each packet queued awaiting address resolution").
    pub(crate) fn report_unsent(&self, packet: &[u8]) -> Option<ErrorReport> {
        let own = QuotedSegment::parse(packet).ok()?.src;
        self.report(&own, soft(SoftError::HostUnreachable), packet).ok()
    }

    /// Finds out whose segment or datagram is quoted by what was sent to `dst`.
    fn report(
        &self,
        dst: &Address,
        error: IcmpError,
        quoted: &[u8],
    ) -> Result<ErrorReport, FrameDrop> {
        let quoted = QuotedSegment::parse(quoted).map_err(|_| FrameDrop::IcmpQuote)?;
        // What was sent from another address would have been reported to that.
        if quoted.src != *dst {
            return Err(FrameDrop::IcmpQuote);
        }
        match quoted.protocol {
            Protocol::TCP => {}
            Protocol::UDP => {
                let from = Endpoint::new(quoted.src, quoted.src_port);
                let to = Endpoint::new(quoted.dst, quoted.dst_port);
                // Who says so, the message around it says.
                let reporter = quoted.src;
                return Ok(ErrorReport::Datagram(DatagramReport { from, to, reporter, error }));
            }
            Protocol::ICMP | Protocol::ICMPV6 => {
                // Of an answer nothing is remembered, and the path's MTU is all that helps the next one.
                if let (IcmpError::TooBig { mtu }, true) = (error, quoted.is_echo_reply()) {
                    return Ok(ErrorReport::EchoReply { to: quoted.dst, mtu });
                }
                let number = quoted.echo_request().ok_or(FrameDrop::IcmpNoSocket)?;
                // Who says so, and by which code, the message around it says.
                let (from, to, code) = (quoted.src, quoted.dst, HOST_UNREACHABLE);
                return Ok(ErrorReport::Echo(EchoReport { from, to, number, code, error }));
            }
            _ => return Err(FrameDrop::IcmpNoSocket),
        }
        // Without a number there is no record either.
        let local_index = self.addresses.index_of_any(dst).ok_or(FrameDrop::OtherHost)?;
        let seq = quoted.seq.ok_or(FrameDrop::IcmpQuote)?;
        let key = FlowKey {
            remote: quoted.dst,
            remote_port: quoted.dst_port,
            local_port: quoted.src_port,
            local_index,
        };
        Ok(ErrorReport::Segment(IcmpReport { key, seq, error }))
    }
}

impl ErrorReport {
    /// Adds the sender and the code of the message in `payload` of this packet.
    pub(super) fn said(self, ip: &IpHeader, payload: &[u8]) -> Self {
        match self {
            Self::Echo(report) => {
                let code = payload.get(1).copied().unwrap_or_default();
                Self::Echo(EchoReport { from: ip.src, code, ..report })
            }
            Self::Datagram(report) => Self::Datagram(DatagramReport { reporter: ip.src, ..report }),
            other => other,
        }
    }
}

/// RFC 1122 3.2.2.1 and 4.2.3.9, RFC 1812 5.2.7.1; whether unknown and prohibited destinations
/// are hard is as in Linux.
fn judge_v4(code: u8) -> Result<IcmpError, FrameDrop> {
    match code {
        0 | 11 => Ok(soft(SoftError::NetworkUnreachable)),
        1 | 12 => Ok(soft(SoftError::HostUnreachable)),
        5 => Ok(soft(SoftError::SourceRouteFailed)),
        2 => Ok(IcmpError::NoTcp),
        3 => Ok(IcmpError::Refused),
        6..=10 | 13..=15 => Ok(IcmpError::Prohibited),
        _ => Err(FrameDrop::IcmpType),
    }
}

/// Returns the meaning of ICMPv6's destination unreachable for a connection (RFC 4443 3.1).
fn judge_v6(code: u8) -> Result<IcmpError, FrameDrop> {
    match code {
        0 => Ok(soft(SoftError::NetworkUnreachable)),
        2 | 3 => Ok(soft(SoftError::HostUnreachable)),
        4 => Ok(IcmpError::Refused),
        1 | 5 | 6 => Ok(IcmpError::Prohibited),
        _ => Err(FrameDrop::IcmpType),
    }
}

/// RFC 792, RFC 4443 3.3: in transit, or while fragments were waited for.
const fn judge_time(code: u8) -> SoftError {
    if code == 0 { SoftError::TimeExceeded } else { SoftError::FragmentsLost }
}

const fn soft(error: SoftError) -> IcmpError {
    IcmpError::Soft(error)
}

/// Fragmentation needed (RFC 1191 4 and 7.1).
fn judge_v4_mtu(next_hop_mtu: u16, quoted: &[u8]) -> Result<IcmpError, FrameDrop> {
    let len = field(quoted, 2).ok_or(FrameDrop::IcmpQuote)?;
    let mtu = match next_hop_mtu {
        // A router that does not know RFC 1191: the next common size below, or one that is not believed.
        0 => PLATEAUS.into_iter().find(|plateau| u32::from(*plateau) < len).unwrap_or(0),
        mtu => mtu,
    };
    judge_mtu(u32::from(mtu), 0, len)
}

/// Packet too big (RFC 8201 4).
fn judge_v6_mtu(mtu: u32, quoted: &[u8]) -> Result<IcmpError, FrameDrop> {
    let len = field(quoted, 4).ok_or(FrameDrop::IcmpQuote)? + Ipv6Header::LEN as u32;
    // RFC 8201 4: "If a node receives a Packet Too Big message reporting a next-hop MTU that is
    // less than the IPv6 minimum link MTU, it must discard it."
    judge_mtu(mtu, LEAST_MTU_V6, len)
}

/// RFC 5927 7.2: a link that would have carried the packet did not refuse it.
fn judge_mtu(mtu: u32, least: u32, len: u32) -> Result<IcmpError, FrameDrop> {
    match u16::try_from(mtu) {
        Ok(bytes) if (least..len).contains(&mtu) => Ok(IcmpError::TooBig { mtu: bytes }),
        _ => Err(FrameDrop::PathMtu),
    }
}

/// The 16 bits at an offset.
fn field(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from(u16::from_be_bytes(*field)))
}

/// The code of a report about a packet of its own whose neighbour does not answer (RFC 792; in ICMPv6 it means
/// the same as 3, address unreachable).
const HOST_UNREACHABLE: u8 = 1;
/// RFC 1191 7.1's common sizes, and the least that is believed in place of those below.
const PLATEAUS: [u16; 8] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, LEAST_PATH_MTU_V4];

/// RFC 8200 5: every IPv6 link carries this.
const LEAST_MTU_V6: u32 = 1_280;
