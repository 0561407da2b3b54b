//! QUIC: quinn sends its datagrams over a stack, by the feature `quinn` of `whimbrel`.

use std::sync::Arc;

use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};
use rcgen::generate_simple_self_signed;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use whimbrel::compat::QuinnSocket;
use whimbrel::{Stack, UdpSocket};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let echoed = echo(vec![7; 1_000_000]).await?;
    println!("{} bytes came back", echoed.len());
    Ok(())
}

/// Sends bytes over QUIC to a server that sends them back.
pub(crate) async fn echo(sent: Vec<u8>) -> Outcome<Vec<u8>> {
    let (near, far) = Stack::pair()?;
    let certified = generate_simple_self_signed(vec!["whimbrel.test".into()])?;
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let server = endpoint(&near, "10.0.0.1:443", Some(config)).await?;
    let serving = tokio::spawn(serve(server));

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = endpoint(&far, "10.0.0.2:0", None).await?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect("10.0.0.1:443".parse()?, "whimbrel.test")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let most = sent.len();
    let sending = async {
        send.write_all(&sent).await?;
        send.finish()?;
        Outcome::Ok(())
    };
    let (outcome, received) = tokio::join!(sending, receive.read_to_end(most));
    outcome?;
    serving.abort();
    Ok(received?)
}

/// A QUIC endpoint on a stack.
async fn endpoint(stack: &Stack, at: &str, server: Option<ServerConfig>) -> Outcome<Endpoint> {
    let socket = Arc::new(QuinnSocket::new(UdpSocket::bind(stack, at).await?));
    let runtime = quinn::default_runtime().ok_or("no runtime")?;
    let config = EndpointConfig::default();
    Ok(Endpoint::new_with_abstract_socket(config, server, socket, runtime)?)
}

async fn serve(endpoint: Endpoint) -> Outcome<()> {
    let connection = endpoint.accept().await.ok_or("the endpoint was closed")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    tokio::io::copy(&mut receive, &mut send).await?;
    send.finish()?;
    connection.closed().await;
    Ok(())
}
