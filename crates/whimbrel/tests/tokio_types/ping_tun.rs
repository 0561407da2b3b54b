//! Echoes of 8,000 bytes over TUN, the kernel's `ping` to the stack and the stack's to the kernel; and the kernel
//! speaks to addresses that come and go.
//!
//! Needs root. Without it the test says so and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use whimbrel::{Ping, TcpListener};

use crate::namespace::in_a_namespace;
use crate::needs::{self, IPV6, TUN};
use crate::world::builder;

#[test]
fn eight_thousand_bytes_echo_both_ways_in_both_families() {
    let name = "ping_tun::eight_thousand_bytes_echo_both_ways_in_both_families";
    in_a_namespace(name, &[TUN, IPV6, "ping"], inside);
}

/// On the threads of a stack of its own: the commands that are awaited here block this one.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn inside() {
    let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,addr=fd09::2/64,host=fd09::1";
    let stack = builder().wire(wire.parse().unwrap()).build().unwrap();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    for (ours, kernels) in [("10.9.0.2", "10.9.0.1"), ("fd09::2", "fd09::1")] {
        let said = run(&format!("ping -n -c 2 -W 5 -s 8000 {ours}")).await;
        assert!(said.contains(" 0% packet loss") && said.contains("8008 bytes"), "{said}");
        let mut ping = Ping::new(ip(kernels));
        (ping.size, ping.timeout) = (8_000, Duration::from_secs(5));
        let pong = stack.ping_with(ping).await.unwrap();
        assert_eq!((pong.size, pong.hop_limit), (8_000, 64));
    }
    // No host has it, and the kernel's answer to a port is no answer to an echo: silence.
    let silent = stack.ping(ip("10.9.0.77")).await.unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::TimedOut | ErrorKind::HostUnreachable), "{silent}");
    // An address that is added is heard by the kernel, and one that is removed is not.
    let listener = TcpListener::bind(&stack, "0.0.0.0:80").await.unwrap();
    stack.add_address(ip("10.9.0.7"), 24).await.unwrap();
    let connect = || tokio::net::TcpStream::connect("10.9.0.7:80");
    let (there, here) = tokio::join!(connect(), listener.accept());
    assert_eq!(here.unwrap().0.local_addr().unwrap(), there.unwrap().peer_addr().unwrap());
    stack.remove_address(ip("10.9.0.7")).await.unwrap();
    let gone = tokio::time::timeout(Duration::from_secs(1), connect()).await;
    assert!(gone.is_err(), "no host answers: {gone:?}");
}

async fn run(line: &str) -> String {
    let mut command = needs::command(line);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    String::from_utf8_lossy(&output.await.unwrap().stdout).into_owned()
}
