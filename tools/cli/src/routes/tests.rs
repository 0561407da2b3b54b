use std::time::Duration;

use super::*;

fn addr(text: &str) -> Address {
    text.parse::<IpAddr>().unwrap().into()
}

#[test]
fn every_metric_is_read_with_its_unit() {
    let text = "10.0.0.0/24,mtu=1400,advmss=1300,initcwnd=20,initrwnd=30,rtt=70ms,ssthresh=1M,\
                sendpipe=64k,recvpipe=16k,congestion=reno";
    let metrics = RouteMetrics::new()
        .with_mtu(1_400)
        .with_advmss(1_300)
        .with_initcwnd(20)
        .with_initrwnd(30)
        .with_rtt(Duration::from_millis(70))
        .with_ssthresh(1 << 20)
        .with_sendpipe(64 << 10)
        .with_recvpipe(16 << 10)
        .with_congestion(Algorithm::RENO);
    let route = parse(text).unwrap();
    assert_eq!((route.network, route.prefix_len), (addr("10.0.0.0"), 24));
    assert_eq!(route.metrics, metrics);
}

#[test]
fn values_outside_each_range_are_refused() {
    for (key, taken, refused) in [
        ("mtu", ["68", "65535"], ["67", "65536"]),
        ("advmss", ["1", "65535"], ["0", "65536"]),
        ("initcwnd", ["1", "65535"], ["0", "65536"]),
        ("initrwnd", ["1", "65535"], ["0", "65536"]),
        ("rtt", ["1ms", "60s"], ["999us", "60.001s"]),
        ("ssthresh", ["2k", "1G"], ["2047", "1073741825"]),
        ("sendpipe", ["2k", "1G"], ["2047", "1073741825"]),
        ("recvpipe", ["2k", "1G"], ["2047", "1073741825"]),
    ] {
        for value in taken {
            assert!(parse(&format!("10.0.0.0/24,{key}={value}")).is_ok(), "{key}={value}");
        }
        for value in refused {
            let error = parse(&format!("10.0.0.0/24,{key}={value}")).unwrap_err();
            assert!(error.contains("give") && error.contains(value), "{error}");
        }
    }
    let error = parse("fd00::/64,mtu=1279").unwrap_err();
    assert!(error.contains("1280"), "IPv6 needs more: {error}");
}

#[test]
fn invalid_route_is_refused_with_valid_form() {
    for (text, says) in [
        ("", "10.0.0.0/24"),
        ("10.0.0.0", "10.0.0.0/24"),
        ("10.0.0.0/33,mtu=1500", "0 to 32"),
        ("fd00::/129,mtu=1500", "0 to 128"),
        ("::ffff:10.0.0.0/120,mtu=1500", "0 to 32"),
        ("10.0.0.0/24", "recvpipe="),
        ("10.0.0.0/24,mtu", "recvpipe="),
        ("10.0.0.0/24,window=64k", "recvpipe="),
        ("10.0.0.0/24,congestion=vegas", "reno, cubic or bbr"),
        ("10.0.0.0/24,mtu=1400,mtu=1500", "once"),
    ] {
        let error = parse(text).unwrap_err();
        let has_remedy = error.contains("give") || error.contains("use");
        assert!(has_remedy && error.contains(says), "{text}: {error}");
    }
}

#[test]
fn route_uses_the_existing_gateway() {
    let own = [InterfaceAddress { addr: addr("10.9.0.2"), prefix_len: 24 }];
    let default = Route::default_via(addr("10.9.0.1").to_ip());
    let known = |text, routes: &[Route]| known(&[parse(text).unwrap()], &own, routes);
    let gateway = |text| known(text, &[default]).unwrap()[0].gateway;
    assert_eq!(gateway("192.0.2.0/24,initcwnd=20"), Some(addr("10.9.0.1")));
    assert_eq!(gateway("0.0.0.0/0,initcwnd=20"), Some(addr("10.9.0.1")));
    assert_eq!(gateway("10.9.0.0/24,initcwnd=20"), None, "it is connected");
    assert_eq!(gateway("10.9.0.128/25,initcwnd=20"), None, "a part of what is connected");
    assert_eq!(gateway("10.9.0.0/16,initcwnd=20"), Some(addr("10.9.0.1")), "more than that");
    for (text, routes) in
        [("2001:db8::/32,initcwnd=20", &[default][..]), ("0.0.0.0/0,mtu=600", &[])]
    {
        let error = format!("{:?}", known(text, routes).unwrap_err());
        assert!(error.contains("--route") && error.contains("10.9.0.2/24"), "{error}");
    }
}

#[test]
fn narrowest_network_decides_congestion_control() {
    let options =
        ["10.0.0.0/8,congestion=cubic", "10.0.0.0/24,congestion=reno", "10.0.1.0/24,mtu=576"];
    let options = options.map(|text| parse(text).unwrap());
    let of = |text| congestion(&options, addr(text));
    assert_eq!(of("10.0.0.2"), Some("reno"));
    assert_eq!(of("10.2.0.2"), Some("cubic"));
    assert_eq!((of("10.0.1.2"), of("11.0.0.2"), of("fd00::1")), (None, None, None));
}
