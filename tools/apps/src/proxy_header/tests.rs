use whimbrel_wire::{Endpoint, Flow};

use super::ProxyVersion;

fn flow(remote: &str, local: &str) -> Flow {
    let [remote, local] = [remote, local].map(|text| {
        let at: std::net::SocketAddr = text.parse().expect("an address with a port");
        Endpoint::from(at)
    });
    Flow { local, remote }
}

fn v4() -> Flow {
    flow("192.168.0.1:56324", "192.168.0.11:443")
}

fn v6() -> Flow {
    flow("[2001:db8::1]:56324", "[fd09::2]:443")
}

/// The line is an example of the specification's.
#[test]
fn version_1_is_line_of_text() {
    let header = ProxyVersion::V1.header(&v4());
    assert_eq!(header, &b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"[..]);
    let header = ProxyVersion::V1.header(&v6());
    assert_eq!(header, &b"PROXY TCP6 2001:db8::1 fd09::2 56324 443\r\n"[..]);
}

/// Section 2.1: the longest line of TCP6 has 104 characters with its end, within 107.
#[test]
fn longest_version_1_line_has_104_bytes() {
    let longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
    assert_eq!(ProxyVersion::V1.header(&flow(longest, longest)).len(), 104);
}

#[test]
fn version_2_over_ipv4_has_28_bytes() {
    let header = ProxyVersion::V2.header(&v4());
    let expected = [
        &b"\x0D\x0A\x0D\x0A\x00\x0D\x0A\x51\x55\x49\x54\x0A"[..],
        &[0x21, 0x11, 0, 12, 192, 168, 0, 1, 192, 168, 0, 11, 0xdc, 0x04, 0x01, 0xbb],
    ];
    assert_eq!(header, expected.concat());
}

#[test]
fn version_2_over_ipv6_has_52_bytes() {
    let header = ProxyVersion::V2.header(&v6());
    assert_eq!(header.len(), 52);
    assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
    assert_eq!(header[16..20], [0x20, 0x01, 0x0d, 0xb8]);
    assert_eq!((header[31], header[32], header[47]), (1, 0xfd, 2));
    assert_eq!(header[48..], [0xdc, 0x04, 0x01, 0xbb]);
}
