//! Errors of UDP sockets, compared with those of the kernel's sockets in the same place.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use whimbrel::{Fragmenting, SendTo, UdpSocket};

use crate::namespace::in_a_namespace;
use crate::needs::{self, IPV6, TUN};
use crate::world::{World, assert_empties, builder, until};

#[test]
fn socket_errors_equal_those_of_kernel() {
    let name = "udp_kernel::socket_errors_equal_those_of_kernel";
    in_a_namespace(name, &[TUN, IPV6, "ip", "python3"], beside_the_kernel);
}

/// The stack at 10.9.1.2 and the kernel at 10.9.1.1, each as the other's peer over a link of 1,500 bytes.
#[tokio::main(flavor = "current_thread")]
async fn beside_the_kernel() {
    let wire = "tun:whim1,addr=10.9.1.2/24".parse().unwrap();
    let stack = builder().wire(wire).build().unwrap();
    // As the kernel in this namespace, the stack has no way but to its own network.
    let routes = stack.inspect(0, |shard| shard.routes().iter().copied().collect::<Vec<_>>());
    for route in routes.await.unwrap().into_iter().filter(|route| route.prefix_len == 0) {
        stack.remove_route(route).await.unwrap();
    }
    assert!(needs::command("ip link set lo up").status().unwrap().success());
    let ours = story(&stack).await.join("\n");
    let mut kernels = needs::command("python3");
    kernels.args(["-c", KERNELS]);
    let kernel = tokio::task::spawn_blocking(move || kernels.output().unwrap()).await.unwrap();
    let theirs = String::from_utf8_lossy(&kernel.stdout);
    let errors = String::from_utf8_lossy(&kernel.stderr);
    assert_eq!(ours, theirs.trim(), "{errors}");
}

/// Results of a program, a line for each step.
async fn story(stack: &whimbrel::Stack) -> Vec<String> {
    let mut said = Vec::new();
    let mut buf = [0; 4_096];
    let near = UdpSocket::bind(stack, "10.9.1.2:0").await.unwrap();
    let many = UdpSocket::bind(stack, "[::]:0").await.unwrap();
    let own = format!("10.9.1.2:{}", many.local_addr().unwrap().port());
    say(&mut said, "no route", many.send_to(b"x", "192.0.2.1:9").await);
    say(&mut said, "port 0", many.send_to(b"x", "10.9.1.1:0").await);
    say(&mut said, "closed port", many.send_to(b"x", "10.9.1.1:1").await);
    let refuses = UdpSocket::bind(stack, "10.9.1.2:0").await.unwrap();
    refuses.connect("10.9.1.1:1").await.unwrap();
    say(&mut said, "closed port, connected", refuses.send(b"x").await);
    say(&mut said, "refused", heard(refuses.recv(&mut buf)).await);
    say(&mut said, "refused once", refuses.send(b"x").await);
    // By now the answer about the first was heard, too.
    near.send_to(b"others go on", &own).await.unwrap();
    say(&mut said, "others", heard(many.recv(&mut buf)).await);
    near.send_to(b"", &own).await.unwrap();
    say(&mut said, "empty", heard(many.recv(&mut buf)).await);
    near.send_to(b"cut off", &own).await.unwrap();
    near.send_to(b"whole", &own).await.unwrap();
    say(&mut said, "short buffer", heard(many.recv(&mut buf[..3])).await);
    say(&mut said, "the next", heard(many.recv(&mut buf)).await);
    let uncut = UdpSocket::bind(stack, "10.9.1.2:0").await.unwrap();
    uncut.set_fragmenting(Fragmenting::Refused).unwrap();
    say(&mut said, "too long", uncut.send_to(&[0; 1_473], "10.9.1.1:9").await);
    say(&mut said, "fits", uncut.send_to(&[0; 1_472], "10.9.1.1:9").await);
    let to = whimbrel::Endpoint::from("10.9.1.1:9".parse::<std::net::SocketAddr>().unwrap());
    let cut = |segment| SendTo::peer(to).with_segment(segment);
    say(&mut said, "segments", uncut.send_datagram(&[0; 4_000], &cut(1_000)).await);
    say(&mut said, "one segment", uncut.send_datagram(&[0; 1_000], &cut(2_000)).await);
    let long = uncut.send_datagram(&[0; 4_000], &cut(1_473)).await;
    said.push(format!("long segments fail: {}", long.is_err()));
    let filtered = UdpSocket::bind(stack, "10.9.1.2:0").await.unwrap();
    filtered.connect(near.local_addr().unwrap()).await.unwrap();
    many.send_to(b"from another", filtered.local_addr().unwrap()).await.unwrap();
    near.send_to(b"from its peer", filtered.local_addr().unwrap()).await.unwrap();
    say(&mut said, "its peer alone", heard(filtered.recv(&mut buf)).await);
    said
}

