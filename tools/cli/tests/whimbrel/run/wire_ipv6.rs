//! `whimbrel run -w`: programs that use IPv6, on a wire that has it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Output;
use std::{fs, thread};

use super::{Machines, Node};
use crate::needs::IPV6;
use crate::netns::Net;
use crate::running::{Running, await_that, output};

/// Addresses that no kernel has: what comes from them is the stack's.
const WIRE: &str = "packet:near,addr=203.0.113.2/24,addr=fd03::2/64";

impl Machines {
    /// Both machines with IPv6.
    fn with_ipv6(programs: &[&'static str]) -> Option<Self> {
        let machines = Self::new(&[programs, &[IPV6]].concat())?;
        machines.add_ipv6();
        Some(machines)
    }

    /// Exit code and output of a program behind `run -w`, by root.
    fn ran_on(&self, wire: &str, program: &[&str]) -> (Option<i32>, String) {
        let words = [&["--json", "-o", "summary", "-w", wire, "--"], program].concat();
        let Output { status, stdout, stderr } = output(&mut self.run_as("env", Node::Open, &words));
        let text = [stdout, stderr].concat();
        (status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// A network beyond the far side, by a link of 1,300 bytes: fd04::9.
    fn add_narrow_link(&self) -> Net {
        let deep = Net::new().unwrap();
        self.far.set("net.ipv6.conf.all.forwarding", "1");
        self.far.run("ip link add narrow mtu 1300 type veth peer name end mtu 1300");
        self.far.give("end", &deep);
        for (net, name, address) in [(&self.far, "narrow", "fd04::1"), (&deep, "end", "fd04::9")] {
            net.run(&format!("ip address add {address}/64 dev {name} nodad"));
            net.run(&format!("ip link set {name} up"));
        }
        deep.run("ip route add default via fd04::1");
        deep
    }
}

/// Answers datagrams by the sender's address and their length.
fn answer_datagrams(net: &Net, at: &str) {
    let socket = Machines::on(net, || UdpSocket::bind(at)).unwrap();
    thread::spawn(move || {
        let mut data = [0; 9000];
        while let Ok((len, from)) = socket.recv_from(&mut data) {
            let _ = socket.send_to(format!("{} {len}", from.ip()).as_bytes(), from);
        }
    });
}

#[test]
fn connections_pass_by_the_stacks_own_tcp_over_ipv6() {
    let Some(machines) = Machines::with_ipv6(&["python3"]) else { return };
    let listener = Machines::on(&machines.far, || TcpListener::bind("[fd03::9]:80")).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut data) = (client.unwrap(), Vec::new());
            let from = client.peer_addr().unwrap().ip();
            client.read_to_end(&mut data).unwrap();
            client.write_all(format!("{from} {} ", data.len()).as_bytes()).unwrap();
            client.write_all(&data).unwrap();
        }
    });
    let script = "import socket\n\
        s = socket.create_connection(('fd03::9', 80))\n\
        data = bytes(i % 251 for i in range(2000000))\n\
        s.sendall(data); s.shutdown(socket.SHUT_WR)\n\
        print(s.makefile('rb').read() == b'fd03::2 2000000 ' + data)\n";
    let (code, text) = machines.ran_on(WIRE, &["python3", "-c", script]);
    assert_eq!((code, &*text), (Some(0), "True\n"));
    let wire = &machines.summary()["wire"];
    assert!(wire["segments_out"].as_u64().unwrap() > 1000, "{wire}");
    let without = "packet:near,addr=203.0.113.2/24";
    for (wire, to, reason) in [
        (WIRE, "http://[fd03::9]:81/", "connection_refused"),
        (WIRE, "http://[fd03::77]/", "host_unreachable"),
        (WIRE, "http://[2001:db8::1]/", "network_unreachable"),
        (WIRE, "http://[fd77:6869:6d62::2]/", "denied"),
        (WIRE, "http://[64:ff9b::7f00:1]/", "denied"),
        (without, "http://[fd03::9]/", "network_unreachable"),
    ] {
        let (code, text) = machines.ran_on(wire, &["curl", "-sS", "-g", "-m", "20", to]);
        assert_eq!(code, Some(7), "{to}: {text}");
        assert_eq!(machines.summary()["refused"][reason], 1, "{to}: {}", machines.summary());
    }
}

