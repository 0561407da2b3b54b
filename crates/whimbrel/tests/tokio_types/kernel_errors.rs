//! Errors of streams and listeners, compared with those of the kernel's sockets, and the reasons inside.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net as kernel;
use whimbrel::{
    BindError, ConnectError, ConnectStartError, TcpListener, TcpSocket, TcpStream, UdpSocket,
};

use crate::world::{SERVER, World, until};

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The reason of a failed `connect`.
fn connect_error(error: &io::Error) -> &ConnectError {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap_or_else(|| panic!("{error:?}"))
}

/// The reason of a failed `bind`.
fn bind_error(error: &io::Error) -> &BindError {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap_or_else(|| panic!("{error:?}"))
}

/// The kernel's address of a port without a listener.
fn closed_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn refused_connect_has_number_of_kernel() {
    let world = World::new();
    let ours = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    let kernels = kernel::TcpStream::connect(closed_port()).await.unwrap_err();
    assert_eq!((ours.kind(), ours.raw_os_error()), (kernels.kind(), None));
    let ConnectError::Refused(attempt) = connect_error(&ours) else { panic!("{ours:?}") };
    assert_eq!((attempt.syns, attempt.peer), (1, Some(addr(SERVER))));
    assert_eq!(Some(connect_error(&ours).raw_os_error()), kernels.raw_os_error());
    world.assert_empty().await;
}

#[tokio::test]
async fn bind_errors_have_numbers_of_kernel() {
    let world = World::new();
    let _listener = world.listener().await;
    let ours = TcpListener::bind(&world.server, SERVER).await.unwrap_err();
    let held = kernel::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kernels = kernel::TcpListener::bind(held.local_addr().unwrap()).await.unwrap_err();
    assert_eq!(bind_error(&ours), &BindError::InUse(addr(SERVER)));
    assert_eq!(Some(bind_error(&ours).raw_os_error()), kernels.raw_os_error());

    let foreign = "192.0.2.9:7";
    let kernels = kernel::TcpListener::bind(foreign).await.unwrap_err();
    let listening = TcpListener::bind(&world.server, foreign).await.unwrap_err();
    let datagrams = UdpSocket::bind(&world.server, foreign).await.unwrap_err();
    for ours in [listening, datagrams] {
        assert_eq!(bind_error(&ours), &BindError::NotLocal(addr(foreign).ip()));
        assert_eq!(ours.kind(), kernels.kind());
        assert_eq!(Some(bind_error(&ours).raw_os_error()), kernels.raw_os_error());
    }
    let _socket = UdpSocket::bind(&world.server, SERVER).await.unwrap();
    let ours = UdpSocket::bind(&world.server, SERVER).await.unwrap_err();
    assert_eq!(bind_error(&ours), &BindError::InUse(addr(SERVER)));
}

#[tokio::test]
async fn second_connection_of_same_ports_has_number_of_kernel() {
    let world = World::new();
    let listener = world.listener().await;
    let socket = || {
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        socket.set_reuseport(true).unwrap();
        socket.bind("10.0.0.2:4000".parse().unwrap()).unwrap();
        socket
    };
    let _first = socket().connect(addr(SERVER)).await.unwrap();
    let ours = socket().connect(addr(SERVER)).await.unwrap_err();
    let in_use =
        matches!(connect_error(&ours), ConnectError::NotStarted(ConnectStartError::InUse { .. }));
    assert!(in_use, "{ours:?}");

    let server = kernel::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = server.local_addr().unwrap();
    let local = closed_port();
    let socket = || {
        let socket = kernel::TcpSocket::new_v4().unwrap();
        socket.set_reuseport(true).unwrap();
        socket.bind(local).unwrap();
        socket
    };
    let _kernels_first = socket().connect(to).await.unwrap();
    let kernels = socket().connect(to).await.unwrap_err();
    assert_eq!(Some(connect_error(&ours).raw_os_error()), kernels.raw_os_error());
    drop(listener);
}

#[tokio::test]
async fn connect_without_free_port_or_route_tells_reason() {
    let rules = [("ports.first", "50000"), ("ports.last", "50000"), ("max_connections", "2")];
    let world = World::with("delay=0ms", &rules);
    let listener = world.listener().await;
    let _held = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let error = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    let ConnectError::NotStarted(ConnectStartError::PortsExhausted { in_use, .. }) =
        connect_error(&error)
    else {
        panic!("{error:?}")
    };
    assert_eq!((*in_use, connect_error(&error).raw_os_error()), (1, 99));
    let error = TcpStream::connect(&world.client, "192.0.2.1:7").await.unwrap_err();
    assert_eq!(connect_error(&error).raw_os_error(), 101);
    drop(listener);
}

/// The kernel sends a SYN to port 0; here the mistake is named.
#[tokio::test]
async fn connect_to_port_0_is_refused_by_kernel_and_invalid_here() {
    let kernels = kernel::TcpStream::connect("127.0.0.1:0").await.unwrap_err();
    assert_eq!(kernels.kind(), ErrorKind::ConnectionRefused);
    let world = World::new();
    let ours = TcpStream::connect(&world.client, "10.0.0.1:0").await.unwrap_err();
    assert_eq!((ours.kind(), connect_error(&ours).raw_os_error()), (ErrorKind::InvalidInput, 22));
    assert!(ours.to_string().contains("a port from 1 to 65535"), "{ours}");
}

/// The kernel forgets the peer with the connection; here a log can still name it.
#[tokio::test]
async fn peer_addr_outlives_reset_unlike_kernels() {
    let world = World::new();
    let (mut server, client) = world.connection().await;
    let peer = client.local_addr().unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let error = server.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.peer_addr().unwrap(), peer);

    let listener = kernel::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = kernel::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let error = server.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
}

#[tokio::test]
async fn connection_reset_before_accept_is_accepted_as_by_kernel() {
    let world = World::new();
    let listener = world.listener().await;
    let client = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let peer = client.local_addr().unwrap();
    until("it waits", async || listener.stats().await.unwrap().waiting == 1).await;
    client.set_zero_linger().unwrap();
    drop(client);
    until("the reset has left", async || {
        world.client.census().await.unwrap().shards.connections == 0
    })
    .await;
    let (mut accepted, from) =
        tokio::time::timeout(Duration::from_secs(20), listener.accept()).await.unwrap().unwrap();
    assert_eq!(from, peer);
    let error = accepted.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let listener = kernel::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = kernel::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let peer = client.local_addr().unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let (mut accepted, from) = listener.accept().await.unwrap();
    assert_eq!(from, peer);
    let error = accepted.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn connect_dropped_after_handshake_is_accepted_and_at_its_end() {
    let world = World::new();
    let listener = world.listener().await;
    let mut connect = Box::pin(TcpStream::connect(&world.client, SERVER));
    tokio::select! {
        biased;
        _ = &mut connect => panic!("a connection without a round trip"),
        () = std::future::ready(()) => {}
    }
    until("it waits", async || listener.stats().await.unwrap().waiting == 1).await;
    drop(connect);
    let (mut accepted, _) = listener.accept().await.unwrap();
    assert_eq!(accepted.read(&mut [0; 8]).await.unwrap(), 0);

    let listener = kernel::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connect = Box::pin(kernel::TcpStream::connect(listener.local_addr().unwrap()));
    tokio::select! {
        biased;
        connected = &mut connect => drop(connected.unwrap()),
        () = std::future::ready(()) => drop(connect),
    }
    let (mut accepted, _) = listener.accept().await.unwrap();
    assert_eq!(accepted.read(&mut [0; 8]).await.unwrap(), 0);
}
