use alloc::format;

use super::*;

/// A script of IPv6 whose host opens with this MSS.
fn opening(mss: u16) -> String {
    format!("--ip_version=ipv6\n+0 > S 0:0(0) <mss {mss},nop,wscale 6>\n")
}

#[test]
fn variables_of_a_kernel_tell() {
    assert_eq!(Dialect::of("0 `sysctl -w net.inet.tcp.sack.enable=1`\n"), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of("`sysctl -q kern.ipc.maxsockbuf=1`\n"), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of("`sysctl -q net.ipv4.tcp_sack=1`\n"), Some(Dialect::Linux));
    assert_eq!(Dialect::of("`echo 1 > /proc/sys/net/ipv4/tcp_sack`\n"), Some(Dialect::Linux));
}

#[test]
fn programs_tell() {
    assert_eq!(Dialect::of("0 `kldload -n cc_cubic`\n"), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of("0 `sockstat -4 | grep TIME_WAIT`\n"), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of("`../common/defaults.sh`\n"), Some(Dialect::Linux));
    assert_eq!(Dialect::of("`tc qdisc show`\n"), Some(Dialect::Linux));
}

#[test]
fn names_of_states_tell_and_names_of_options_do_not() {
    let asserting = |what| format!("+0 %{{ assert tcpi_state == {what} }}%\n");
    assert_eq!(Dialect::of(&asserting("TCPS_ESTABLISHED")), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of(&asserting("TCPI_ESTABLISHED")), Some(Dialect::FreeBsd));
    assert_eq!(Dialect::of(&asserting("TCP_ESTABLISHED")), Some(Dialect::Linux));
    assert_eq!(Dialect::of("+0 %{ assert tcpi_options & TCPI_OPT_SACK }%\n"), None);
}

#[test]
fn first_line_that_tells_decides() {
    let both = "0 `sysctl net.inet.tcp.sack.enable=1`\n0 `sysctl net.ipv4.tcp_sack=1`\n";
    assert_eq!(Dialect::of(both), Some(Dialect::FreeBsd));
}

#[test]
fn comments_texts_and_branches_tell_nothing() {
    let text = "// as net.inet.tcp.sack.enable does\n# sockstat\n/* net.ipv4.tcp_sack\n kldload */\n\
                0 write(4, \"TCPS_LISTEN\", 11) = 11 // net.ipv4.tcp_sack\n\
                #ifdef FreeBSD\n0 `kldload -n cc_cubic`\n#else\n0 `tc qdisc show`\n#endif\n";
    assert_eq!(Dialect::of(text), None);
    assert_eq!(Dialect::of(&format!("{text}0 `sockstat`\n")), Some(Dialect::FreeBsd));
}

#[test]
fn first_line_or_a_list_of_profiles_decides_before_all() {
    let freebsd = "#!/usr/bin/env -S whimbrel script run --dialect=freebsd\n`tc qdisc show`\n";
    assert_eq!(Dialect::of(freebsd), Some(Dialect::FreeBsd));
    let ours = "// What it shows.\n// Profiles: whimbrel. FreeBSD differs.\n`tc qdisc show`\n";
    assert_eq!(Dialect::of(ours), Some(Dialect::Whimbrel));
}

#[test]
fn ipv6_mtu_or_mss_shows_the_dialect() {
    assert_eq!(Dialect::of(&opening(1460)), Some(Dialect::Linux));
    assert_eq!(Dialect::of(&opening(1440)), None);
    let mtu = |mtu| format!("--mtu={mtu}\n{}", opening(1460));
    assert_eq!(Dialect::of(&mtu(1520)), Some(Dialect::Linux));
    assert_eq!(Dialect::of(&mtu(1500)), None);
    assert_eq!(Dialect::of("+0 > S 0:0(0) <mss 1460>\n"), None);
    // The peer's MSS does not count.
    assert_eq!(Dialect::of("--ip_version=ipv6\n+0 < S. 0:0(0) ack 1 <mss 1460>\n"), None);
}

#[test]
fn names_lead_to_dialects_and_back() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::by_name(dialect.name()), Some(dialect));
    }
    assert_eq!(Dialect::by_name("macos"), None);
}
