use super::*;

#[test]
fn the_range_of_ports_is_two_numbers() {
    assert_eq!(range("32768\t60999"), Some((32_768, 60_999)));
    assert_eq!(range(""), None);
}

#[test]
fn time_wait_is_read_by_its_name() {
    let text =
        "sockets: used 9\nTCP: inuse 4 orphan 0 tw 28231 alloc 7 mem 1\nUDP: inuse 0 mem 2\n";
    assert_eq!(waiting(text), Some(28_231));
    assert_eq!(waiting("UDP: inuse 0 mem 2\n"), None);
}

#[test]
fn counters_have_the_names_of_nstat() {
    let text = "Ip: Forwarding\nIp: 1\nTcp: MaxConn ActiveOpens CurrEstab\nTcp: -1 19 2\n";
    assert_eq!(rows(text, "Tcp"), BTreeMap::from([("TcpActiveOpens".into(), 19)]));
    let text = "TcpExt: TW PAWSEstab\nTcpExt: 7 0\nIpExt: InNoRoutes\nIpExt: 9\n";
    let expected = [("TcpExtTW".into(), 7), ("TcpExtPAWSEstab".into(), 0)];
    assert_eq!(rows(text, "TcpExt"), BTreeMap::from(expected));
}
