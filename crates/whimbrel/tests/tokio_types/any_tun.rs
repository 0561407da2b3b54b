//! Results of the kernel's client for destinations served by a stack over TUN, compared with those of the
//! kernel's own.
//!
//! Needs root. Without it the test says so and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream as KernelStream;
use tokio::time::{Instant, sleep};
use whimbrel::{AnyListener, Incoming, Stack, TcpListener, UdpSocket, Unreachable};

use crate::namespace::in_a_namespace;
use crate::needs::{self, IPV6, TUN};
use crate::world::{assert_empties, builder, text};

#[test]
fn kernel_client_sees_same_outcomes_as_from_kernel() {
    let name = "any_tun::kernel_client_sees_same_outcomes_as_from_kernel";
    in_a_namespace(name, &[TUN, IPV6, "ip"], outsides);
}

#[test]
fn so_they_do_to_who_sends_datagrams() {
    let name = "any_tun::so_they_do_to_who_sends_datagrams";
    in_a_namespace(name, &[TUN, IPV6, "ip"], datagrams);
}

/// Behaviour of a destination, by the last number of its address.
const REFUSES: u8 = 1;
const NO_HOST: u8 = 2;
const NO_NETWORK: u8 = 3;
const NO_PORT: u8 = 4;
const SILENT: u8 = 5;
const SLOW: u8 = 6;
const FORBIDDEN: u8 = 20;
/// This one and those behind it.
const ECHOES: u8 = 7;

/// Long enough that a SYN comes again.
const SLOWNESS: Duration = Duration::from_millis(1_200);

#[tokio::main(flavor = "current_thread")]
async fn outsides() {
    // Two repetitions: else it takes two minutes to see nothing.
    fs::write("/proc/sys/net/ipv4/tcp_syn_retries", "2").unwrap();
    let stack = stack();
    ip([
        // The kernel's own black hole: a link with an address that no host has.
        "link add hole type veth peer name bottom",
        "link set hole up",
        "link set bottom up",
        "route add 203.0.113.0/24 dev hole",
        "neighbour add 203.0.113.1 lladdr 02:00:00:00:00:99 dev hole",
    ]);
    let serving = tokio::spawn(serve(TcpListener::bind_any(&stack).unwrap()));
    tokio::join!(
        looks(|last| IpAddr::from([198, 51, 100, last])),
        looks(|last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)])),
    );
    serving.abort();
    let _ = serving.await;
    assert_empties(&stack).await;
}

/// One that speaks for everybody, where the kernel sends what is for two networks that are nowhere.
fn stack() -> Stack {
    let stack = builder()
        .wire("tun:whim0,addr=10.9.0.2/24,addr=fd09::2/64".parse().unwrap())
        .shards(2)
        .any_address()
        .build()
        .unwrap();
    ip([
        "link set lo up",
        "route add 198.51.100.0/24 dev whim0",
        "-6 route add 2001:db8::/64 dev whim0",
    ]);
    stack
}

fn ip<const N: usize>(commands: [&str; N]) {
    for words in commands {
        let status = needs::command(&format!("ip {words}")).status();
        assert!(status.unwrap().success(), "{words}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn datagrams() {
    let stack = stack();
    let any = UdpSocket::bind_any(&stack).await.unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let received = any.recv().await.unwrap();
            match last_of(received.to.addr.to_ip()) {
                REFUSES | NO_PORT => any.refuse(&received, Unreachable::Port),
                NO_HOST => any.refuse(&received, Unreachable::Host),
                NO_NETWORK => any.refuse(&received, Unreachable::Network),
                FORBIDDEN => any.refuse(&received, Unreachable::Prohibited),
                SILENT => {}
                last => {
                    if last == SLOW {
                        sleep(SLOWNESS).await;
                    }
                    any.answer(&received, &received.data).await.unwrap();
                }
            }
        }
    });
    // A closed port of the kernel.
    let closed = errno(asks(IpAddr::from([127, 0, 0, 1]), 3).await);
    for v4 in [true, false] {
        let to = |last: u8| match v4 {
            true => IpAddr::from([198, 51, 100, last]),
            false => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]),
        };
        let forbidden = if v4 { EHOSTUNREACH } else { EACCES };
        for (last, expected) in [(REFUSES, closed), (NO_PORT, closed), (FORBIDDEN, forbidden)] {
            assert_eq!(errno(asks(to(last), 3).await), expected, "{last}");
        }
        // Of a host or network that is not reached now the kernel reports it only with `IP_RECVERR`; others
        // wait, as for an answer that never comes.
        let heard = unreachables();
        for last in [NO_HOST, NO_NETWORK, SILENT] {
            let silent = tokio::time::timeout(SLOWNESS / 4, asks(to(last), 3)).await;
            assert!(silent.is_err(), "{last}: {silent:?}");
        }
        assert_eq!(unreachables() - heard, 2);
        let began = Instant::now();
        asks(to(SLOW), 3).await.unwrap();
        assert!(began.elapsed() >= SLOWNESS);
        for last in ECHOES..ECHOES + 3 {
            for len in [0, 1, 1_400, 1_473, 8_000, 60_000] {
                asks(to(last), len).await.unwrap();
            }
        }
    }
    serving.abort();
    let _ = serving.await;
    // Datagrams are refused now; those that came before the close stay without an answer.
    let refused = loop {
        let asking = asks(IpAddr::from([198, 51, 100, ECHOES]), 3);
        if let Ok(refused) = tokio::time::timeout(SLOWNESS, asking).await {
            break refused;
        }
    };
    assert_eq!(errno(refused), closed);
    assert_empties(&stack).await;
}

