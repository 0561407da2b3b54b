//! HTTP through WireGuard, in one process and without any privilege: a stack at each end of the tunnel,
//! hyper on both, and between them `boringtun`'s library and two of the kernel's UDP sockets.
//!
//! ```sh
//! cargo run -p whimbrel --example wireguard
//! ```
//!
//! Nothing of this machine's network is changed, and nothing outside the process sees the addresses that
//! are spoken to: 10.7.0.1 and 10.7.0.2. With the other end on another machine, whose kernel may be what speaks
//! WireGuard there, it is a client that needs no interface.

use std::convert::Infallible;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Duration;

use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};
use whimbrel::{Connector, PacketPort, Stack, TcpListener};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    match through_a_tunnel().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wireguard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns once the client has what it asked for.
pub(crate) async fn through_a_tunnel() -> Outcome<()> {
    let (client, near) = Stack::builder().packets(MTU);
    let client = client.address("10.7.0.1", 24)?.build()?;
    let (server, far) = Stack::builder().packets(MTU);
    let server = server.address("10.7.0.2", 24)?.build()?;
    let (one, other) = tunnels().await?;
    let carrying = [tokio::spawn(carry(one, near)), tokio::spawn(carry(other, far))];

    let listener = TcpListener::bind(&server, "10.7.0.2:80").await?;
    let serving = tokio::spawn(serve(listener));
    let client =
        Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(Connector::new(client));
    for bird in ["whimbrel", "curlew", "godwit"] {
        let response = client.get(format!("http://10.7.0.2/{bird}").parse()?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        println!("{status}: {} bytes about the {bird}", body.len());
        assert_eq!(body, page(&format!("/{bird}")));
    }
    serving.abort();
    for task in carrying {
        task.abort();
    }
    Ok(())
}

/// An end of the tunnel: what encrypts, and the socket that is connected to the other end.
struct Tunnel {
    peer: Tunn,
    socket: UdpSocket,
}

/// Both ends, each of which knows the other's public key and address.
async fn tunnels() -> Outcome<(Tunnel, Tunnel)> {
    let (one, other) = (secret()?, secret()?);
    let (ones, others) = (PublicKey::from(&one), PublicKey::from(&other));
    let (first, second) =
        (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
    first.connect(second.local_addr()?).await?;
    second.connect(first.local_addr()?).await?;
    let first = Tunnel { peer: Tunn::new(one, others, None, None, 1, None), socket: first };
    let second = Tunnel { peer: Tunn::new(other, ones, None, None, 2, None), socket: second };
    Ok((first, second))
}

fn secret() -> io::Result<StaticSecret> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.into())
}

/// Carries packets between a stack and the other end of the tunnel, until the stack ends.
async fn carry(mut tunnel: Tunnel, port: PacketPort) -> io::Result<()> {
    let Tunnel { peer, socket } = &mut tunnel;
    let (mut datagram, mut place) = ([0; 2_048], [0; 2_048]);
    let mut ticks = interval(Duration::from_millis(250));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            packet = port.recv() => {
                if let TunnResult::WriteToNetwork(sealed) = peer.encapsulate(&packet?, &mut place) {
                    socket.send(sealed).await?;
                }
            }
            received = socket.recv(&mut datagram) => {
                let mut sealed = &datagram[..received?];
                loop {
                    match peer.decapsulate(None, sealed, &mut place) {
                        TunnResult::WriteToTunnelV4(packet, _)
                        | TunnResult::WriteToTunnelV6(packet, _) => {
                            port.send(Bytes::copy_from_slice(packet)).await?;
                            break;
                        }
                        // Of the handshake, or what waited for it: until nothing is left.
                        TunnResult::WriteToNetwork(answer) => {
                            socket.send(answer).await?;
                            sealed = &[];
                        }
                        TunnResult::Done | TunnResult::Err(_) => break,
                    }
                }
            }
            _ = ticks.tick() => {
                if let TunnResult::WriteToNetwork(due) = peer.update_timers(&mut place) {
                    socket.send(due).await?;
                }
            }
        }
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _peer) = listener.accept().await?;
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| async move {
                let page = page(request.uri().path());
                Ok::<_, Infallible>(Response::new(Full::new(page)))
            });
            let serving = hyper::server::conn::http1::Builder::new();
            // A client that goes is no fault of the server's.
            let _ = serving.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// Some hundred kilobytes.
fn page(path: &str) -> Bytes {
    Bytes::from(path.repeat(20_000))
}

/// MTU inside of IPv6, UDP and WireGuard on a link with 1,500 bytes.
const MTU: u16 = 1_420;
