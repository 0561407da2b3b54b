//! Many streams over one connection: hyper's HTTP/2 (h2) at both ends.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use whimbrel::{Stack, TcpListener, TcpStream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_http2_streams_share_a_connection() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "[fd00::1]:80").await.unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        http.serve_connection(TokioIo::new(stream), service_fn(echo)).await
    });
    let stream = TcpStream::connect(&client, "[fd00::1]:80").await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let driving = tokio::spawn(connection);
    let mut requests = JoinSet::new();
    for number in 0..100_u8 {
        let mut sender = sender.clone();
        requests.spawn(async move {
            let body = Bytes::from(vec![number; 50_000]);
            let request = Request::post("http://whimbrel/").body(Full::new(body.clone())).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            let echo = response.into_body().collect().await.unwrap().to_bytes();
            assert!(echo == body, "another body came back");
        });
    }
    while requests.join_next().await.transpose().unwrap().is_some() {}
    drop(sender);
    driving.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
    crate::assert_empty([&server, &client]).await;
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    Ok(Response::new(Full::new(body.map(|body| body.to_bytes()).unwrap_or_default())))
}
