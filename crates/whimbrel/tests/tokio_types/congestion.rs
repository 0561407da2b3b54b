//! Which congestion control a connection has, and one of the user's.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::cc::{Ack, AddError, CongestionControl, Loss, Timeout, Window};
use whimbrel::{
    BuildError, LinkConfig, Route, RouteMetrics, Stack, StackBuilder, TcpListener, TcpSocket,
    TcpStream, mem_wire,
};

use crate::world::{SERVER, World, builder, text, until};

/// A window of four segments, whatever happens.
#[derive(Debug)]
struct FourSegments {
    acknowledged: Arc<AtomicU64>,
}

impl CongestionControl for FourSegments {
    fn begin(&mut self, window: &mut Window, mss: u32) {
        window.cwnd = 4 * mss;
    }

    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        self.acknowledged.fetch_add(ack.delivered.into(), Ordering::Relaxed);
    }

    fn on_loss_event(&mut self, _: &mut Window, _: &Loss) {}

    fn on_rto(&mut self, _: &mut Window, _: &Timeout) {}
}

/// A world whose client is made like this.
fn world(client: impl FnOnce(StackBuilder) -> StackBuilder) -> World {
    let link: LinkConfig = "delay=1ms".parse().unwrap();
    let (theirs, ours) = mem_wire(link.clone(), link, 7).unwrap();
    let server = builder().mem(theirs).address("10.0.0.1", 24).unwrap();
    let ours = builder().mem(ours).address("10.0.0.2", 24).unwrap();
    World { server: server.build().unwrap(), client: client(ours).build().unwrap() }
}

/// Returns the congestion control of a connection whose socket `socket` configures.
async fn connected(world: &World, socket: impl FnOnce(&TcpSocket)) -> (String, TcpStream) {
    let listener = world.listener().await;
    let ours = TcpSocket::new_v4(&world.client).unwrap();
    socket(&ours);
    let stream = ours.connect(SERVER.parse().unwrap()).await.unwrap();
    drop(listener);
    (stream.tcp_congestion().unwrap(), stream)
}

fn route(builder: &StackBuilder, name: &str) -> Route {
    let metrics = RouteMetrics::new().with_congestion(builder.congestion_control(name).unwrap());
    Route::new("10.0.0.0".parse().unwrap(), 24).with_metrics(metrics)
}

#[tokio::test]
async fn a_socket_and_a_stream_are_asked_and_told_by_name() {
    let world = World::new();
    let (usual, stream) = connected(&world, |socket| {
        assert_eq!(socket.tcp_congestion().unwrap(), "cubic");
    })
    .await;
    assert_eq!(usual, "cubic");
    stream.set_tcp_congestion("reno").unwrap();
    assert_eq!(stream.tcp_congestion().unwrap(), "reno");
    let number = Stack::builder().congestion_control("reno").unwrap();
    until("the shard was told", async || {
        stream.tcp_info().await.unwrap().congestion_control == number
    })
    .await;
    // Other options change nothing.
    stream.set_nodelay(true).unwrap();
    let (asked, reno) = connected(&world, |socket| {
        socket.set_tcp_congestion("reno").unwrap();
        assert_eq!(socket.tcp_congestion().unwrap(), "reno");
    })
    .await;
    assert_eq!((asked.as_str(), stream.tcp_congestion().unwrap().as_str()), ("reno", "reno"));
    assert_eq!(reno.tcp_info().await.unwrap().congestion_control, number);
    for error in [stream.set_tcp_congestion("vegas"), reno.set_tcp_congestion("")] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().ends_with("give one of reno, cubic, bbr"), "{error}");
    }
    assert_eq!(stream.tcp_congestion().unwrap(), "reno", "it stays");
    drop((stream, reno));
    world.assert_empty().await;
}

