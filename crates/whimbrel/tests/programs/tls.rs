//! rustls at both ends, with a certificate of its own.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use whimbrel::{Stack, TcpListener, TcpStream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_crosses_encrypted_and_both_sides_say_goodbye() {
    let (acceptor, connector) = configure();
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "10.0.0.1:443").await.unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let (mut read, mut write) = split(acceptor.accept(stream).await?);
        copy(&mut read, &mut write).await?;
        write.shutdown().await
    });
    let stream = TcpStream::connect(&client, "10.0.0.1:443").await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let (mut read, mut write) = split(stream);
    let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await?;
        write.shutdown().await
    });
    let mut received = Vec::new();
    // Without the peer's goodbye this would be an error: an attacker may have cut the stream.
    read.read_to_end(&mut received).await.unwrap();
    assert!(received == expected, "other bytes arrived than were sent");
    writing.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
    drop(read);
    crate::assert_empty([&server, &client]).await;
}

fn configure() -> (TlsAcceptor, TlsConnector) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([NAME.into()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}

const NAME: &str = "whimbrel.example";
