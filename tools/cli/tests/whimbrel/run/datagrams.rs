//! Echo requests and datagrams of programs behind `whimbrel run`.

use std::net::UdpSocket;
use std::thread;

use super::{Machines, NODES, Node};
use crate::needs::IPV6;

impl Machines {
    /// Lets its users have ICMP sockets.
    fn allow_pings(&self) {
        self.near.set("net.ipv4.ping_group_range", "65534 65534");
    }

    fn ping(&self, node: Node, words: &[&str]) -> (Option<i32>, String) {
        let ping = ["--json", "-o", "summary", "--", "ping", "-n", "-W", "20"];
        self.ran(node, &[&ping, words].concat())
    }
}

#[test]
fn ping_reaches_hosts_where_users_may_have_icmp_sockets() {
    let Some(machines) = Machines::new(&["ping"]) else { return };
    let (code, text) = machines.ping(Node::Open, &["-c", "1", "203.0.113.9"]);
    assert!(code == Some(1) && text.contains("Packet filtered"), "{text}");
    let why = "no_socket_for_echo_requests";
    assert_eq!(machines.summary()["refused"][why], 1, "{}", machines.summary());
    machines.allow_pings();
    for node in NODES {
        // The second is longer than the link: it comes, and goes, in fragments.
        for size in ["56", "5000"] {
            let words = ["-c", "3", "-i", "0.01", "-s", size, "203.0.113.9"];
            let (code, text) = machines.ping(node, &words);
            assert_eq!(code, Some(0), "{node:?} {size}: {text}");
            let summary = machines.summary();
            let (out, back) = (&summary["echoes"]["out"], &summary["echoes"]["in"]);
            assert_eq!((out, back), (&3.into(), &3.into()), "{node:?} {size}: {summary}");
        }
    }
    for (to, said, why) in [
        ("203.0.113.77", "Destination Host Unreachable", "host_unreachable"),
        ("192.0.2.1", "Destination Net Unreachable", "network_unreachable"),
        ("169.254.1.1", "Packet filtered", "denied"),
        ("10.0.2.77", "Destination Host Unreachable", "no_such_host_inside"),
    ] {
        let (code, text) = machines.ping(Node::Open, &["-c", "1", to]);
        assert!(code == Some(1) && text.contains(said), "{to}: {text}");
        assert_eq!(machines.summary()["refused"][why], 1, "{to}: {}", machines.summary());
    }
    // The gateway itself.
    let (code, text) = machines.ping(Node::Open, &["-c", "1", "10.0.2.2"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn ping_reaches_hosts_over_ipv6() {
    let Some(machines) = Machines::new(&["ping", IPV6]) else { return };
    machines.add_ipv6();
    machines.allow_pings();
    for size in ["56", "5000"] {
        let words = ["-c", "3", "-i", "0.01", "-s", size, "fd03::9"];
        let (code, text) = machines.ping(Node::Open, &words);
        assert_eq!(code, Some(0), "{size}: {text}");
    }
    // The machine's own loopback address, in NAT64's form.
    let (code, text) = machines.ping(Node::Open, &["-c", "1", "64:ff9b::7f00:1"]);
    assert!(code == Some(1) && text.contains("Administratively prohibited"), "{text}");
}

/// A link behind the gateway is narrower than the program's own.
#[test]
fn programs_learn_the_mtu_of_the_machines_path() {
    let Some(machines) = Machines::new(&["ping", "python3"]) else { return };
    machines.near.run("ip link set near mtu 1400");
    machines.allow_pings();
    let echo = Machines::on(&machines.far, || UdpSocket::bind("203.0.113.9:7")).unwrap();
    let _answers = thread::spawn(move || {
        let mut data = [0; 2000];
        while let Ok((len, from)) = echo.recv_from(&mut data) {
            let _ = echo.send_to(len.to_string().as_bytes(), from);
        }
    });
    // IP_MTU_DISCOVER is 10, IP_PMTUDISC_DO 2, IP_PMTUDISC_DONT 0; IP_MTU is 14.
    let script = "import socket, select\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('203.0.113.9', 7))\n\
        s.settimeout(20); s.setsockopt(socket.IPPROTO_IP, 10, 2); s.send(bytes(1450))\n\
        select.select([s], [], [], 20)\n\
        print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getsockopt(socket.IPPROTO_IP, 14))\n\
        s.send(bytes(1372)); print(s.recv(9).decode())\n\
        s.setsockopt(socket.IPPROTO_IP, 10, 0); s.send(bytes(1450)); print(s.recv(9).decode())\n";
    for node in NODES {
        let (code, text) = machines.ran(node, &["--quiet", "--", "python3", "-c", script]);
        assert_eq!((code, &*text), (Some(0), "90 1400\n1372\n1450\n"), "{node:?}");
        let words = ["-c", "1", "-M", "do", "-s", "1400", "203.0.113.9"];
        let (code, text) = machines.ping(node, &words);
        let is_said = text.contains("mtu = 1400") || text.contains("mtu=1400");
        assert!(code == Some(1) && is_said, "{node:?}: {text}");
        let refused = &machines.summary()["refused"]["datagram_too_long_for_the_path"];
        assert_eq!(refused, 1, "{node:?}: {}", machines.summary());
    }
}

/// Prints, for 1 and 2 hops, who says that a datagram to 198.51.100.1 went no farther, and by which type of
/// ICMP. `IP_RECVERR` is 11, `IP_TTL` 2, `MSG_ERRQUEUE` 0x2000; the type is byte 5 of `sock_extended_err`,
/// its sender's address stands at 20.
pub(super) const HOPS: &str = "import socket, select\n\
    for hops in 1, 2:\n\
    \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    \x20   s.setsockopt(0, 11, 1); s.setsockopt(0, 2, hops); s.sendto(b'x', ('198.51.100.1', 33434))\n\
    \x20   p = select.poll(); p.register(s, select.POLLERR); p.poll(20000)\n\
    \x20   error = s.recvmsg(9, 99, 0x2000)[1][0][2]\n\
    \x20   print(error[5], socket.inet_ntoa(error[20:24]))\n";

impl Machines {
    /// Makes the far side a router to where nothing is.
    pub(super) fn make_far_a_router(&self) {
        self.near.run("ip route add 198.51.100.0/24 via 203.0.113.9");
        self.far.set("net.ipv4.ip_forward", "1");
        self.far.run("ip route add 198.51.100.0/24 dev far");
    }
}

#[test]
fn programs_learn_the_hops_of_the_machines_path() {
    let Some(machines) = Machines::new(&["ping", "python3"]) else { return };
    machines.allow_pings();
    machines.make_far_a_router();
    for (hops, router) in [("1", "10.0.2.2"), ("2", "203.0.113.9")] {
        let (_, text) = machines.ping(Node::Open, &["-c", "1", "-t", hops, "198.51.100.1"]);
        let is_said = text.contains(&format!("From {router} icmp_seq=1 Time to live exceeded"));
        assert!(is_said, "{hops}: {text}");
        assert_eq!(machines.summary()["refused"]["hop_limit_ran_out"], 1, "{hops}");
    }
    let (code, text) = machines.ran(Node::Open, &["--quiet", "--", "python3", "-c", HOPS]);
    assert_eq!((code, &*text), (Some(0), "11 10.0.2.2\n11 203.0.113.9\n"));
}