#[tokio::test]
async fn streams_have_what_their_listener_was_told_by_then() {
    let world = World::new();
    let listener = world.listener().await;
    let accept = async || {
        let ours = TcpStream::connect(&world.client, SERVER).await.unwrap();
        (listener.accept().await.unwrap().0, ours)
    };
    let usual = accept().await;
    assert_eq!(listener.tcp_congestion().unwrap(), "cubic");
    listener.set_tcp_congestion("reno").unwrap();
    assert_eq!(listener.tcp_congestion().unwrap(), "reno");
    assert_eq!(listener.set_tcp_congestion("Reno").unwrap_err().kind(), ErrorKind::NotFound);
    let told = accept().await;
    let names = [&usual.0, &told.0, &told.1].map(|stream| stream.tcp_congestion().unwrap());
    assert_eq!(names, ["cubic", "reno", "cubic"]);
    let number = Stack::builder().congestion_control("reno").unwrap();
    assert_eq!(told.0.tcp_info().await.unwrap().congestion_control, number);
    drop((usual, told, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn a_socket_prevails_over_its_route_and_that_over_the_stack() {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let own = |builder: StackBuilder| {
        let acknowledged = Arc::clone(&acknowledged);
        let make = move || FourSegments { acknowledged: Arc::clone(&acknowledged) };
        builder.add_congestion_control("four", make).unwrap()
    };
    let plain = world(|builder| builder.tcp_congestion("reno").unwrap());
    assert_eq!(connected(&plain, |_| {}).await.0, "reno");
    plain.client.set_tunable("net.ipv4.tcp_congestion_control", "cubic").await.unwrap();
    assert_eq!(connected(&plain, |_| {}).await.0, "cubic", "the rule is the stack's");

    let usual = world(|builder| own(builder).tcp_congestion("four").unwrap());
    let reno = |socket: &TcpSocket| socket.set_tcp_congestion("reno").unwrap();
    assert_eq!(connected(&usual, |_| {}).await.0, "four");
    assert_eq!(connected(&usual, reno).await.0, "reno");

    let routed = world(|builder| {
        let builder = own(builder).tcp_congestion("reno").unwrap();
        let route = route(&builder, "four");
        builder.route(route)
    });
    assert_eq!(connected(&routed, |_| {}).await.0, "four");
    assert_eq!(connected(&routed, reno).await.0, "reno");
    for world in [plain, usual, routed] {
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn a_transfer_goes_by_the_users_own() {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let heard = Arc::clone(&acknowledged);
    let world = world(|builder| {
        let make = move || FourSegments { acknowledged: Arc::clone(&heard) };
        builder.add_congestion_control("four", make).unwrap()
    });
    let listener = TcpListener::bind(&world.server, SERVER).await.unwrap();
    let (_, mut ours) = {
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        socket.set_tcp_congestion("four").unwrap();
        let ours = socket.connect(SERVER.parse().unwrap()).await.unwrap();
        ((), ours)
    };
    let mut theirs = listener.accept().await.unwrap().0;
    let sent = text(300_000);
    let write = async {
        ours.write_all(&sent).await.unwrap();
        ours.shutdown().await.unwrap();
        ours
    };
    let mut came = Vec::new();
    let (ours, read) = tokio::join!(write, theirs.read_to_end(&mut came));
    read.unwrap();
    assert!(came == sent);
    let info = ours.tcp_info().await.unwrap();
    assert_eq!(info.cwnd, 4 * u32::from(info.mss));
    assert!(acknowledged.load(Ordering::Relaxed) >= 290_000);
    drop((ours, theirs, listener));
    world.assert_empty().await;
}

#[test]
fn names_that_cannot_be_are_refused_with_a_reason() {
    let make = || FourSegments { acknowledged: Arc::default() };
    let add = |name: &str| Stack::builder().add_congestion_control(name, make).unwrap_err();
    let refused = add("cubic");
    assert!(
        matches!(&refused, BuildError::AddAlgorithm(AddError::Ours(name)) if &**name == "cubic")
    );
    assert!(refused.to_string().contains("another"), "{refused}");
    for name in ["", "sixteen-letters-", "two words", "a\nb"] {
        let refused = add(name);
        assert!(matches!(refused, BuildError::AddAlgorithm(AddError::Name(_))), "{refused}");
        assert!(refused.to_string().contains("1 to 15"), "{refused}");
    }
    for unknown in
        [Stack::builder().tcp_congestion("vegas"), Stack::builder().tcp_congestion("Cubic")]
    {
        let refused = unknown.unwrap_err();
        assert!(refused.to_string().ends_with("give one of reno, cubic, bbr"), "{refused}");
    }
    let mut builder = Stack::builder();
    for number in 0..12 {
        builder = builder.add_congestion_control(&format!("own-{number}"), make).unwrap();
    }
    builder = builder.add_congestion_control("own-3", make).unwrap();
    builder = builder.tcp_congestion("own-11").unwrap();
    let refused = builder.add_congestion_control("own-12", make).unwrap_err();
    assert!(refused.to_string().contains("12"), "{refused}");
}
