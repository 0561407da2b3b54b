use super::super::parse::{Defines, parse};
use super::*;

fn of(text: &str, dialect: Dialect) -> Result<Setup, Vec<String>> {
    let text = format!("{text}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    Setup::of(&parse(&text, &Defines::default()).unwrap(), dialect)
}

#[test]
fn defaults_of_each_family() {
    let v4 = of("", Dialect::Linux).unwrap();
    assert_eq!(v4.bind.to_string(), "192.168.0.1:8080");
    assert_eq!(v4.connect.to_string(), "192.0.2.1:8080");
    assert_eq!((v4.network.prefix_len, v4.network.mtu), (16, 1500));
    let v6 = of("--ip_version=ipv6\n", Dialect::Linux).unwrap();
    assert_eq!(v6.bind.to_string(), "[fd3d:a0b:17d6::1]:8080");
    assert_eq!(v6.connect.to_string(), "[fd3d:fa7b:d17d::1]:8080");
    assert_eq!(v6.network.gateway.to_string(), "fd3d:a0b:17d6:8888::1");
    assert_eq!(v6.network.mtu, 1520);
    assert_eq!(of("--ip_version=ipv6\n", Dialect::FreeBsd).unwrap().network.mtu, 1500);
    let mapped = of("--ip_version=ipv4-mapped-ipv6\n", Dialect::Linux).unwrap();
    assert_eq!((mapped.ip_version, mapped.network), (IpVersion::V4MappedV6, v4.network));
}

#[test]
fn known_options_are_taken() {
    let setup = of(
        "--tolerance_usecs=50000
--mtu=1400
--local_ip=10.1.0.1
--remote_ip=10.2.0.1
--gateway_ip=10.1.0.9
--netmask_ip=255.255.255.0
--bind_port=80
--connect_port=81
--tcp_ts_tick_usecs=1000
--tcp_ts_ecr_scaled
--strict_segments
--non_fatal=packet,syscall
--speed=100
",
        Dialect::Linux,
    )
    .unwrap();
    assert_eq!(setup.tolerance, Duration::from_millis(50));
    assert_eq!(setup.bind.to_string(), "10.1.0.1:80");
    assert_eq!(setup.connect.to_string(), "10.2.0.1:81");
    assert_eq!(setup.network.gateway.to_string(), "10.1.0.9");
    assert_eq!((setup.network.prefix_len, setup.network.mtu), (24, 1400));
    assert_eq!(setup.timestamp_tick_usecs, Some(1000));
    assert!(setup.scaled_ecr);
    assert_eq!(setup.non_fatal, [NonFatal::Packets, NonFatal::Calls]);
    assert_eq!(setup.segments, Segments::Strict);
}

#[test]
fn options_of_the_original_tool_have_no_effect() {
    let usual = of("", Dialect::Linux).unwrap();
    let wire = "--wire_client\n--wire_client_dev=eth0\n--wire_server_ip=10.0.0.9\n\
                --wire_server_port=5555\n--verbose\n--persistent_tun_dev\n";
    assert_eq!(of(wire, Dialect::Linux), Ok(usual.clone()));
    let code = "--code_sockopt=TCP_INFO\n--code_format=python\n\
                --code_command=\"/usr/bin/python3 -\"\n";
    assert_eq!(of(code, Dialect::Linux), Ok(usual));
    let other = "--code_sockopt=TCP_CC_INFO\n--code_format=pretty\n--code_command=cat\n";
    assert_eq!(
        of(other, Dialect::Linux).unwrap_err(),
        [
            "line 1: --code_sockopt=TCP_CC_INFO is not supported",
            "line 2: --code_format=pretty is not supported",
            "line 3: --code_command=cat is not supported",
        ]
    );
}

#[test]
fn mss_is_an_mtu_without_headers() {
    assert_eq!(of("--mss=1000\n", Dialect::Linux).unwrap().network.mtu, 1040);
    assert_eq!(of("--mss=1000\n--ip_version=ipv6\n", Dialect::Linux).unwrap().network.mtu, 1060);
}

#[test]
fn unknown_options_are_reported_line_by_line() {
    let said =
        of("--so_filename=x.so\n--mtu=70000\n--local_ip=::1\n--non_fatal=time\n", Dialect::Linux);
    assert_eq!(
        said.unwrap_err(),
        [
            "line 1: option --so_filename is not supported",
            "line 2: --mtu=70000 is out of range",
            "line 3: --local_ip=::1 is of another family",
            "line 4: --non_fatal=time is not supported",
        ]
    );
}

#[test]
fn tolerance_is_a_share_of_the_gap_if_that_is_more() {
    let second = Duration::from_secs(1);
    assert_eq!(Setup::new(IpVersion::V4, Dialect::Linux).tolerance_after(second), second / 8);
    assert_eq!(Setup::new(IpVersion::V4, Dialect::FreeBsd).tolerance_after(second), second / 20);
    let shortest = Setup::new(IpVersion::V4, Dialect::Linux).tolerance_after(Duration::ZERO);
    assert_eq!(shortest, Duration::from_millis(4));
}
