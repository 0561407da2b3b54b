//! gRPC: tonic serves and connects over a stack, by the features `tonic` and `hyper-util` of `whimbrel`.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::Service;
use whimbrel::{Connector, Stack, TcpListener};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let echoed = echo(vec![7; 1_000_000].into()).await?;
    println!("{} bytes came back", echoed.len());
    Ok(())
}

/// Calls a service that returns its request.
pub(crate) async fn echo(message: Bytes) -> Outcome<Bytes> {
    let (near, far) = Stack::pair()?;
    let listener = TcpListener::bind(&near, "10.0.0.1:80").await?;
    let serving = tokio::spawn(async move {
        Server::builder().add_service(Echo).serve_with_incoming(listener.incoming()).await
    });
    let endpoint = Endpoint::from_static("http://10.0.0.1/");
    let channel = endpoint.connect_with_connector(Connector::new(far)).await?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let path = http::uri::PathAndQuery::from_static("/test.Echo/Echo");
    let echoed = client.unary(Request::new(message), path, Plain).await?;
    serving.abort();
    Ok(echoed.into_inner())
}

/// A service as tonic's generator would write it, of one method.
#[derive(Clone, Copy)]
pub(crate) struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = *self;
        Box::pin(async move { Ok(tonic::server::Grpc::new(Plain).unary(service, request).await) })
    }
}

/// Messages as they are, in place of Protocol Buffers.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, dst: &mut EncodeBuf<'_>) -> Result<(), Status> {
        dst.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(src.copy_to_bytes(src.remaining())))
    }
}
