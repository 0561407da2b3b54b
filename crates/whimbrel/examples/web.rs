//! A web server by axum on one stack, and on another hyper's client, which keeps its connections.
//!
//! ```sh
//! cargo run -p whimbrel --example web
//! sudo cargo run -p whimbrel --example web -- tun:whim0,addr=10.9.0.2/24,host=10.9.0.1
//! curl http://10.9.0.2/birds/whimbrel
//! ```
//!
//! Without a wire both stacks are in this process, which ends by itself; over one it serves until it is
//! interrupted.

use std::process::ExitCode;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use whimbrel::{Connector, Stack, TcpListener};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(wire) => over(&wire).await,
        None => in_memory().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("web: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves every host that the wire reaches.
async fn over(wire: &str) -> Outcome<()> {
    let stack = Stack::builder().wire(wire.parse()?).build()?;
    let listener = TcpListener::bind(&stack, "0.0.0.0:80").await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, routes()).await?)
}

/// Returns once the client has what it asked for.
pub(crate) async fn in_memory() -> Outcome<()> {
    let (near, far) = Stack::pair()?;
    let listener = TcpListener::bind(&near, "10.0.0.1:80").await?;
    let serving = tokio::spawn(async { axum::serve(listener, routes()).await });
    let client =
        Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(Connector::new(far.clone()));
    for bird in ["whimbrel", "curlew", "godwit"] {
        let response = client.get(format!("http://10.0.0.1/birds/{bird}").parse()?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        println!("{status}: {}", String::from_utf8_lossy(&body));
        assert_eq!(body, format!("a {bird} flew by"));
    }
    let opened = far.inspect(0, |shard| shard.counters().active_opens).await?;
    println!("three answers over {opened} connection(s)");
    serving.abort();
    Ok(())
}

fn routes() -> Router {
    let bird = |Path(bird): Path<String>| async move { format!("a {bird} flew by") };
    Router::new().route("/birds/{bird}", get(bird))
}
