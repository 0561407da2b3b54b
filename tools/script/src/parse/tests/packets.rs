use whimbrel_wire::tcp::TcpFlags;

use super::*;
use crate::ast::{
    Ack, Direction, Ecn, IcmpPacket, IpMarks, OptionList, Packet, Quoted, Seq, TcpOption, TcpPacket,
};

fn packet(text: &str) -> Packet {
    match only(text) {
        Action::Packet(packet) => packet,
        other => panic!("{other:?}"),
    }
}

fn segment(text: &str) -> TcpPacket {
    match packet(text).body {
        PacketBody::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

fn icmp(text: &str) -> IcmpPacket {
    match packet(text).body {
        PacketBody::Icmp(icmp) => icmp,
        other => panic!("{other:?}"),
    }
}

fn unsupported(text: &str) -> String {
    match only(text) {
        Action::Unsupported(what) => what,
        other => panic!("{other:?}"),
    }
}

fn options(text: &str) -> Vec<TcpOption> {
    match segment(&format!("0 < . 1:1(0) <{text}>")).options {
        OptionList::These(options) => options,
        OptionList::Any => panic!("any options"),
    }
}

#[test]
fn segment_has_all_that_is_written() {
    let expected = TcpPacket {
        flags: TcpFlags::from_bits(0x39),
        seq: Seq::Relative(1),
        len: 1000,
        ack: Some(Ack::Relative(7)),
        win: Some(0xffff),
        urg: Some(10),
        options: OptionList::These(vec![]),
    };
    assert_eq!(segment("0 < FPU. 1:1001(1000) ack 7 win 65535 urg 10"), expected);
    assert_eq!(packet("0 < . 1:1(0)").direction, Direction::In);
    assert_eq!(packet("0> . 1:1(0)").direction, Direction::Out);
}

#[test]
fn flags_come_in_any_order_and_as_counters() {
    let flags = |text: &str| segment(&format!("0 > {text} 1:1(0)")).flags;
    assert_eq!(flags("-"), TcpFlags::NONE);
    assert_eq!(flags(".S"), TcpFlags::SYN_ACK);
    assert_eq!(flags("SEWA").bits(), 0x1c2);
    assert_eq!(flags("P5.").bits(), 0x158);
    assert_eq!(flags("2.").bits(), 0x90);
    assert_eq!(flags("0."), TcpFlags::ACK);
    assert!(refuse("0 > X 1:1(0)").contains("expected flags"));
}

#[test]
fn sequence_numbers_are_relative_absolute_or_any() {
    let seq = |text: &str| segment(&format!("0 > . {text} ack 1"));
    assert_eq!((seq("5:5(0)").seq, seq("5:5(0)!").seq), (Seq::Relative(5), Seq::Absolute(5)));
    assert_eq!((seq("...").seq, seq("...(20)").len), (Seq::Any, 20));
    assert_eq!(seq("4294967295:1(2)").seq, Seq::Relative(u32::MAX));
    assert_eq!(segment("0 > . 1:1(0) ack 9!").ack, Some(Ack::Absolute(9)));
    assert_eq!(segment("0 > . 1:1(0) ack ...").ack, Some(Ack::Any));
}

#[test]
fn length_that_does_not_fit_its_edges_is_refused() {
    assert_eq!(
        refuse("0 > . 1:1001(100) ack 1"),
        "line 1, column 7: expected a length that is the end less the beginning, found \"1:1001(100)\""
    );
    assert!(refuse("0 > . 1:70001(70000)").contains("a length, 0 to 65535"));
    assert!(refuse("0 > . 1:1(0) win 65536").contains("a window"));
}

#[test]
fn marks_of_the_ip_header_stand_in_either_bracket() {
    let marks = |text: &str| packet(&format!("0 > {text} . 1:1(0)")).marks;
    assert_eq!(marks("").ecn, None);
    assert_eq!(marks("[ect0]").ecn, Some(Ecn::Ect0));
    assert_eq!(marks("(ect1)").ecn, Some(Ecn::Ect1));
    assert_eq!(marks("[ect01]").ecn, Some(Ecn::Ect0OrEct1));
    assert_eq!(marks("(ecn ce)").ecn, Some(Ecn::Ce));
    assert_eq!(marks("[noecn]").ecn, Some(Ecn::NotEct));
    let both = IpMarks { ecn: None, tos: Some(0x1c), ttl: Some(64) };
    assert_eq!(marks("(tos 0x1c, ttl 64)"), both);
    assert_eq!(marks("(class 28) [hlim 64]"), both);
    assert!(refuse("0 > (ttl 256) . 1:1(0)").contains("a hop limit"));
    assert_eq!(unsupported("0 > (flowlabel 3) . 1:1(0)"), "the mark flowlabel is not supported");
}

#[test]
fn ends_of_a_packet_may_be_written() {
    let v4 = packet("0 < 192.0.2.1:80 > 192.168.0.1:8080 S 0:0(0)").ends.unwrap();
    assert_eq!((v4.from.port, v4.to.port), (80, 8080));
    assert_eq!(v4.to.addr.to_ip().to_string(), "192.168.0.1");
    let v6 = packet("0 < (ce) [2001:db8::1]:80 > [2001:db8::2]:81: S 0:0(0)");
    assert_eq!(v6.ends.unwrap().from.addr.to_ip().to_string(), "2001:db8::1");
    assert_eq!(v6.marks.ecn, Some(Ecn::Ce));
    let ports = packet("0 < 4000 > 8080 S 0:0(0)").ends.unwrap();
    assert!(ports.from.addr.is_unspecified() && ports.from.port == 4000);
    assert!(refuse("0 < 1.2.3.4:80 > nowhere S 0:0(0)").contains("an address and a port"));
}

#[test]
fn options_are_read_in_order() {
    assert_eq!(
        options("mss 1460, nop,wscale 14,sackOK,TS val 0x10 ecr 2,eol"),
        [
            TcpOption::Mss(1460),
            TcpOption::Nop,
            TcpOption::WindowScale(14),
            TcpOption::SackPermitted,
            TcpOption::Timestamps { val: 16, ecr: 2 },
            TcpOption::Eol,
        ]
    );
    assert_eq!(options("sack 1:5 9:4294967295"), [TcpOption::Sack(vec![(1, 5), (9, u32::MAX)])]);
    assert_eq!(
        options("FO,FO 0aff"),
        [TcpOption::FastOpen(vec![]), TcpOption::FastOpen(vec![10, 255])]
    );
    assert_eq!(options("FOEXP cafe"), [TcpOption::FastOpenExperimental(vec![0xca, 0xfe])]);
    assert_eq!(options("md5,md5 00ff,md5 valid"), [TcpOption::Md5, TcpOption::Md5, TcpOption::Md5]);
    assert_eq!(options("kind 99 01"), [TcpOption::Other { kind: 99, data: vec![1] }]);
    assert_eq!(options("raw 0300"), [TcpOption::Raw(vec![3, 0])]);
    assert_eq!(
        options("TS val ... ecr 4"),
        [TcpOption::SomeTimestamps { val: None, ecr: Some(4) }]
    );
    assert_eq!(segment("0 > . 1:1(0) <...>").options, OptionList::Any);
    assert_eq!(options(""), []);
}

#[test]
fn order_of_ecn_counters_tells_the_kind() {
    let data = vec![0, 0, 1, 0, 1, 2, 0, 0, 3];
    assert_eq!(options("ECN e0b 1 ceb 258 e1b 3"), [TcpOption::Other { kind: 172, data }]);
    assert_eq!(options("ECN e1b 1"), [TcpOption::Other { kind: 174, data: vec![0, 0, 1] }]);
}

#[test]
fn options_that_cannot_be_are_refused_and_unknown_ones_named() {
    assert!(refuse("0 > . 1:1(0) <mss 65536>").contains("an MSS"));
    assert!(refuse("0 > . 1:1(0) <FO abc>").contains("pairs of hexadecimal digits"));
    assert!(refuse("0 > . 1:1(0) <nop nop>").contains("a comma or >"));
    assert!(refuse("0 > . 1:1(0) <nop,>").contains("an option"));
    assert!(unsupported("0 > . 1:1(0) <FO COOKIE>").contains("the TCP option FO COOKIE"));
    assert!(unsupported("0 > . 1:1(0) <md5 invalid>").contains("the TCP option md5 invalid"));
    let text = "0 > . 1:1(0) <mp_capable v1,\n nop>\n";
    assert_eq!(unsupported(text), "the TCP option mp_capable is not supported");
}

#[test]
fn icmp_error_may_quote_in_front_or_behind() {
    let quoted = Quoted { flags: None, seq: Seq::Relative(1), len: 9, ends: None, first: None };
    let expected = IcmpPacket {
        kind: "unreachable".into(),
        code: Some("frag_needed".into()),
        mtu: Some(1200),
        id: None,
        quoted: Some(quoted.into()),
    };
    assert_eq!(icmp("0 < icmp unreachable frag_needed mtu 1200 [1:10(9)]"), expected);
    assert_eq!(icmp("0 < [1:10(9)] icmp unreachable frag_needed mtu 1200"), expected);
    assert_eq!(icmp("0 < icmp unreachable frag_needed [1:10(9)] mtu 1200"), expected);
    assert_eq!(icmp("0 < icmp packet_too_big mtu 1300").code, None);
    assert_eq!(icmp("0 < icmp unreachable 3 [0:0(0)]").code.as_deref(), Some("3"));
    let full =
        icmp("0 < [tcp 1.1.1.1:80 > 2.2.2.2:90 S. 0:0(0)] icmp time_exceeded").quoted.unwrap();
    assert_eq!((full.flags, full.ends.unwrap().to.port), (Some(TcpFlags::SYN_ACK), 90));
    assert_eq!(icmp("0 < [S 0:0(0)] icmp redirect").quoted.unwrap().flags, Some(TcpFlags::SYN));
    let echo = icmp("0 < icmp echo_request id 7");
    assert_eq!((echo.kind.as_str(), echo.code, echo.id), ("echo_request", None, Some(7)));
    let cut = icmp("0 < icmp time_exceeded [. 1:10(9) first 8]").quoted.unwrap();
    assert_eq!((cut.seq, cut.first), (Seq::Relative(1), Some(8)));
}

#[test]
fn other_protocols_are_named_and_passed_over() {
    assert_eq!(unsupported("0 < udp (1000)"), "udp is not supported");
    let text =
        "0 < ipv4 2.2.2.2 > 1.1.1.1: gre:\n mpls (label 3): . 1:1(0)\n+0 close(3) = 0\n`end`";
    let script = read(text);
    assert_eq!(script.steps[0].action, Action::Unsupported("ipv4 is not supported".into()));
    assert_eq!((script.steps.len(), script.cleanup.is_some()), (2, true));
}