#[test]
fn datagrams_and_echoes_pass_over_ipv6() {
    let Some(machines) = Machines::with_ipv6(&["python3", "ping"]) else { return };
    let deep = machines.add_narrow_link();
    answer_datagrams(&machines.far, "[fd03::9]:7");
    answer_datagrams(&deep, "[fd04::9]:7");
    // The last is longer than a link on its path: the router there says so, and then it comes in fragments.
    let script = "import socket\n\
        def ask(to, size):\n\
        \x20   s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect((to, 7)); s.settimeout(1)\n\
        \x20   while True:\n\
        \x20       try: s.send(bytes(size)); return s.recv(99).decode()\n\
        \x20       except OSError as error:\n\
        \x20           if error.errno == 111: return 'refused'\n\
        for to, size in ('fd03::9', 1), ('fd03::9', 5000), ('fd04::9', 1400): print(ask(to, size))\n\
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(('fd03::9', 8))\n\
        s.settimeout(20); s.send(b'x')\n\
        try: s.recv(9)\n\
        except ConnectionRefusedError: print('refused')\n";
    let wire = format!("{WIRE},gw=fd03::9");
    let (code, text) = machines.ran_on(&wire, &["python3", "-c", script]);
    let expected = "fd03::2 1\nfd03::2 5000\nfd03::2 1400\nrefused\n";
    assert_eq!((code, &*text), (Some(0), expected));
    for (to, size) in [("fd03::9", "0"), ("fd03::9", "5000"), ("fd04::9", "1400")] {
        let ping = ["ping", "-n", "-c", "1", "-i", "0.1", "-w", "20", "-s", size, to];
        let (code, text) = machines.ran_on(&wire, &ping);
        assert_eq!(code, Some(0), "{to} {size}: {text}");
    }
    for (to, hops, said) in [
        ("fd03::77", "9", "From fd77:6869:6d62::2 icmp_seq=1 Destination unreachable: Address"),
        ("fd04::9", "1", "From fd77:6869:6d62::2 icmp_seq=1 Time exceeded: Hop limit"),
        ("fd04::9", "2", "From fd03::9 icmp_seq=1 Time exceeded: Hop limit"),
        ("fd05::9", "9", "From fd03::9 icmp_seq=1 Destination unreachable: No route"),
    ] {
        let ping = ["ping", "-n", "-c", "1", "-W", "20", "-t", hops, to];
        let (code, text) = machines.ran_on(&wire, &ping);
        assert!(code == Some(1) && text.contains(said), "{to} {hops}: {text}");
    }
}

#[test]
fn names_are_found_by_a_name_server_with_ipv6() {
    let Some(machines) = Machines::with_ipv6(&["getent"]) else { return };
    let socket = Machines::on(&machines.far, || UdpSocket::bind("[fd03::9]:53")).unwrap();
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut query) {
            let mut answer = super::answer(&query[..len], false);
            // AAAA, RFC 3596 2.1.
            if answer.ends_with(&[0, 28, 0, 1]) {
                answer[7] = 1;
                answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
                answer.extend("fd03::9".parse::<std::net::Ipv6Addr>().unwrap().octets());
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    fs::write(machines.near.folder().join("resolv.conf"), "nameserver fd03::9\n").unwrap();
    let (code, text) = machines.ran_on(WIRE, &["getent", "ahostsv6", "six.example"]);
    assert!(code == Some(0) && text.starts_with("fd03::9 "), "{text}");
}

#[test]
fn published_ports_are_at_the_wires_ipv6_addresses() {
    let Some(machines) = Machines::with_ipv6(&["python3"]) else { return };
    let script = "import socket\n\
        s = socket.create_server(('::', 80), family=socket.AF_INET6)\n\
        open('up', 'w').close()\n\
        c, a = s.accept(); c.sendall(a[0].encode())\n";
    let words = ["--quiet", "-w", WIRE, "-p", "[fd03::2]:8080:80", "--", "python3", "-c", script];
    let mut run = Running::start(&mut machines.run_as("env", Node::Open, &words));
    await_that("the program listens", || machines.near.folder().join("up").exists());
    let mut text = String::new();
    Machines::on(&machines.far, || TcpStream::connect("[fd03::2]:8080"))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "fd03::9");
    assert!(run.wait().success());
}
