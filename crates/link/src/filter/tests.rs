use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::*;

/// A packet of TCP over IPv4 from 10.0.0.1 port 4000 to 10.0.1.2 port 80.
fn packet(flags: u8, text: usize) -> Vec<u8> {
    let mut bytes = vec![0; 40 + text];
    let len = bytes.len() as u16;
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes[8..10].copy_from_slice(&[64, 6]);
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, 2]);
    let checksum = whimbrel_wire::Sum::new().add_bytes(&bytes[..20]).finish();
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes[20..24].copy_from_slice(&[4000_u16.to_be_bytes(), 80_u16.to_be_bytes()].concat());
    bytes[32..34].copy_from_slice(&[5 << 4, flags]);
    bytes
}

fn holds(filter: &str) -> bool {
    let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{filter}: {error}"));
    filter.matches(LinkType::Raw, &packet(SYN_ACK, 10))
}

const SYN_ACK: u8 = 0x12;

#[test]
fn filter_matches_addresses_ports_and_protocols() {
    for filter in [
        "ip",
        "tcp",
        "host 10.0.0.1",
        "10.0.1.2",
        "src host 10.0.0.1",
        "dst 10.0.1.2",
        "src net 10.0.0.0/24",
        "src and dst net 10.0.0.0/16",
        "net 0.0.0.0/0",
        "port 80",
        "tcp dst port 80",
        "ip host 10.0.0.1",
        "src or dst portrange 70-90",
        "greater 50 and less 50",
    ] {
        assert!(holds(filter), "{filter}");
        assert!(!holds(&format!("not ({filter})")), "{filter}");
    }
    for filter in [
        "ip6",
        "udp",
        "arp",
        "src 10.0.1.2",
        "src net 10.0.1.0/24",
        "src and dst net 10.0.0.0/24",
        "udp port 80",
        "src port 80",
        "portrange 81-3999",
        "host ::1",
        "less 49",
    ] {
        assert!(!holds(filter), "{filter}");
    }
}

#[test]
fn filter_matches_single_and_combined_flags() {
    for filter in [
        "tcp[tcpflags] & tcp-syn != 0",
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
        "tcp[tcpflags] == (tcp-syn|tcp-ack)",
        "tcp[13] = 18",
        "tcp[13] & 0x02 == 0x2",
        "tcp[tcpflags] & (tcp-rst|tcp-fin) = 0",
    ] {
        assert!(holds(filter), "{filter}");
    }
    assert!(!holds("tcp[tcpflags] == tcp-syn"));
}

#[test]
fn and_and_or_bind_from_the_left_and_words_carry_over() {
    assert!(holds("port 80 or port 81 and tcp"));
    // ((port 80 or udp) and udp): if `and` bound tighter, it would match.
    assert!(!holds("port 80 or udp and udp"));
    assert!(holds("port 80 or (udp and udp)"));
    assert!(holds("port 22 or 80"));
    assert!(!holds("src port 22 or 80"));
    assert!(holds("host 10.9.9.9 || 10.0.0.1 && !udp"));
}

#[test]
fn ethernet_frame_is_looked_into() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend(packet(SYN_ACK, 0));
    let filter: Filter = "dst port 80".parse().unwrap();
    assert!(filter.matches(LinkType::Ethernet, &frame));
    frame[12..14].copy_from_slice(&[8, 6]);
    let arp: Filter = "arp".parse().unwrap();
    assert!(arp.matches(LinkType::Ethernet, &frame) && !arp.matches(LinkType::Raw, &frame));
}

#[test]
fn packet_that_contradicts_itself_has_no_address() {
    let filter: Filter = "not host 10.0.0.1".parse().unwrap();
    assert!(filter.matches(LinkType::Raw, &packet(SYN_ACK, 0)[..30]));
}

#[test]
fn filter_error_names_column_and_valid_words() {
    let says = |filter: &str, column: usize, part: &str| {
        let error = filter.parse::<Filter>().unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.to_string().contains(part), "{part:?} is not in: {error}");
    };
    says("", 1, "the filter ends");
    says("tcp prot 80", 5, "\"prot\" stands where and, or");
    says("prot 80", 1, "portrange");
    says("port http", 6, "0 to 65535");
    says("port 70000", 6, "0 to 65535");
    says("host 10.0.0", 6, "10.0.0.1");
    says("net 10.0.0.0", 5, "10.0.0.0/24");
    says("net 10.0.0.0/33", 5, "10.0.0.0/24");
    says("portrange 9-8", 11, "8000-8080");
    says("src 80", 5, "host, net, port");
    says("port 80 and", 12, "ends where");
    says("(port 80", 9, "ends where ) should");
    says("tcp[12] != 0", 5, "tcpflags");
    says("tcp[tcpflags] & tcp-sin != 0", 17, "tcp-syn");
    says("tcp[tcpflags] > 0", 15, "==");
    says("less many", 6, "bytes");
    says(&"(".repeat(1_000), 65, "64 parentheses");
}
