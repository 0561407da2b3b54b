use whimbrel_io::netlink::veth::{Peer, Veth};

use super::*;

fn veth(name: &str, peer: Option<(&str, Checksums)>) -> Veth {
    let peer = peer.map(|(name, checksums)| Peer { name: name.into(), checksums });
    Veth { name: name.into(), peer }
}

/// A machine that has everything.
fn rich() -> Machine {
    Machine {
        program: "/usr/bin/whimbrel".into(),
        tun: Ok(()),
        capabilities: u64::MAX,
        namespaces: 1_000,
        user_namespaces: Some(Ok(())),
        first_free_port: 1_024,
        ports: Some((32_768, 60_999)),
        is_port_reuse_off: false,
        congestion_control: "cubic".into(),
        files: None,
        locked: None,
        folders: vec!["/tmp".into()],
        addresses: vec!["127.0.0.1".into(), "::1".into()],
        forwards: false,
        packet: Ok(()),
        fanout: Ok(()),
        veths: vec![veth("whim0", Some(("whim1", Checksums::Sender)))],
        xdp: Ok(()),
        programs: Vec::new(),
    }
}

/// One that has nothing.
fn poor() -> Machine {
    Machine {
        tun: Err(ErrorKind::NotFound),
        capabilities: 0,
        ports: Some((40_000, 40_099)),
        is_port_reuse_off: true,
        congestion_control: "reno".into(),
        files: Some(1_024),
        locked: Some(64 << 10),
        folders: Vec::new(),
        addresses: Vec::new(),
        forwards: true,
        packet: Err(ErrorKind::PermissionDenied),
        fanout: Err(ErrorKind::PermissionDenied),
        veths: vec![
            veth("whim0", Some(("whim1", Checksums::Device))),
            veth("eth0", None),
            veth("whim1", Some(("whim0", Checksums::Device))),
        ],
        user_namespaces: Some(Err(28)),
        xdp: Err(ErrorKind::Unsupported),
        programs: vec!["wrk"],
        ..rich()
    }
}

#[test]
fn complete_machine_needs_no_fix() {
    for need in Need::ALL {
        let finding = need.judge(&rich());
        assert_eq!((finding.verdict, finding.fix), (Verdict::Ok, None), "{need:?}");
    }
}

#[test]
fn missing_need_comes_with_fix_command() {
    let expected = [
        (Need::Tun, Verdict::Fail, "modprobe tun"),
        (Need::NetAdmin, Verdict::Fail, "setcap cap_net_admin+ep /usr/bin/whimbrel"),
        (Need::Namespaces, Verdict::Fail, "--cap-add SYS_ADMIN"),
        (Need::UserNamespaces, Verdict::Fail, "user.max_user_namespaces=10000"),
        (Need::LowPorts, Verdict::Fail, "ip_unprivileged_port_start=0"),
        (Need::NetRaw, Verdict::Fail, "setcap cap_net_raw+ep"),
        (Need::Packet, Verdict::Fail, "root"),
        (Need::Fanout, Verdict::Fail, "setcap cap_net_raw+ep"),
        (Need::KernelAddresses, Verdict::Warn, "ip_forward=0"),
        (Need::VethChecksums, Verdict::Warn, "ethtool -K whim1 tx off; sudo ethtool -K whim0 tx"),
        (Need::Xdp, Verdict::Warn, "kernel that has AF_XDP"),
        (Need::LockedMemory, Verdict::Warn, "ulimit -l"),
        (Need::UnixSockets, Verdict::Fail, "mkdir -m 700"),
        (Need::OpenFiles, Verdict::Warn, "ulimit -n 16384"),
        (Need::KernelPorts, Verdict::Warn, "ip_local_port_range="),
        (Need::KernelCongestion, Verdict::Warn, "tcp_congestion_control=cubic"),
        (Need::Programs, Verdict::Warn, "apt-get install wrk"),
    ];
    assert_eq!(expected.map(|(need, _, _)| need), Need::ALL);
    for (need, verdict, part) in expected {
        let finding = need.judge(&poor());
        assert_eq!(finding.verdict, verdict, "{need:?}");
        let fix = finding.fix.unwrap();
        assert!(fix.contains(part), "{part:?} is not in: {fix}");
    }
}

#[test]
fn kernel_that_keeps_ports_in_time_wait_is_a_warning() {
    let finding = Need::KernelPorts.judge(&Machine { is_port_reuse_off: true, ..rich() });
    assert_eq!(finding.verdict, Verdict::Warn);
    assert!(finding.found.contains("28,232 ports, each kept for 60 s"), "{}", finding.found);
    assert_eq!(finding.fix.unwrap(), "sudo sysctl -w net.ipv4.tcp_tw_reuse=1");
}

#[test]
fn each_obstacle_to_a_device_has_its_own_remedy() {
    let tun = |kind| Need::Tun.judge(&Machine { tun: Err(kind), ..rich() });
    assert!(tun(ErrorKind::PermissionDenied).fix.unwrap().contains("chmod"));
    assert!(tun(ErrorKind::NotFound).fix.unwrap().contains("--device"));
    let fanout = Need::Fanout.judge(&Machine { fanout: Err(ErrorKind::Unsupported), ..rich() });
    assert_eq!(fanout.verdict, Verdict::Warn);
    assert!(fanout.fix.unwrap().contains("--shards 1"));
    let none = Machine { namespaces: 0, ..rich() };
    assert!(Need::Namespaces.judge(&none).fix.unwrap().contains("max_net_namespaces"));
    let free = Machine { first_free_port: 0, ..poor() };
    assert_eq!(Need::LowPorts.judge(&free).verdict, Verdict::Ok);
}

#[test]
fn unseen_veth_end_gives_no_fault() {
    let veths = vec![veth("eth0", None), veth("eth1", None)];
    let finding = Need::VethChecksums.judge(&Machine { veths, ..rich() });
    assert_eq!(finding.verdict, Verdict::Ok);
    assert!(finding.found.contains("the other end of eth0, eth1"), "{}", finding.found);
    let none = Need::VethChecksums.judge(&Machine { veths: Vec::new(), ..rich() });
    assert_eq!((none.verdict, none.found.as_str()), (Verdict::Ok, "no veth"));
}
