//! Each program moves a megabyte there and back; the resolver finds 100 names.

use std::net::IpAddr;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/dns.rs"]
mod dns;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/grpc.rs"]
mod grpc;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/quic.rs"]
mod quic;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/websocket.rs"]
mod websocket;

fn megabyte() -> Vec<u8> {
    (0..1_000_000_u32).map(|place| (place % 251) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolver_finds_a_hundred_names() {
    let found = dns::resolve(100).await.unwrap();
    let expected: Vec<_> = (0..100).map(|number| IpAddr::from([192, 0, 2, number])).collect();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_carries_a_megabyte_there_and_back() {
    assert!(grpc::echo(megabyte().into()).await.unwrap() == megabyte());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_carries_a_megabyte_there_and_back() {
    assert!(quic::echo(megabyte()).await.unwrap() == megabyte());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_carries_a_megabyte_there_and_back() {
    assert!(websocket::echo(megabyte()).await.unwrap() == megabyte());
}