fn say(said: &mut Vec<String>, step: &str, result: io::Result<usize>) {
    let what = match result {
        Ok(len) => len.to_string(),
        Err(error) => match error.kind() {
            ErrorKind::NetworkUnreachable => "ENETUNREACH".to_owned(),
            ErrorKind::ConnectionRefused => "ECONNREFUSED".to_owned(),
            ErrorKind::InvalidInput if error.to_string().contains("too long") => {
                "EMSGSIZE".to_owned()
            }
            ErrorKind::InvalidInput => "EINVAL".to_owned(),
            _ => format!("{error:?}"),
        },
    };
    said.push(format!("{step}: {what}"));
}

async fn heard(receiving: impl Future<Output = io::Result<usize>>) -> io::Result<usize> {
    timeout(Duration::from_secs(20), receiving).await.unwrap_or(Err(ErrorKind::TimedOut.into()))
}

/// Runs the program over the kernel's sockets.
const KERNELS: &str = r#"
import errno, socket
from socket import AF_INET, AF_INET6, SOCK_DGRAM
IP_MTU_DISCOVER, IP_PMTUDISC_DO, UDP_SEGMENT = 10, 2, 103
def say(step, act):
    try: what = act()
    except OSError as error: what = errno.errorcode[error.errno]
    print(f"{step}: {what}")
    return what
def bound():
    it = socket.socket(AF_INET, SOCK_DGRAM)
    it.bind(("10.9.1.1", 0))
    it.settimeout(20)
    return it
near, many = bound(), socket.socket(AF_INET6, SOCK_DGRAM)
many.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
many.bind(("::", 0))
many.settimeout(20)
own = ("10.9.1.1", many.getsockname()[1])
recv = lambda it, most=4096: lambda: len(it.recv(most))
say("no route", lambda: many.sendto(b"x", ("::ffff:192.0.2.1", 9)))
say("port 0", lambda: many.sendto(b"x", ("::ffff:10.9.1.2", 0)))
say("closed port", lambda: many.sendto(b"x", ("::ffff:10.9.1.2", 1)))
refuses = bound()
refuses.connect(("10.9.1.2", 1))
say("closed port, connected", lambda: refuses.send(b"x"))
say("refused", recv(refuses))
say("refused once", lambda: refuses.send(b"x"))
near.sendto(b"others go on", own)
say("others", recv(many))
near.sendto(b"", own)
say("empty", recv(many))
near.sendto(b"cut off", own)
near.sendto(b"whole", own)
say("short buffer", recv(many, 3))
say("the next", recv(many))
uncut = bound()
uncut.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
to = ("10.9.1.2", 9)
say("too long", lambda: uncut.sendto(bytes(1473), to))
say("fits", lambda: uncut.sendto(bytes(1472), to))
def segments(size, each):
    uncut.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, each)
    return uncut.sendto(bytes(size), to)
say("segments", lambda: segments(4000, 1000))
say("one segment", lambda: segments(1000, 2000))
try: segments(4000, 1473); failed = False
except OSError: failed = True
print(f"long segments fail: {str(failed).lower()}")
filtered = bound()
filtered.connect(near.getsockname())
many.sendto(b"from another", ("::ffff:10.9.1.1", filtered.getsockname()[1]))
near.sendto(b"from its peer", filtered.getsockname())
say("its peer alone", recv(filtered))
"#;

/// A datagram from 192.0.2.1, port 4000, to 10.0.0.1, port 7, without a checksum.
const FROM_NOWHERE: [u8; 32] = [
    0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0xae, 0xcb, 192, 0, 2, 1, 10, 0, 0, 1, //
    0x0f, 0xa0, 0, 7, 0, 12, 0, 0, b'l', b'o', b's', b't',
];

