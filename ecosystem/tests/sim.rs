//! tonic's deadline, in virtual time: it ends a call that a partition blocks, and the channel goes on.

use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::time::Instant;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Request};
use whimbrel::sim::{Net, Outcome, World};
use whimbrel::{Connector, TcpListener};

use grpc::{Echo, Plain};

#[allow(dead_code, reason = "its main is not called")]
#[path = "../examples/grpc.rs"]
mod grpc;

async fn serve(net: Net) -> Outcome {
    let listener = TcpListener::bind(net.stack(), "0.0.0.0:80").await?;
    Ok(Server::builder().add_service(Echo).serve_with_incoming(listener.incoming()).await?)
}

#[test]
fn deadline_ends_call_that_partition_blocks() {
    let world = World::new(1);
    world.set_link("delay=10ms,loss=1%".parse().unwrap());
    world.host("echo", serve);
    let net = world.net("client");
    world.run(async {
        let deadline = Duration::from_secs(2);
        let endpoint = Endpoint::from_static("http://echo/").timeout(deadline);
        let connector = Connector::new(net.stack().clone());
        let channel = endpoint.connect_with_connector(connector).await.unwrap();
        let mut client = tonic::client::Grpc::new(channel);
        let mut call = async |text: &'static str| {
            client.ready().await.unwrap();
            let path = PathAndQuery::from_static("/test.Echo/Echo");
            client.unary(Request::new(Bytes::from(text)), path, Plain).await
        };
        assert_eq!(call("before").await.unwrap().into_inner(), "before");
        world.partition("client", "echo");
        let began = Instant::now();
        let error = call("parted").await.unwrap_err();
        assert!(matches!(error.code(), Code::DeadlineExceeded | Code::Cancelled), "{error}");
        assert!(began.elapsed() >= deadline);
        world.heal("client", "echo");
        assert_eq!(call("after").await.unwrap().into_inner(), "after");
    });
}