/// So many bytes there and back, by a connected socket of the kernel.
async fn asks(to: IpAddr, len: usize) -> io::Result<()> {
    let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
    socket.connect((to, 53)).await?;
    let (sent, mut buf) = (text(len), vec![0; 65_536]);
    socket.send(&sent).await?;
    let received = socket.recv(&mut buf).await?;
    assert!(buf[..received] == sent, "{len} bytes became {received}");
    Ok(())
}

/// Number of ICMP errors of this kind that the kernel has received, of either family.
fn unreachables() -> u64 {
    let v6 = fs::read_to_string("/proc/net/snmp6").unwrap();
    let v6 = v6.lines().find_map(|line| line.strip_prefix("Icmp6InDestUnreachs")).unwrap();
    let v4 = fs::read_to_string("/proc/net/snmp").unwrap();
    let lines: Vec<_> = v4.lines().filter(|line| line.starts_with("Icmp:")).collect();
    let [names, values] = lines[..] else { panic!("{v4}") };
    let place = names.split(' ').position(|name| name == "InDestUnreachs").unwrap();
    let v4: u64 = values.split(' ').nth(place).unwrap().parse().unwrap();
    v4 + v6.trim().parse::<u64>().unwrap()
}

fn last_of(addr: IpAddr) -> u8 {
    match addr {
        IpAddr::V4(addr) => addr.octets()[3],
        IpAddr::V6(addr) => addr.octets()[15],
    }
}

/// Result of the kernel's client for each, and its time.
async fn looks(to: impl Fn(u8) -> IpAddr) {
    // Together with the kernel's own black hole, at the same time.
    let (silent, hole, slow) =
        tokio::join!(dial(to(SILENT)), dial(IpAddr::from([203, 0, 113, 1])), dial(to(SLOW)));
    assert_eq!(errno(silent.0), errno(hole.0));
    let given_up = hole.1;
    assert!(silent.1.abs_diff(given_up) < given_up / 2, "{:?} and {given_up:?}", silent.1);
    assert!(slow.1 >= SLOWNESS, "{:?}", slow.1);
    echoed(slow.0.unwrap()).await;

    let closed = dial(IpAddr::from([127, 0, 0, 1])).await.0;
    let closed = errno(closed);
    let refusals =
        [(REFUSES, closed), (NO_PORT, closed), (NO_HOST, EHOSTUNREACH), (NO_NETWORK, ENETUNREACH)];
    for (last, expected) in refusals {
        let (refused, took) = dial(to(last)).await;
        assert_eq!(errno(refused), expected, "{last}");
        assert!(took < given_up, "{last}: {took:?}");
    }
    for last in ECHOES..ECHOES + 3 {
        let stream = dial(to(last)).await.0.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), SocketAddr::new(to(last), 80));
        echoed(stream).await;
    }
}

async fn dial(addr: IpAddr) -> (io::Result<KernelStream>, Duration) {
    let began = Instant::now();
    (KernelStream::connect((addr, 80)).await, began.elapsed())
}

async fn serve(listener: AnyListener) -> io::Result<()> {
    loop {
        tokio::spawn(decide(listener.next().await?));
    }
}

async fn decide(incoming: Incoming) -> io::Result<()> {
    let last = last_of(incoming.destination().ip());
    match last {
        REFUSES => incoming.reset(),
        NO_HOST => incoming.unreachable(Unreachable::Host),
        NO_NETWORK => incoming.unreachable(Unreachable::Network),
        NO_PORT => incoming.unreachable(Unreachable::Port),
        SILENT => incoming.ignore(),
        _ => {
            if last == SLOW {
                sleep(SLOWNESS).await;
            }
            let (mut read, mut write) = incoming.accept().await?.into_split();
            tokio::io::copy(&mut read, &mut write).await?;
            write.shutdown().await?;
        }
    }
    Ok(())
}

async fn echoed(stream: KernelStream) {
    let (mut read, mut write) = stream.into_split();
    let (sent, mut received) = (text(1 << 20), Vec::new());
    let writing = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    tokio::join!(writing, async { read.read_to_end(&mut received).await.unwrap() });
    assert!(received == sent, "{} bytes came back", received.len());
}

fn errno<T: std::fmt::Debug>(dialled: io::Result<T>) -> i32 {
    dialled.unwrap_err().raw_os_error().unwrap()
}

const EACCES: i32 = 13;
const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;
