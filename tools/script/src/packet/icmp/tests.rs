use whimbrel_wire::{Address, Endpoint, IcmpMessage, Icmpv6Message, QuotedSegment};

use super::super::super::ast::Quoted;
use super::*;

fn flow(v6: bool) -> FlowState {
    let address = |last| match v6 {
        false => Address::from_v4_bytes([10, 0, 0, last]),
        true => core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into(),
    };
    let (local, remote) = (Endpoint::new(address(1), 80), Endpoint::new(address(2), 4000));
    let mut flow = FlowState::new(Flow { local, remote });
    flow.local_isn = Some(SeqNum::new(1000));
    flow
}

fn written(kind: &str, code: Option<&str>) -> IcmpPacket {
    let quoted = Quoted { flags: None, seq: Seq::Relative(1), len: 1460, ends: None, first: None };
    IcmpPacket {
        kind: kind.into(),
        code: code.map(String::from),
        mtu: Some(1300),
        id: None,
        quoted: Some(quoted.into()),
    }
}

fn about_live(packet: &IcmpPacket, flow: &FlowState) -> Result<Vec<u8>, String> {
    error(packet, IpMarks::default(), flow, flow.live)
}

#[test]
fn frag_needed_quotes_the_live_segment() {
    let packet = about_live(&written("unreachable", Some("frag_needed")), &flow(false));
    let packet = packet.unwrap();
    let (ip, payload) = IpHeader::parse(&packet).unwrap();
    assert_eq!(ip.src, flow(false).live.remote.addr);
    let Ok(IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted }) = IcmpMessage::parse(payload)
    else {
        panic!("{payload:?}")
    };
    let segment = QuotedSegment::parse(quoted).unwrap();
    assert_eq!((next_hop_mtu, segment.seq), (1300, Some(SeqNum::new(1001))));
    assert_eq!((segment.src_port, segment.dst_port), (80, 4000));
}

#[test]
fn packet_too_big_has_a_correct_checksum() {
    let packet = about_live(&written("packet_too_big", None), &flow(true)).unwrap();
    let (_, payload) = IpHeader::parse(&packet).unwrap();
    let [src, dst] =
        [flow(true).live.remote, flow(true).live.local].map(|end| *end.addr.as_bytes());
    let Ok(Icmpv6Message::PacketTooBig { mtu, quoted }) =
        Icmpv6Message::parse(src.into(), dst.into(), payload)
    else {
        panic!("{payload:?}")
    };
    assert_eq!((mtu, QuotedSegment::parse(quoted).unwrap().dst_port), (1300, 4000));
}

#[test]
fn names_of_one_family_mean_nothing_in_the_other() {
    let refused = |kind, code, v6| about_live(&written(kind, code), &flow(v6));
    assert!(refused("packet_too_big", None, false).is_err());
    assert!(refused("source_quench", None, true).is_err());
    let why = refused("unreachable", Some("no_such_thing"), false).unwrap_err();
    assert_eq!(why, "ICMP unreachable has no code no_such_thing");
    assert!(refused("unreachable", Some("13"), false).is_ok());
}

/// Type and code of the packet.
fn sent(text: &str, v6: bool) -> (u8, u8) {
    let (kind, code) = text.split_once(' ').map_or((text, None), |(it, code)| (it, Some(code)));
    let packet = about_live(&IcmpPacket { mtu: None, ..written(kind, code) }, &flow(v6)).unwrap();
    let (ip, payload) = IpHeader::parse(&packet).unwrap();
    let sum = match v6 {
        false => Sum::new(),
        true => Sum::pseudo_header(ip.src, ip.dst, 58, payload.len() as u32),
    };
    assert!(sum.add_bytes(payload).is_valid(), "{text}");
    (payload[0], payload[1])
}

#[test]
fn every_type_and_code_has_its_name_or_is_written_as_a_number() {
    for (text, wanted) in V4 {
        assert_eq!(sent(text, false), wanted, "{text}");
    }
    for (text, wanted) in V6 {
        assert_eq!(sent(text, true), wanted, "{text}");
    }
    let refused = |kind| about_live(&written(kind, None), &flow(false)).unwrap_err();
    assert_eq!(refused("type_256"), "there is no ICMP type_256");
}

#[test]
fn error_that_comes_out_is_judged_by_type_and_code() {
    let wanted = written("unreachable", Some("port_unreachable"));
    let packet = about_live(&wanted, &flow(false)).unwrap();
    let wanted = IcmpPacket { mtu: None, quoted: None, ..wanted };
    assert_eq!(judge(&wanted, &packet, None), Ok(()));
    let other = written("time_exceeded", None);
    let differs = ("ICMP type 11 code 0".into(), "ICMP type 3 code 3".into());
    assert_eq!(judge(&other, &packet, None), Err(differs));
}

