//! Datagrams over TUN: with the kernel's sockets, `dig` and `ping` at the other end.
//!
//! Needs root. Without it the tests say so and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{SendTo, Stack, TcpListener, UdpSocket};

use crate::namespace::in_a_namespace;
use crate::needs::{self, IPV6, TUN};
use crate::world::{assert_empties, builder, text};

#[test]
fn datagrams_of_any_size_cross_a_tun_device_both_ways() {
    let name = "udp_tun::datagrams_of_any_size_cross_a_tun_device_both_ways";
    in_a_namespace(name, &[TUN, IPV6], sizes);
}

#[test]
fn many_datagrams_at_once_reach_the_kernel_as_many() {
    let name = "udp_tun::many_datagrams_at_once_reach_the_kernel_as_many";
    in_a_namespace(name, &[TUN, IPV6], segments);
}

#[test]
fn dig_queries_server_by_udp_then_by_tcp_if_truncated() {
    let name = "udp_tun::dig_queries_server_by_udp_then_by_tcp_if_truncated";
    in_a_namespace(name, &[TUN, IPV6, "dig"], names);
}

#[test]
fn ping_with_eight_thousand_bytes_is_answered_over_a_tun_device() {
    let name = "udp_tun::ping_with_eight_thousand_bytes_is_answered_over_a_tun_device";
    in_a_namespace(name, &[TUN, IPV6, "ping"], pings);
}

/// A stack on so many shards at a TUN device, and its address in either family.
fn stack(shards: u16) -> (Stack, [String; 2]) {
    let hosts = [format!("10.9.{shards}.2"), format!("fd0{shards}::2")];
    let wire = format!("tun:whim{shards},addr={}/24,addr={}/64", hosts[0], hosts[1]);
    let stack = builder().wire(wire.parse().unwrap()).shards(shards).build().unwrap();
    (stack, hosts)
}

