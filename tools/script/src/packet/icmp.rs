//! ICMP messages as written, by name or number, most of them errors about a segment of the host.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{
    Flow, IpHeader, Ipv4Header, Ipv6Header, Protocol, QuotedSegment, SeqNum, Sum, TrafficClass,
};

use super::super::ast::{IcmpPacket, IpMarks, Quoted, Seq};
use super::build::{HOP_LIMIT, traffic_class};
use super::segment::IpFields;
use super::{FlowState, Segment};

/// Type and code of an ICMP message.
type Kind = (u8, u8);

/// The packet that carries the error from the peer's address to the host, about a segment between
/// the ends `about`. An error says what cannot be sent.
pub fn error(
    packet: &IcmpPacket,
    marks: IpMarks,
    flow: &FlowState,
    about: Flow,
) -> Result<Vec<u8>, String> {
    let quoted = quote(packet, flow, about);
    let is_v4 = flow.live.local.addr.is_v4();
    let kind = kind(packet, is_v4)?;
    let (src, dst) = (flow.live.remote.addr, flow.live.local.addr);
    let mut message = message(kind, fields(packet, kind, is_v4), &quoted);
    let len = message.len() as u32;
    let (protocol, sum) = match is_v4 {
        true => (Protocol::ICMP, Sum::new()),
        false => (Protocol::ICMPV6, Sum::pseudo_header(src, dst, Protocol::ICMPV6.0, len)),
    };
    let checksum = sum.add_bytes(&message).finish().to_be_bytes();
    message.splice(CHECKSUM, checksum);
    let ip = IpFields {
        flow: Flow { local: flow.live.remote, remote: flow.live.local },
        protocol,
        traffic_class: traffic_class(marks),
        hop_limit: marks.ttl.unwrap_or(HOP_LIMIT),
    };
    Ok(ip.wrap(&message))
}

/// Compares an outbound packet with the written error. `flow` is the connection whose numbers the
/// quotation is written with, if there is one.
pub fn judge(
    expected: &IcmpPacket,
    packet: &[u8],
    flow: Option<&FlowState>,
) -> Result<(), (String, String)> {
    let Ok((ip, payload)) = IpHeader::parse(packet) else {
        return Err(("an ICMP message".into(), "a packet that cannot be read".into()));
    };
    let is_v4 = ip.src.is_v4();
    let wanted = kind(expected, is_v4).map_err(|why| (why, "an ICMP message".into()))?;
    let protocol = if is_v4 { Protocol::ICMP } else { Protocol::ICMPV6 };
    let name = |(icmp_type, code): Kind| format!("ICMP type {icmp_type} code {code}");
    let [icmp_type, code, _, _, a, b, c, d, quoted @ ..] = payload else {
        return Err((name(wanted), format!("{} bytes of ICMP", payload.len())));
    };
    if ip.protocol != protocol {
        return Err((name(wanted), format!("protocol {}", ip.protocol.0)));
    }
    let came = (*icmp_type, *code);
    if came != wanted {
        return Err((name(wanted), name(came)));
    }
    let mtu = if is_v4 { [0, 0, *c, *d] } else { [*a, *b, *c, *d] };
    judge_field("mtu", expected.mtu, u32::from_be_bytes(mtu))?;
    match expected.quoted.as_deref() {
        Some(wanted) => judge_quote(wanted, quoted, flow),
        None => Ok(()),
    }
}

/// Compares the quotation of the peer's segment in an error of the host.
fn judge_quote(
    wanted: &Quoted,
    quoted: &[u8],
    flow: Option<&FlowState>,
) -> Result<(), (String, String)> {
    let Some(seq) = QuotedSegment::parse(quoted).ok().and_then(|segment| segment.seq) else {
        return Err(("a quoted segment".into(), "none that can be read".into()));
    };
    let base = flow.map(|flow| flow.remote(0)).filter(|_| wanted.flags != Some(TcpFlags::SYN));
    let (seq, wanted) = match wanted.seq {
        Seq::Any => return Ok(()),
        Seq::Absolute(n) => (seq.raw(), n),
        Seq::Relative(n) => (seq.offset_from(base.unwrap_or_default()), n),
    };
    judge_field("quoted number", Some(wanted), seq)
}

fn judge_field(name: &str, wanted: Option<u32>, came: u32) -> Result<(), (String, String)> {
    match wanted {
        Some(wanted) if wanted != came => Err((format!("{name} {wanted}"), format!("{came}"))),
        _ => Ok(()),
    }
}

/// Quotation of a router: the IP header, and a number of bytes of the segment; only the TCP header
/// if no number is written.
fn quote(packet: &IcmpPacket, flow: &FlowState, about: Flow) -> Vec<u8> {
    let (seq, len, flags) = match packet.quoted.as_deref() {
        None => (flow.local(0), 0, TcpFlags::SYN),
        Some(quoted) => {
            let seq = match quoted.seq {
                Seq::Relative(n) => flow.local(n),
                Seq::Absolute(n) => SeqNum::new(n),
                Seq::Any => flow.local(0),
            };
            (seq, quoted.len as usize, quoted.flags.unwrap_or(TcpFlags::ACK))
        }
    };
    let segment = Segment {
        src: about.local,
        dst: about.remote,
        traffic_class: TrafficClass(0),
        hop_limit: HOP_LIMIT,
        flags,
        seq,
        ack: flow.remote(0),
        win: 0,
        urg: 0,
        options: Vec::new(),
        text: vec![0; len],
    };
    let mut whole = segment.emit();
    let header = if about.local.addr.is_v4() { Ipv4Header::LEN } else { Ipv6Header::LEN };
    let first = packet.quoted.as_deref().and_then(|quoted| quoted.first);
    let quoted = first.map_or(whole.len() - len, |first| header + usize::from(first));
    whole.truncate(quoted);
    whole
}