#[test]
fn icmp_error_is_judged_by_mtu_and_quotation() {
    for (v6, kind, code) in
        [(false, "unreachable", Some("frag_needed")), (true, "packet_too_big", None)]
    {
        let (wanted, live) = (written(kind, code), flow(v6));
        let packet = about_live(&wanted, &live).unwrap();
        // The host quotes the peer: here the same numbers stand for it.
        let mut flow = live.clone();
        flow.remote_isn = live.local_isn;
        assert_eq!(judge(&wanted, &packet, Some(&flow)), Ok(()));
        let differs = |what: &IcmpPacket| judge(what, &packet, Some(&flow)).unwrap_err();
        let smaller = IcmpPacket { mtu: Some(1280), ..wanted.clone() };
        assert_eq!(differs(&smaller), ("mtu 1280".into(), "1300".into()));
        let mut later = wanted.clone();
        later.quoted.as_mut().unwrap().seq = Seq::Relative(2);
        assert_eq!(differs(&later), ("quoted number 2".into(), "1".into()));
        later.quoted.as_mut().unwrap().seq = Seq::Absolute(1001);
        assert_eq!(judge(&later, &packet, Some(&flow)), Ok(()));
        assert!(judge(&wanted, packet.get(..40).unwrap(), None).is_err());
    }
}

#[test]
fn quotation_is_cut_at_the_written_length() {
    for (v6, header) in [(false, 20), (true, 40)] {
        let len = |first| {
            let mut packet = written("time_exceeded", None);
            packet.quoted.as_mut().unwrap().first = first;
            about_live(&packet, &flow(v6)).unwrap().len() - 2 * header - 8
        };
        assert_eq!([None, Some(8), Some(7), Some(1480)].map(len), [20, 8, 7, 1480]);
    }
}

/// Types and codes of IPv4, with their names in scripts.
const V4: [(&str, (u8, u8)); 33] = [
    ("unreachable", (3, 0)),
    ("unreachable net_unreachable", (3, 0)),
    ("unreachable host_unreachable", (3, 1)),
    ("unreachable protocol_unreachable", (3, 2)),
    ("unreachable port_unreachable", (3, 3)),
    ("unreachable frag_needed", (3, 4)),
    ("unreachable source_route_failed", (3, 5)),
    ("unreachable net_unknown", (3, 6)),
    ("unreachable host_unknown", (3, 7)),
    ("unreachable source_host_isolated", (3, 8)),
    ("unreachable net_prohibited", (3, 9)),
    ("unreachable host_prohibited", (3, 10)),
    ("unreachable net_unreachable_for_tos", (3, 11)),
    ("unreachable host_unreachable_for_tos", (3, 12)),
    ("unreachable packet_filtered", (3, 13)),
    ("unreachable precedence_violation", (3, 14)),
    ("unreachable precedence_cutoff", (3, 15)),
    ("unreachable code_255", (3, 255)),
    ("time_exceeded ttl_exceeded_in_transit", (11, 0)),
    ("time_exceeded frag_reass_exceeded", (11, 1)),
    ("redirect", (5, 0)),
    ("source_quench", (4, 0)),
    ("parameter_problem", (12, 0)),
    ("echo_reply", (0, 0)),
    ("echo_request", (8, 0)),
    ("timestamp_request", (13, 0)),
    ("timestamp_reply", (14, 0)),
    ("information_request", (15, 0)),
    ("information_reply", (16, 0)),
    ("address_mask_request", (17, 0)),
    ("address_mask_reply", (18, 0)),
    ("type_255 code_7", (255, 7)),
    ("type_3 4", (3, 4)),
];
/// Errors of IPv6.
const V6: [(&str, (u8, u8)); 15] = [
    ("unreachable net_unreachable", (1, 0)),
    ("unreachable no_route", (1, 0)),
    ("unreachable admin_prohibited", (1, 1)),
    ("unreachable not_neighbour", (1, 2)),
    ("unreachable address_unreachable", (1, 3)),
    ("unreachable port_unreachable", (1, 4)),
    ("packet_too_big", (2, 0)),
    ("time_exceeded exceeded_hop_limit", (3, 0)),
    ("time_exceeded exceeded_frag_time", (3, 1)),
    ("parameter_problem header_field", (4, 0)),
    ("parameter_problem unknown_next_header", (4, 1)),
    ("parameter_problem unknown_option", (4, 2)),
    ("echo_request", (128, 0)),
    ("echo_reply", (129, 0)),
    ("type_200 code_1", (200, 1)),
];
