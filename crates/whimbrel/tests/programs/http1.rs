//! An axum server, and hyper's client with its pool.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service;
use whimbrel::{Connector, Stack, TcpListener};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axum_serves_and_hypers_pool_keeps_connections() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "10.0.0.1:80").await.unwrap();
    let routes = Router::new()
        .route("/hello", get(|| async { "from axum" }))
        .route("/echo", post(|body: Bytes| async { body }));
    let serving = tokio::spawn(async { axum::serve(listener, routes).await });

    let connector = Connector::new(client.clone());
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axum_knows_peers_and_answers_before_shutdown() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "10.0.0.1:80").await.unwrap();
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    let slow = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        sleep(Duration::from_millis(200)).await;
        peer.ip().to_string()
    };
    let routes = Router::new().route("/", get(slow));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async {
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, service);
        serving.with_graceful_shutdown(async { drop(stopped.await) }).await
    });

    let http = Client::builder(TokioExecutor::new())
        .build::<_, Full<Bytes>>(Connector::new(client.clone()));
    let asking = tokio::spawn(http.get(uri("/")));
    sleep(Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    let answer = asking.await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(answer, "10.0.0.2");
    serving.await.unwrap().unwrap();
    assert!(http.get(uri("/")).await.unwrap_err().is_connect());
    drop(http);
    timeout(Duration::from_secs(5), server.wait_drained()).await.unwrap().unwrap();
    crate::assert_empty([&server, &client]).await;
}

fn uri(path: &str) -> Uri {
    Uri::builder().scheme("http").authority("10.0.0.1").path_and_query(path).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_goes_where_the_uri_says_and_encrypts_nothing() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "[fd00::1]:8080").await.unwrap();
    let mut connector = Connector::new(client.clone());
    let mut ask = async |uri: &str| {
        let outcome = connector.call(uri.parse().unwrap()).await;
        outcome.map(|stream| stream.inner().peer_addr().unwrap().to_string())
    };
    assert_eq!(ask("http://[fd00::1]:8080/").await.unwrap(), "[fd00::1]:8080");
    for (uri, why) in [
        ("https://[fd00::1]:8080/", "not http; with enforce_http(false) the caller encrypts"),
        ("/path", "no scheme, give http://HOST/"),
    ] {
        let error = ask(uri).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), format!("cannot connect to {uri}: {why}"));
    }
    connector.enforce_http(false);
    let refused = connector.call("https://[fd00::1]/".parse().unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("[fd00::1]:443"), "{refused}");
    drop(listener);
}
