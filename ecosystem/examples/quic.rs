//! QUIC: quinn sends its datagrams over a stack. The glue is [`Socket`].

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ClientConfig, Endpoint, EndpointConfig, ServerConfig, UdpPoller};
use rcgen::generate_simple_self_signed;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::ReadBuf;
use whimbrel::{Stack, UdpSocket};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A UDP socket with quinn's trait.
#[derive(Debug)]
pub(crate) struct Socket(UdpSocket);

/// A task that waits for room to send.
struct Room {
    socket: Arc<Socket>,
    waiting: Mutex<Option<Waiting>>,
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room { socket: self, waiting: Mutex::new(None) })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send_to(transmit.contents, transmit.destination).map(drop)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(buf), Some(meta)) = (bufs.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        let mut buf = ReadBuf::new(buf);
        let addr = ready!(self.0.poll_recv_from(cx, &mut buf))?;
        let len = buf.filled().len();
        *meta = RecvMeta { addr, len, stride: len, ..RecvMeta::default() };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = &self.socket;
        let room = waiting.get_or_insert_with(|| {
            let socket = Arc::clone(socket);
            Box::pin(async move { socket.0.writable().await })
        });
        let result = ready!(room.as_mut().poll(cx));
        *waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("socket", &self.socket).finish_non_exhaustive()
    }
}

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
    let socket = Arc::new(Socket(UdpSocket::bind(stack, at).await?));
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