/// The message with a checksum of 0.
fn message(kind: Kind, fields: [u8; 4], quoted: &[u8]) -> Vec<u8> {
    let (icmp_type, code) = kind;
    let mut bytes = Vec::with_capacity(8 + quoted.len());
    bytes.extend([icmp_type, code, 0, 0]);
    bytes.extend(fields);
    bytes.extend(quoted);
    bytes
}

/// Bytes between checksum and quotation: an MTU, a gateway, an identifier, or nothing.
fn fields(packet: &IcmpPacket, kind: Kind, is_v4: bool) -> [u8; 4] {
    let [a, b, c, d] = packet.mtu.unwrap_or(0).to_be_bytes();
    let [high, low] = packet.id.unwrap_or(0).to_be_bytes();
    match (is_v4, kind.0, kind.1) {
        // RFC 1191 4: the MTU is in the low-order 16 bits.
        (true, 3, 4) => [0, 0, c, d],
        (true, 5, _) => GATEWAY,
        (false, 2, _) => [a, b, c, d],
        _ => [high, low, 0, 0],
    }
}

fn kind(packet: &IcmpPacket, is_v4: bool) -> Result<Kind, String> {
    let kinds = if is_v4 { V4_KINDS } else { V6_KINDS };
    let named = kinds.iter().find(|(name, ..)| *name == packet.kind);
    let (icmp_type, codes) = match (named, packet.kind.strip_prefix("type_")) {
        (Some((_, icmp_type, codes)), _) => (Ok(*icmp_type), *codes),
        (None, Some(number)) => (number.parse(), &[][..]),
        (None, None) => {
            return Err(format!("ICMP {} is not supported for this family", packet.kind));
        }
    };
    let icmp_type = icmp_type.map_err(|_| format!("there is no ICMP {}", packet.kind))?;
    let Some(code) = packet.code.as_deref() else { return Ok((icmp_type, 0)) };
    let number = match codes.iter().find(|(name, _)| *name == code) {
        Some((_, number)) => Ok(*number),
        None => code.strip_prefix("code_").unwrap_or(code).parse(),
    };
    let number = number.map_err(|_| format!("ICMP {} has no code {code}", packet.kind))?;
    Ok((icmp_type, number))
}

/// Name and type, with the names of its codes.
type Named = (&'static str, u8, &'static [(&'static str, u8)]);

/// RFC 792, RFC 1122 3.2.2.1, RFC 1812 5.2.7.1.
const V4_KINDS: &[Named] = &[
    (
        "unreachable",
        3,
        &[
            ("net_unreachable", 0),
            ("host_unreachable", 1),
            ("protocol_unreachable", 2),
            ("port_unreachable", 3),
            ("frag_needed", 4),
            ("source_route_failed", 5),
            ("net_unknown", 6),
            ("host_unknown", 7),
            ("source_host_isolated", 8),
            ("net_prohibited", 9),
            ("host_prohibited", 10),
            ("net_unreachable_for_tos", 11),
            ("host_unreachable_for_tos", 12),
            ("packet_filtered", 13),
            ("comm_prohibited", 13),
            ("host_precedence_violation", 14),
            ("precedence_violation", 14),
            ("precedence_cutoff", 15),
        ],
    ),
    ("source_quench", 4, &[]),
    (
        "redirect",
        5,
        &[
            ("net_redirect", 0),
            ("host_redirect", 1),
            ("net_redirect_for_tos", 2),
            ("host_redirect_for_tos", 3),
        ],
    ),
    (
        "time_exceeded",
        11,
        &[
            ("ttl_exceeded", 0),
            ("ttl_exceeded_in_transit", 0),
            ("reassembly_time_exceeded", 1),
            ("frag_reass_exceeded", 1),
        ],
    ),
    ("parameter_problem", 12, &[("pointer", 0), ("missing_option", 1), ("bad_length", 2)]),
    ("echo_reply", 0, &[]),
    ("echo_request", 8, &[]),
    ("timestamp_request", 13, &[]),
    ("timestamp_reply", 14, &[]),
    ("information_request", 15, &[]),
    ("information_reply", 16, &[]),
    ("address_mask_request", 17, &[]),
    ("address_mask_reply", 18, &[]),
];

/// ICMPv6 errors by name, with type and code (RFC 4443 3).
const V6_KINDS: &[Named] = &[
    (
        "unreachable",
        1,
        &[
            ("no_route", 0),
            ("net_unreachable", 0),
            ("admin_prohibited", 1),
            ("beyond_scope", 2),
            ("not_neighbour", 2),
            ("address_unreachable", 3),
            ("host_unreachable", 3),
            ("port_unreachable", 4),
            ("policy_fail", 5),
            ("reject_route", 6),
        ],
    ),
    ("packet_too_big", 2, &[]),
    (
        "time_exceeded",
        3,
        &[("exceeded_hop_limit", 0), ("exceeded_frag_time", 1), ("exceeded_reassembly_time", 1)],
    ),
    (
        "parameter_problem",
        4,
        &[
            ("header_field", 0),
            ("erroneous_header", 0),
            ("unknown_next_header", 1),
            ("unknown_option", 2),
        ],
    ),
    ("echo_request", 128, &[]),
    ("echo_reply", 129, &[]),
];

/// A router in the host's network, the target of redirects.
const GATEWAY: [u8; 4] = [192, 168, 0, 3];

/// Position of the checksum.
const CHECKSUM: core::ops::Range<usize> = 2..4;

#[cfg(test)]
mod tests;
