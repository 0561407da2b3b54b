//! `whimbrel run -w`: programs whose flows the stack carries on by its own TCP, UDP and echoes on a wire.

use std::io::Read;
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Output};

use super::datagrams::HOPS;
use super::{Machines, Node};
use crate::needs::IPV6;
use crate::running::{Running, await_that, output};

/// An address that no kernel has: what comes from it is the stack's.
const WIRE: &str = "packet:near,addr=203.0.113.2/24";
const NODES: [Node; 2] = [Node::Open, Node::Hidden];

impl Machines {
    /// `whimbrel run -w` with these words, by root.
    fn on_wire(&self, node: Node, words: &[&str]) -> Command {
        self.run_as("env", node, &[&["-w", WIRE], words].concat())
    }

    fn ran_on_wire(&self, node: Node, words: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = output(&mut self.on_wire(node, words));
        let text = [stdout, stderr].concat();
        (status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

#[test]
fn programs_load_every_byte_by_the_stacks_own_tcp() {
    loads(16 << 20);
}

/// Loads a file of so many bytes by curl and by a static program.
pub(crate) fn loads(len: usize) {
    let Some(machines) = Machines::new(&["busybox", "cmp"]) else { return };
    machines.load_by_each(len, &NODES, |node, program| {
        let words = [&["--json", "-o", "summary", "--"], program].concat();
        let (code, text) = machines.ran_on_wire(node, &words);
        assert_eq!((code, &*text), (Some(0), ""), "{node:?} {program:?}");
        let wire = &machines.summary()["wire"];
        assert!(wire["segments_in"].as_u64().unwrap() > len as u64 / 65_536, "{wire}");
        assert_eq!(wire["connections_left"], 0, "{wire}");
    });
}

#[test]
fn uploads_of_five_hundred_clients_arrive_by_the_stacks_own_tcp() {
    let Some(machines) = Machines::new(&["python3"]) else { return };
    let listener =
        Machines::on(&machines.far, || std::net::TcpListener::bind("203.0.113.9:80")).unwrap();
    rustix::net::listen(&listener, 1024).unwrap();
    let received = std::thread::spawn(move || {
        let clients = listener.incoming().take(500).map(|client| {
            let mut client = client.unwrap();
            let from = client.peer_addr().unwrap().ip().to_string();
            let mut text = Vec::new();
            client.read_to_end(&mut text).unwrap();
            (from, text.len())
        });
        clients.collect::<Vec<_>>()
    });
    let script = "import socket\n\
        all = [socket.create_connection(('203.0.113.9', 80)) for i in range(500)]\n\
        for s in all: s.sendall(bytes(20000)); s.close()\n";
    let words = ["--quiet", "--", "python3", "-c", script];
    let (code, text) = machines.ran_on_wire(Node::Open, &words);
    assert_eq!((code, &*text), (Some(0), ""));
    let expected = vec![("203.0.113.2".to_owned(), 20_000); 500];
    assert!(received.join().unwrap() == expected, "all from the stack's address, and whole");
}

#[test]
fn refusals_on_the_wire_reach_the_program() {
    let Some(machines) = Machines::new(&["python3"]) else { return };
    for (to, reason) in [
        ("http://203.0.113.9:81/", "connection_refused"),
        ("http://203.0.113.77/", "host_unreachable"),
        ("http://192.0.2.1/", "network_unreachable"),
        ("http://127.0.0.1:22/", ""),
        ("http://10.0.2.2/", "denied"),
        ("http://169.254.1.1/", "denied"),
    ] {
        let words = ["--json", "-o", "summary", "--", "curl", "-sS", "-m", "20", to];
        let (code, text) = machines.ran_on_wire(Node::Open, &words);
        assert_eq!(code, Some(7), "{to}: {text}");
        let summary = machines.summary();
        assert!(reason.is_empty() || summary["refused"][reason] == 1, "{to}: {summary}");
    }
    // Silence outside is silence inside.
    machines.far.run("ip route add blackhole 203.0.113.2/32");
    let words = ["--quiet", "--", "curl", "-sS", "-m", "1", "http://203.0.113.9/"];
    let (code, text) = machines.ran_on_wire(Node::Open, &words);
    assert_eq!(code, Some(28), "{text}");
    machines.far.run("ip route del blackhole 203.0.113.2/32");
    let script = "import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)\n\
        s.connect(('203.0.113.9', 7)); s.send(b'x')\n\
        try: s.recv(9)\n\
        except ConnectionRefusedError: print('refused')\n";
    let words = ["--quiet", "--", "python3", "-c", script];
    assert_eq!(machines.ran_on_wire(Node::Open, &words), (Some(0), "refused\n".into()));
}

#[test]
fn names_and_echoes_pass_by_the_wire() {
    let Some(machines) = Machines::new(&["getent", "ping"]) else { return };
    machines.name_server();
    for name in ["short.example", "long.example"] {
        let words = ["--quiet", "--", "getent", "ahostsv4", name];
        let (code, text) = machines.ran_on_wire(Node::Open, &words);
        assert!(code == Some(0) && text.starts_with("203.0.113.9 "), "{name}: {text}");
    }
    // The last has more fragments than wait for the address of a neighbour: its first requests are lost, and
    // with a deadline it sends others.
    for size in ["0", "56", "5000"] {
        let words = ["--json", "-o", "summary", "--", "ping", "-n", "-c", "3", "-i", "0.01"];
        let words = [&words[..], &["-w", "20", "-s", size, "203.0.113.9"]].concat();
        let (code, text) = machines.ran_on_wire(Node::Open, &words);
        assert_eq!(code, Some(0), "{size}: {text}");
        let echoes = &machines.summary()["echoes"];
        let [out, back] = ["out", "in"].map(|way| echoes[way].as_u64().unwrap());
        assert!(back >= 3 && out >= back, "{size}: {echoes}");
    }
    let words = ["--quiet", "--", "ping", "-n", "-c", "1", "-W", "5", "203.0.113.77"];
    let (code, text) = machines.ran_on_wire(Node::Open, &words);
    assert!(code == Some(1) && text.contains("Destination Host Unreachable"), "{text}");
}

/// Many datagrams of one peer come in one turn: none is left behind.
#[test]
fn every_datagram_of_a_burst_is_answered() {
    let Some(machines) = Machines::new(&["python3"]) else { return };
    let echo = Machines::on(&machines.far, || UdpSocket::bind("203.0.113.9:7")).unwrap();
    let _answers = std::thread::spawn(move || {
        let mut data = [0; 2000];
        while let Ok((len, from)) = echo.recv_from(&mut data) {
            for _ in 0..100 {
                let _ = echo.send_to(&data[..len], from);
            }
        }
    });
    let script = "import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)\n\
        s.sendto(b'x', ('203.0.113.9', 7))\n\
        print(sum(len(s.recv(9)) for i in range(100)))\n";
    let words = ["--quiet", "--", "python3", "-c", script];
    assert_eq!(machines.ran_on_wire(Node::Open, &words), (Some(0), "100\n".into()));
}

#[test]
fn programs_learn_the_hops_of_the_wires_path() {
    let Some(machines) = Machines::new(&["ping", "python3"]) else { return };
    machines.make_far_a_router();
    let wire = "packet:near,addr=203.0.113.2/24,gw=203.0.113.9";
    let ran = |words: &[&str]| {
        let words = [&["--quiet", "-w", wire, "--"], words].concat();
        let Output { stdout, stderr, .. } = output(&mut machines.run_as("env", Node::Open, &words));
        String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
    };
    for (hops, router) in [("1", "10.0.2.2"), ("2", "203.0.113.9")] {
        let text = ran(&["ping", "-n", "-c", "1", "-W", "5", "-t", hops, "198.51.100.1"]);
        let is_said = text.contains(&format!("From {router} icmp_seq=1 Time to live exceeded"));
        assert!(is_said, "{hops}: {text}");
    }
    assert_eq!(ran(&["python3", "-c", HOPS]), "11 10.0.2.2\n11 203.0.113.9\n");
}

#[test]
fn published_ports_are_the_wires() {
    let Some(machines) = Machines::new(&["python3", IPV6]) else { return };
    let script = "import socket\n\
        s = socket.create_server(('0.0.0.0', 80))\n\
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('0.0.0.0', 80))\n\
        open('up', 'w').close()\n\
        c, a = s.accept(); c.sendall(a[0].encode()); c.close()\n\
        d, a = u.recvfrom(9); u.sendto(a[0].encode(), a)\n";
    let words = ["--quiet", "-p", "8080:80", "-p", "8081:81", "-p", "0.0.0.0:8080:80/udp"];
    let words = [&words[..], &["--", "python3", "-c", script]].concat();
    let mut run = Running::start(&mut machines.on_wire(Node::Open, &words));
    let is_up = machines.near.folder().join("up");
    await_that("the program listens", || is_up.exists());
    let socket = Machines::on(&machines.far, || {
        // The reset may come before the caller sees that it is connected.
        let closed = TcpStream::connect("203.0.113.2:8081");
        let refused = closed.and_then(|mut it| it.read(&mut [0; 9])).unwrap_err().kind();
        assert_eq!(refused, std::io::ErrorKind::ConnectionReset);
        let mut text = String::new();
        TcpStream::connect("203.0.113.2:8080").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "203.0.113.9");
        UdpSocket::bind("0.0.0.0:0").unwrap()
    });
    socket.connect("203.0.113.2:8080").unwrap();
    socket.send(b"who").unwrap();
    let mut text = [0; 99];
    let len = socket.recv(&mut text).unwrap();
    assert_eq!(&text[..len], b"203.0.113.9");
    assert!(run.wait().success());
    let words = ["-p", "203.0.113.1:8080:80", "--", "true"];
    let (code, text) = machines.ran_on_wire(Node::Open, &words);
    let is_said = text.contains("203.0.113.1 is no address of the wire: use one of 203.0.113.2");
    assert!(code == Some(2) && is_said, "{text}");
}

#[test]
fn lost_wire_ends_run_and_its_program() {
    let Some(machines) = Machines::new(&[]) else { return };
    let is_up = machines.near.folder().join("up");
    let words = ["--", "sh", "-c", "touch up; exec sleep 300"];
    let mut command = machines.on_wire(Node::Open, &words);
    let run = Running::start(command.stderr(std::process::Stdio::piped()));
    await_that("the program runs", || is_up.exists());
    machines.near.run("ip link del near");
    let Output { status, stderr, .. } = run.output();
    let text = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.code() == Some(1) && text.contains("packet:near: the device is lost"), "{text}");
}

#[test]
fn wires_that_carry_nothing_on_are_refused() {
    for (words, said) in [
        ("run -w kernel: -- true", "leave it out"),
        ("run -w mem: -- true", "--link"),
        ("run -w packet:lo,addr=192.0.2.1/24 --host-loopback -- true", "--host-loopback"),
        ("run --route 192.0.2.0/24,mtu=1400 -- true", "-w, which is not given"),
    ] {
        let (code, text) = crate::running::fail(&mut crate::running::whimbrel(words));
        assert!(code == 2 && crate::running::unbroken(&text).contains(said), "{words}: {text}");
    }
}

#[test]
fn unread_flows_cost_nothing_and_lose_nothing() {
    super::programs::stall(|machines, words| machines.on_wire(Node::Open, words));
}
