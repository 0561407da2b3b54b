//! An axum server, and hyper's client with its pool.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use whimbrel::{Stack, TcpListener, TcpStream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axum_serves_and_hypers_pool_keeps_connections() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "10.0.0.1:80").await.unwrap();
    let routes = Router::new()
        .route("/hello", get(|| async { "from axum" }))
        .route("/echo", post(|body: Bytes| async { body }));
    let serving = tokio::spawn(async { axum::serve(listener, routes).await });

    let connector = Connector { stack: client.clone() };
    let http = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
    for _ in 0..200 {
        let response = http.get(uri("/hello")).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "from axum");
    }
    let opened = client.inspect(0, |shard| shard.counters().active_opens).await.unwrap();
    // More than one, because hyper opens another while the last is on its way back to the pool.
    assert!(opened <= 10, "two hundred requests took {opened} connections");

    let mut posts = JoinSet::new();
    for number in 0..32_u8 {
        let http = http.clone();
        posts.spawn(async move {
            let body = Bytes::from(vec![number; 300_000]);
            let request = Request::builder().method(Method::POST).uri(uri("/echo"));
            let response = http.request(request.body(Full::new(body.clone())).unwrap()).await;
            let echo = response.unwrap().into_body().collect().await.unwrap().to_bytes();
            assert!(echo == body, "another body came back");
        });
    }
    while posts.join_next().await.transpose().unwrap().is_some() {}
    let missing = http.get(uri("/missing")).await.unwrap();
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);

    drop((http, missing));
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    crate::assert_empty([&server, &client]).await;
}

fn uri(path: &str) -> Uri {
    Uri::builder().scheme("http").authority("10.0.0.1").path_and_query(path).build().unwrap()
}

/// What hyper asks for connections.
#[derive(Clone)]
struct Connector {
    stack: Stack,
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Pooled>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Pooled>>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let stack = self.stack.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default().to_owned();
            let stream = TcpStream::connect(&stack, (host, uri.port_u16().unwrap_or(80))).await?;
            Ok(TokioIo::new(Pooled(stream)))
        })
    }
}

/// A stream of which hyper wants to know nothing more.
struct Pooled(TcpStream);

impl Connection for Pooled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pooled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pooled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
