//! The programs in `examples` do what they say.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{Stack, TcpListener, TcpStream};

#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/https.rs"]
mod https;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/proxy.rs"]
mod proxy;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/socks.rs"]
mod socks;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/web.rs"]
mod web;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/wireguard.rs"]
mod wireguard;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_and_https_get_their_answers() {
    web::in_memory().await.unwrap();
    https::in_memory().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wireguard_carries_http_between_two_stacks() {
    wireguard::through_a_tunnel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_joins_a_stack_and_the_kernel() {
    let behind = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = behind.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = behind.accept().await?;
        let mut request = String::new();
        stream.read_to_string(&mut request).await?;
        stream.write_all(request.to_uppercase().as_bytes()).await
    });
    let (near, far) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&near, "10.0.0.1:80").await.unwrap();
    let forwarding =
        async move { proxy::forward(listener, target).await.map_err(|it| it.to_string()) };
    let forwarding = tokio::spawn(forwarding);
    let mut stream = TcpStream::connect(&far, "10.0.0.1:80").await.unwrap();
    stream.write_all(b"tell me").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "TELL ME");
    serving.await.unwrap().unwrap();
    forwarding.abort();
}

/// The reply of the proxy at `at` to a request for `destination`, an address as RFC 1928 5 writes it.
async fn ask_socks(at: SocketAddr, destination: &[u8]) -> (tokio::net::TcpStream, u8) {
    let mut client = tokio::net::TcpStream::connect(at).await.unwrap();
    client.write_all(&[5, 1, 0]).await.unwrap();
    let mut method = [0; 2];
    client.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    client.write_all(&[&[5, 1, 0], destination].concat()).await.unwrap();
    let mut reply = [0; 10];
    client.read_exact(&mut reply).await.unwrap();
    assert_eq!((reply[0], reply[3]), (5, 1));
    (client, reply[1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_carries_a_megabyte_there_and_back_to_any_destination() {
    let (near, far) = Stack::pair().unwrap();
    let server = TcpListener::bind(&near, "10.0.0.1:7").await.unwrap();
    let echoing = tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            let (mut read, mut write) = stream.into_split();
            tokio::io::copy(&mut read, &mut write).await.unwrap();
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(socks::serve(listener, far));

    let by_name = [&[3, 8], &b"10.0.0.1"[..], &[0, 7]].concat();
    for destination in [&[1, 10, 0, 0, 1, 0, 7][..], &by_name] {
        let (mut client, code) = ask_socks(at, destination).await;
        assert_eq!(code, 0);
        let sent: Vec<u8> = (0..1_000_000_u32).map(|it| it as u8).collect();
        let (mut read, mut write) = client.split();
        let sending = async {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, count) = tokio::join!(sending, read.read_to_end(&mut received));
        assert_eq!(count.unwrap(), sent.len());
        assert!(received == sent, "other bytes came back");
    }
    // A closed port, no route, and a command that is not served.
    for (destination, expected) in [(&[1, 10, 0, 0, 1, 0, 8], 5), (&[1, 192, 0, 2, 1, 0, 8], 3)] {
        assert_eq!(ask_socks(at, destination).await.1, expected);
    }
    let mut client = tokio::net::TcpStream::connect(at).await.unwrap();
    client.write_all(&[5, 1, 2]).await.unwrap();
    let mut refusal = [0; 2];
    client.read_exact(&mut refusal).await.unwrap();
    assert_eq!(refusal, [5, 0xff]);
    serving.abort();
    echoing.abort();
}
