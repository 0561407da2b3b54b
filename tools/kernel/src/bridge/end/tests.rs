//! Parsing of bridge ends and of the kernel's counters.

use super::{BridgeEnd, dropped_in};

fn refused(text: &str) -> String {
    text.parse::<BridgeEnd>().expect_err(text).to_string()
}

#[test]
fn a_namespace_is_a_name_of_ip_or_a_path() {
    for (text, path) in [
        ("tun:a,netns=client", "/run/netns/client"),
        ("tun:a,netns=/proc/7/ns/net", "/proc/7/ns/net"),
    ] {
        let end: BridgeEnd = text.parse().expect(text);
        assert_eq!(end.namespace.expect("given").to_str(), Some(path));
    }
    let end: BridgeEnd = "tun:a,addr=10.1.0.1/24,addr=fd01::1/64".parse().expect("valid");
    assert_eq!((end.namespace, end.addresses.len()), (None, 2));
}

#[test]
fn what_is_no_end_is_told_what_one_is() {
    assert!(refused("tap:a").starts_with("\"tap:a\" is no TUN interface: give tun:NAME"));
    assert!(refused("tun:a,netns=").starts_with("\"netns=\": give netns=NAMESPACE"));
    assert!(refused("tun:a,netns=b,netns=c").starts_with("\"netns=c\""));
    assert!(refused("tun:a,addr=10.1.0.1").starts_with("\"addr=10.1.0.1\""));
    assert!(refused("tun:").starts_with("interface name \"\""));
    assert!(refused("tun:a,addr=0.0.0.0/0").contains("names no single host"));
}

#[test]
fn drops_are_read_of_the_right_interface_and_column() {
    let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9       10   11   12   13    14      15         16
  lo2: 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36
";
    assert_eq!(dropped_in(text, "lo"), Some(12));
    assert_eq!(dropped_in(text, "lo2"), Some(32));
    assert_eq!(dropped_in(text, "lo3"), None);
}