#[tokio::test]
async fn echo_server_outlives_place_without_route() {
    let world = World::new();
    let server = UdpSocket::bind(&world.server, "10.0.0.1:7").await.unwrap();
    let client = UdpSocket::bind(&world.client, "10.0.0.2:0").await.unwrap();
    client.connect("10.0.0.1:7").await.unwrap();
    world.client.inject(Bytes::from_static(&FROM_NOWHERE)).await.unwrap();
    let mut buf = [0; 16];
    let (len, nowhere) = server.recv_from(&mut buf).await.unwrap();
    assert_eq!((len, nowhere), (4, "192.0.2.1:4000".parse().unwrap()));
    let error = server.send_to(&buf[..len], nowhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{error}");
    client.send(b"here").await.unwrap();
    let (len, peer) = server.recv_from(&mut buf).await.unwrap();
    server.send_to(&buf[..len], peer).await.unwrap();
    assert_eq!(client.recv(&mut buf).await.unwrap(), 4);
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn server_does_not_fail_for_one_gone_client() {
    let world = World::new();
    let server = UdpSocket::bind(&world.server, "[::]:7").await.unwrap();
    let client = UdpSocket::bind(&world.client, "10.0.0.2:0").await.unwrap();
    // The error for the second shows that the first, too, was answered.
    let told = UdpSocket::bind(&world.server, "10.0.0.1:0").await.unwrap();
    told.connect("10.0.0.2:9").await.unwrap();
    server.send_to(b"gone", "10.0.0.2:9").await.unwrap();
    told.send(b"gone").await.unwrap();
    let error = told.recv(&mut [0; 4]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    client.send_to(b"here", "10.0.0.1:7").await.unwrap();
    assert_eq!(server.recv_from(&mut [0; 16]).await.unwrap().0, 4);
    assert!(server.take_error().unwrap().is_none());
    drop((server, client, told));
    world.assert_empty().await;
}

#[tokio::test]
async fn route_change_is_known_to_next_call() {
    let world = World::new();
    let server = UdpSocket::bind(&world.server, "10.0.0.1:7").await.unwrap();
    let network = whimbrel::Route::new("192.0.2.0".parse().unwrap(), 24);
    let route = network.via("10.0.0.2".parse().unwrap());
    for _ in 0..3 {
        assert!(server.send_to(b"x", "192.0.2.1:9").await.is_err());
        world.server.add_route(route).await.unwrap();
        server.send_to(b"x", "192.0.2.1:9").await.unwrap();
        world.server.remove_route(route).await.unwrap();
    }
    let near = "10.0.0.1";
    server.send_to(b"x", "10.0.0.9:9").await.unwrap();
    world.server.remove_address(near).await.unwrap();
    assert!(server.send_to(b"x", "10.0.0.9:9").await.is_err());
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn datagram_too_long_for_known_path_fails_at_once() {
    // A router on the way, which answers the first and drops it.
    let (builder, port) = builder().packets(1_500);
    let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
    let socket = UdpSocket::bind(&stack, "10.0.0.1:7").await.unwrap();
    socket.set_fragmenting(Fragmenting::Refused).unwrap();
    socket.send_to(&[0; 1_472], "192.0.2.9:9").await.unwrap();
    let sent = port.recv().await.unwrap();
    port.send(fragmentation_needed(&sent, 1_300)).await.unwrap();
    until("the path is known", async || socket.send_to(&[0; 1_472], "192.0.2.9:9").await.is_err())
        .await;
    let error = socket.send_to(&[0; 1_273], "192.0.2.9:9").await.unwrap_err();
    assert!(error.to_string().contains("carries 1272"), "{error}");
    socket.send_to(&[0; 1_272], "192.0.2.9:9").await.unwrap();
    socket.send_to(&[0; 1_472], "192.0.2.8:9").await.unwrap();
    stack.set_mtu(1_400).await.unwrap();
    let error = socket.send_to(&[0; 1_472], "192.0.2.8:9").await.unwrap_err();
    assert!(error.to_string().contains("carries 1372"), "{error}");
    drop(socket);
    assert_empties(&stack).await;
}

/// Returns the ICMP error of a router at 10.0.0.254 for `packet`, too large for its next link.
fn fragmentation_needed(packet: &[u8], mtu: u16) -> Bytes {
    let [mtu_high, mtu_low] = mtu.to_be_bytes();
    let mut said = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 254, 10, 0, 0, 1];
    said.extend([3, 4, 0, 0, 0, 0, mtu_high, mtu_low]);
    said.extend(&packet[..28]);
    for (start, end, at) in [(0, 20, 10), (20, 56, 22)] {
        let words =
            said[start..end].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        said[at..at + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
    said.into()
}