#[tokio::main(flavor = "current_thread")]
async fn sizes() {
    for shards in [1, 2] {
        let (stack, hosts) = stack(shards);
        for host in &hosts {
            let own = UdpSocket::bind(&stack, (host.as_str(), 53)).await.unwrap();
            let any = if host.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
            let kernel = tokio::net::UdpSocket::bind(any).await.unwrap();
            kernel.connect((host.as_str(), 53)).await.unwrap();
            let mut buf = vec![0; 65_536];
            for len in [0, 1, 1_400, 1_472, 1_473, 8_000, 60_000] {
                let data = text(len);
                kernel.send(&data).await.unwrap();
                let (received, peer) = own.recv_from(&mut buf).await.unwrap();
                assert!(buf[..received] == data, "{len} bytes became {received}");
                own.send_to(&data, peer).await.unwrap();
                let received = kernel.recv(&mut buf).await.unwrap();
                assert!(buf[..received] == data, "{len} bytes became {received}");
            }
            // The port is closed now, which the kernel learns and reports.
            drop(own);
            let error = loop {
                kernel.send(b"anybody?").await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                if let Some(error) = kernel.take_error().unwrap() {
                    break error;
                }
            };
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        }
        // And what the kernel says of a port that it does not have.
        let own = UdpSocket::bind(&stack, "0.0.0.0:0").await.unwrap();
        own.connect((format!("10.9.{shards}.1"), 9)).await.unwrap();
        own.send(b"anybody?").await.unwrap();
        let error = own.recv(&mut [0; 4]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{error}");
        drop(own);
        assert_empties(&stack).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn segments() {
    let (stack, hosts) = stack(1);
    for (host, peer) in hosts.iter().zip(["10.9.1.1", "fd01::1"]) {
        let own = UdpSocket::bind(&stack, (host.as_str(), 0)).await.unwrap();
        let kernel = tokio::net::UdpSocket::bind((peer, 0)).await.unwrap();
        own.connect(kernel.local_addr().unwrap()).await.unwrap();
        let mut buf = vec![0; 65_536];
        let before = frames();
        for (len, each) in [(60_000, 1_200), (60_001, 1_200), (64 * 100, 100), (1_000, 1_200)] {
            let data = text(len);
            let send = SendTo::CONNECTED.with_segment(each);
            own.send_datagram(&data, &send).await.unwrap();
            for datagram in data.chunks(each.into()) {
                let received = kernel.recv(&mut buf).await.unwrap();
                assert!(buf[..received] == *datagram, "{received} bytes, not {}", datagram.len());
            }
        }
        assert!(kernel.try_recv(&mut buf).is_err(), "and no more");
        // The kernel cut what came in one frame each, where it can. It counts a frame after it handed it on.
        let whole = [4, 50 + 51 + 64 + 1];
        for _ in 0..100 {
            if !whole.contains(&(frames() - before)) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
        assert!(whole.contains(&(frames() - before)), "{} frames", frames() - before);
        let too_long = SendTo::CONNECTED.with_segment(1_500);
        let error = own.send_datagram(&text(3_000), &too_long).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    }
}

/// Returns the number of frames that the kernel took from the interface.
fn frames() -> u64 {
    let interfaces = std::fs::read_to_string("/proc/net/dev").unwrap();
    let own = interfaces.lines().find_map(|line| line.trim().strip_prefix("whim1:")).unwrap();
    own.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn pings() {
    let (_stack, hosts) = stack(1);
    for host in hosts {
        let said = run(&format!("ping -c 3 -i 0.2 -W 5 -s 8000 {host}")).await;
        assert!(said.contains("3 received"), "{said}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn names() {
    let (stack, hosts) = stack(1);
    let udp = UdpSocket::bind(&stack, "[::]:53").await.unwrap();
    let tcp = TcpListener::bind(&stack, "[::]:53").await.unwrap();
    let over_udp = tokio::spawn(async move {
        let mut buf = [0; 4_096];
        while let Ok((len, peer)) = udp.recv_from(&mut buf).await {
            let answer = answer(&buf[..len], Most::Datagram);
            udp.send_to(&answer, peer).await.unwrap();
        }
    });
    let over_tcp = tokio::spawn(async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            let len = stream.read_u16().await.unwrap();
            let mut query = vec![0; len.into()];
            stream.read_exact(&mut query).await.unwrap();
            let answer = answer(&query, Most::Stream);
            stream.write_u16(answer.len() as u16).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    });
    for host in &hosts {
        let dig = |asked| format!("dig +tries=1 +time=5 @{host} {asked}");
        let said = run(&dig("short.example A")).await;
        assert!(said.contains("192.0.2.53") && said.contains("(UDP)"), "{said}");
        let said = run(&dig("long.example TXT")).await;
        assert!(said.contains("Truncated, retrying in TCP mode"), "{said}");
        assert_eq!(said.matches(&"t".repeat(200)).count(), 10, "{said}");
    }
    over_udp.abort();
    over_tcp.abort();
    let _ = (over_udp.await, over_tcp.await);
    let counters = stack.udp_counters().await.unwrap();
    assert_eq!((counters.in_datagrams, counters.out_datagrams), (4, 4));
    assert_empties(&stack).await;
}

/// Runs a program, which has to succeed, while the stack goes on.
async fn run(line: &str) -> String {
    let mut command = needs::command(line);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Largest answer, by its transport.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Most {
    /// 512 bytes (RFC 1035 4.2.1).
    Datagram,
    Stream,
}

/// Returns the answer of a name server with one address and one long text (RFC 1035 4).
fn answer(query: &[u8], most: Most) -> Vec<u8> {
    // The name ends with a label of no length; type and class follow.
    let name_len = query[12..].iter().position(|it| *it == 0).unwrap() + 1;
    let question = &query[12..12 + name_len + 4];
    let asked = u16::from_be_bytes([question[name_len], question[name_len + 1]]);
    let data = match asked {
        1 => vec![192, 0, 2, 53],
        _ => [vec![200], vec![b't'; 200]].concat().repeat(10),
    };
    let fits = most == Most::Stream || data.len() < 400;
    // An answer, authoritative; truncated, if it does not fit.
    let flags: u16 = 0x8500 | if fits { 0 } else { 0x200 };
    let mut answer = query[..2].to_vec();
    for field in [flags, 1, u16::from(fits), 0, 0] {
        answer.extend(field.to_be_bytes());
    }
    answer.extend_from_slice(question);
    if fits {
        // The same name, type and class; a minute.
        answer.extend([0xc0, 12]);
        answer.extend_from_slice(&question[name_len..]);
        answer.extend([0, 0, 0, 60]);
        answer.extend((data.len() as u16).to_be_bytes());
        answer.extend(data);
    }
    answer
}
