//! TLS by rustls at both ends, over two stacks in this process.
//!
//! ```sh
//! cargo run -p whimbrel --example https
//! ```

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use whimbrel::{Stack, TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    in_memory().await
}

/// Returns once the client has what it asked for.
pub(crate) async fn in_memory() -> Outcome<()> {
    let (acceptor, connector) = tls()?;
    let (near, far) = Stack::pair()?;
    let listener = TcpListener::bind(&near, "10.0.0.1:443").await?;
    tokio::spawn(serve(listener, acceptor));

    let stream = TcpStream::connect(&far, "10.0.0.1:443").await?;
    let stream = connector.connect(ServerName::try_from(NAME)?, stream).await?;
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/").header("host", NAME).body(Empty::<Bytes>::new())?;
    let body = client.send_request(request).await?.into_body().collect().await?.to_bytes();
    println!("{}", String::from_utf8_lossy(&body));
    assert_eq!(body, "only you can read this");
    Ok(())
}

/// A task for each connection, as long as the stack lives.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor) -> Outcome<()> {
    let routes = Router::new().route("/", get(|| async { "only you can read this" }));
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(routes.clone()));
        tokio::spawn(async move {
            let stream = TokioIo::new(acceptor.accept(stream).await?);
            let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            http.serve_connection(stream, service).await
        });
    }
}

/// A certificate made here, and a client that trusts no other.
fn tls() -> Outcome<(TlsAcceptor, TlsConnector)> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([NAME.into()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone())?;
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((Arc::new(server).into(), Arc::new(client).into()))
}

const NAME: &str = "whimbrel.example";
