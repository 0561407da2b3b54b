//! Paths that carry less than anybody's MTU: two stacks over TUN, and the kernel as the router between them.
//!
//! Needs root. Without it the test says so and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{Fragmenting, Stack, TcpListener, TcpStream, UdpSocket};

use crate::namespace::in_a_namespace;
use crate::needs::{self, TUN};
use crate::world::{assert_empties, builder, text};

#[test]
fn links_of_any_mtu_are_crossed_behind_router() {
    let name = "narrow_tun::links_of_any_mtu_are_crossed_behind_router";
    in_a_namespace(name, &[TUN, "ip"], cross);
}

fn stack(name: &str, net: u8) -> Stack {
    let wire = format!("tun:{name},addr=10.9.{net}.2/24,host=10.9.{net}.1");
    builder().wire(wire.parse().unwrap()).build().unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn cross() {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    for (net, mtu) in (1_u8..).step_by(2).zip([68, 296, 551, 552, 576]) {
        let (near, far) =
            (stack(&format!("whim{net}"), net), stack(&format!("narrow{net}"), net + 1));
        let set = needs::command(&format!("ip link set narrow{net} mtu {mtu}")).status();
        assert!(set.unwrap().success());
        // As a browser asks and a server answers.
        let at = format!("10.9.{net}.2:80");
        let listener = TcpListener::bind(&near, &at).await.unwrap();
        let mut client = TcpStream::connect(&far, &at).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(&text(4_000)).await.unwrap();
        let mut heard = vec![0; 4_000];
        client.read_exact(&mut heard).await.unwrap();
        assert!(heard == text(4_000), "{mtu}");
        // Datagrams of either kind know of the path what segments found out.
        let sender = UdpSocket::bind(&near, &at).await.unwrap();
        let receiver = UdpSocket::bind(&far, format!("10.9.{}.2:53", net + 1)).await.unwrap();
        let to = receiver.local_addr().unwrap();
        sender.send_to(&text(4_000), to).await.unwrap();
        assert_eq!(receiver.recv(&mut heard).await.unwrap(), 4_000);
        sender.set_fragmenting(Fragmenting::Refused).unwrap();
        let error = sender.send_to(&text(4_000), to).await.unwrap_err();
        let most = format!("carries {}", mtu.max(552) - 28);
        assert!(error.to_string().contains(&most), "{error}");
        drop((client, server, listener, sender, receiver));
        assert_empties(&near).await;
        assert_empties(&far).await;
    }
}
