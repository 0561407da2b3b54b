//! The programs in `examples` do what they say.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{Stack, TcpListener, TcpStream};

#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/https.rs"]
mod https;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/proxy.rs"]
mod proxy;
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
