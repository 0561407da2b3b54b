//! Connections begin with the metrics of their route, from either side.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{BufferSize, Snapshot, SocketOptions};
use whimbrel_tcp::tunables::{BufferPolicy, SynCookies};

use super::hosts::{
    BOTH, DELAY, Hosts, Over, client_addr, config, host, send, server_addr, server_at,
};
use crate::{Handle, Route, RouteMetrics, Shard};

/// Which of the hosts knows something of its routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Knows {
    Client,
    Server,
}

/// A connection, of which one side knows `metrics` of the way to the other.
struct Connected {
    hosts: Hosts,
    handles: [Handle; 2],
    knows: Knows,
}

impl Connected {
    fn new(knows: Knows, metrics: RouteMetrics) -> Self {
        Self::with(knows, metrics, &Tunables::default(), &SocketOptions::default())
    }

    /// With these rules and options at the side that knows something.
    fn with(
        knows: Knows,
        metrics: RouteMetrics,
        tunables: &Tunables,
        options: &SocketOptions,
    ) -> Self {
        let usual = Tunables::default();
        let (client, server) = match knows {
            Knows::Client => {
                (informed(client_addr, metrics, tunables), host(server_addr, 2, &usual))
            }
            Knows::Server => {
                (host(client_addr, 1, &usual), informed(server_addr, metrics, tunables))
            }
        };
        let mut hosts = Hosts::of(client, server);
        let listener = hosts.listen(Over::V4, 8);
        let [ours, theirs] = match knows {
            Knows::Client => [*options, SocketOptions::default()],
            Knows::Server => [SocketOptions::default(), *options],
        };
        if theirs != SocketOptions::default() {
            assert!(hosts.server.set_listener_options(listener, &theirs));
        }
        let client = hosts.client.connect_with(server_at(Over::V4), None, &ours);
        let client = client.expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("a complete connection");
        Self { hosts, handles: [client, server], knows }
    }

    /// The side that knows something, and the other.
    fn shards(&mut self) -> [(&mut Shard, Handle); 2] {
        let [client, server] = self.handles;
        let Hosts { client: near, server: far, .. } = &mut self.hosts;
        match self.knows {
            Knows::Client => [(near, client), (far, server)],
            Knows::Server => [(far, server), (near, client)],
        }
    }

    fn snapshots(&mut self) -> [Snapshot; 2] {
        self.shards().map(|(shard, handle)| shard.snapshot(handle).expect("open"))
    }

    fn own(&mut self) -> Snapshot {
        let [own, _] = self.snapshots();
        own
    }

    /// The side that knows something writes as much as it may. Returns how much that was.
    fn write(&mut self) -> usize {
        let now = self.hosts.now;
        let [(shard, handle), _] = self.shards();
        shard.set_now(now);
        send(shard, handle, &std::vec![7; 4 << 20])
    }
}

/// A host that knows this of the ways to all hosts of its networks.
fn informed(
    addr: fn(Over) -> whimbrel_wire::Address,
    metrics: RouteMetrics,
    tunables: &Tunables,
) -> Shard {
    let mut config = config(addr, 3, tunables);
    let route = |over, prefix_len| Route {
        network: addr(over),
        prefix_len,
        gateway: None,
        metric: 0,
        metrics,
    };
    config.routes = std::vec![route(Over::V4, 24), route(Over::V6, 64)];
    Shard::new(config).expect("a valid configuration")
}

const SIDES: [Knows; 2] = [Knows::Client, Knows::Server];
const NOTHING: RouteMetrics = RouteMetrics::new();
/// Of a full segment on the link, with timestamps.
const MSS: u32 = 1_448;
const KIB: u32 = 1 << 10;
const MS: Duration = Duration::from_millis(1);

#[test]
fn route_mtu_bounds_segments_both_ways_up_to_link_mtu() {
    for knows in SIDES {
        let mut narrow = Connected::new(knows, RouteMetrics::new().with_mtu(600));
        let [own, other] = narrow.snapshots();
        assert_eq!((own.advertised_mss, own.mss, other.mss), (560, 548, 548), "{knows:?}");
        let mut wide = Connected::new(knows, RouteMetrics::new().with_mtu(9_000));
        let [own, other] = wide.snapshots();
        assert_eq!((own.advertised_mss, own.mss, other.mss), (1_460, 1_448, 1_448), "{knows:?}");
    }
}

#[test]
fn the_mtu_of_a_route_counts_for_both_families() {
    for (over, mss) in BOTH.into_iter().zip([1_260, 1_240]) {
        let metrics = RouteMetrics::new().with_mtu(1_300);
        let mut hosts = Hosts::new();
        hosts.client = informed(client_addr, metrics, &Tunables::default());
        let listener = hosts.listen(over, 8);
        let (client, _) = hosts.connected(over, listener);
        assert_eq!(hosts.client.snapshot(client).expect("open").advertised_mss, mss);
    }
}

#[test]
fn advmss_bounds_advertised_mss_and_not_what_leaves() {
    for knows in SIDES {
        let announced = |most| {
            let metrics = RouteMetrics::new().with_advmss(most);
            let [own, other] = Connected::new(knows, metrics).snapshots();
            (own.advertised_mss, other.mss, own.mss)
        };
        assert_eq!(announced(1_000), (1_000, 988, 1_448), "{knows:?}");
        assert_eq!(announced(9_000), (1_460, 1_448, 1_448), "{knows:?}: not beyond the link");
        let least = Tunables::default().least_mss;
        assert_eq!(announced(1).0, least, "{knows:?}");
    }
}

#[test]
fn initcwnd_raises_first_flight() {
    for knows in SIDES {
        for (initcwnd, segments) in [(40, 40), (2, 10)] {
            let metrics = RouteMetrics::new().with_initcwnd(initcwnd);
            let mut it = Connected::new(knows, metrics);
            assert_eq!(it.own().cwnd, segments * MSS, "{knows:?}");
            it.write();
            it.hosts.run(Duration::ZERO);
            assert_eq!(it.own().pipe, segments * MSS, "{knows:?}");
        }
    }
}

#[test]
fn initrwnd_raises_the_receive_buffer_and_what_is_announced() {
    for knows in SIDES {
        let unscaled =
            |it: &mut Connected| it.snapshots().map(|it| (it.recv_size, it.snd.wnd.get()));
        let mut told = Connected::new(knows, RouteMetrics::new().with_initrwnd(300));
        let [(own, _), _] = unscaled(&mut told);
        assert_eq!(own, 300 * 1_460, "{knows:?}");
        // The window of a SYN has no scale: the next segment tells of all of it.
        let [_, (other, handle)] = told.shards();
        send(other, handle, b"x");
        told.hosts.run(Duration::from_millis(100));
        let [_, (_, window)] = unscaled(&mut told);
        assert!((430_000..=438_000).contains(&window), "{knows:?}: {window}");
        let few = Connected::new(knows, RouteMetrics::new().with_initrwnd(3)).own();
        assert_eq!(few.recv_size, Tunables::default().recv_buffer, "{knows:?}: it only raises");
    }
}

#[test]
fn round_trip_estimate_begins_with_routes() {
    let metrics = RouteMetrics::new().with_rtt(Duration::from_millis(300));
    let mut hosts = Hosts::new();
    hosts.client = informed(client_addr, metrics, &Tunables::default());
    hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    let before = hosts.client.snapshot(client).expect("opening");
    // RFC 6298 2.2 and 2.3: a deviation of half, and four times that.
    assert_eq!((before.srtt, before.rttvar), (Some(300 * MS), 150 * MS));
    assert_eq!(before.rto, 900 * MS);
    hosts.run_until_quiet();
    // The handshake's counts an eighth.
    let after = hosts.client.snapshot(client).expect("open").srtt.expect("measured");
    assert!((262 * MS..263 * MS).contains(&after), "{after:?}");
    // It told a server before its connection began.
    let mut server = Connected::new(Knows::Server, metrics);
    assert_eq!(server.own().srtt, Some(2 * DELAY));
}

#[test]
fn ssthresh_ends_slow_start_where_the_route_says() {
    for knows in SIDES {
        let cwnd = |ssthresh| {
            let mut it = Connected::new(knows, ssthresh);
            for _ in 0..6 {
                it.write();
                it.hosts.run(2 * DELAY);
            }
            it.own().cwnd
        };
        let (short, usual) = (cwnd(NOTHING.with_ssthresh(20_000)), cwnd(NOTHING));
        assert!((20_000..20_000 + 10 * MSS).contains(&short), "{knows:?}: {short}");
        assert!(usual > 100_000, "{knows:?}: {usual}");
        // RFC 5681 3.1: no threshold is less than two segments.
        let mut least = Connected::new(knows, RouteMetrics::new().with_ssthresh(1));
        assert_eq!(least.own().ssthresh, 2 * MSS, "{knows:?}");
    }
}

#[test]
fn the_pipes_of_a_route_raise_both_buffers() {
    for knows in SIDES {
        let pipes = |bytes| RouteMetrics::new().with_sendpipe(bytes).with_recvpipe(bytes);
        let mut large = Connected::new(knows, pipes(1 << 20));
        let own = large.own();
        assert_eq!((own.send_size, own.recv_size), (1 << 20, 1 << 20), "{knows:?}");
        assert_eq!(large.write(), 1 << 20, "{knows:?}");
        let (usual, own) = (Tunables::default(), Connected::new(knows, pipes(4 * KIB)).own());
        let sizes = (usual.send_buffer, usual.recv_buffer);
        assert_eq!((own.send_size, own.recv_size), sizes, "{knows:?}: they only raise");
    }
}

/// By `buffers = floor` the greater of what was asked for and what the route says is where a buffer
/// begins, by `exact` a size that was asked for stands, and by `route` the route's does.
#[test]
fn buffer_policy_decides_between_route_and_socket() {
    let usual = Tunables::default().recv_buffer;
    let cases = [
        (
            BufferPolicy::Floor,
            [(None, usual), (Some(32 * KIB), 64 * KIB), (Some(1 << 20), 1 << 20)],
        ),
        (
            BufferPolicy::Exact,
            [(None, usual), (Some(32 * KIB), 32 * KIB), (Some(1 << 20), 1 << 20)],
        ),
        (
            BufferPolicy::Route,
            [(None, 64 * KIB), (Some(32 * KIB), 64 * KIB), (Some(1 << 20), 64 * KIB)],
        ),
    ];
    for (buffers, sizes) in cases {
        for (knows, (asked, size)) in
            SIDES.into_iter().flat_map(|knows| sizes.map(|it| (knows, it)))
        {
            let tunables = Tunables { buffers, ..Tunables::default() };
            let metrics = RouteMetrics::new().with_sendpipe(64 * KIB).with_recvpipe(64 * KIB);
            let asked = asked.map_or(BufferSize::Auto, BufferSize::Asked);
            let options =
                SocketOptions { send_size: asked, recv_size: asked, ..SocketOptions::default() };
            let own = Connected::with(knows, metrics, &tunables, &options).own();
            let what = std::format!("{buffers:?} {knows:?} {asked:?}");
            assert_eq!((own.send_size, own.recv_size), (size, size), "{what}");
        }
    }
}

#[test]
fn congestion_control_of_socket_precedes_route_and_tunable() {
    let (reno, cubic) = (Some(Algorithm::RENO), Some(Algorithm::CUBIC));
    for knows in SIDES {
        for (socket, route, expected) in [
            (None, None, Algorithm::CUBIC),
            (None, reno, Algorithm::RENO),
            (cubic, reno, Algorithm::CUBIC),
            (reno, None, Algorithm::RENO),
            (reno, cubic, Algorithm::RENO),
        ] {
            let metrics = route.map_or(NOTHING, |route| NOTHING.with_congestion(route));
            let options = SocketOptions { congestion_control: socket, ..SocketOptions::default() };
            let mut it = Connected::with(knows, metrics, &Tunables::default(), &options);
            let [own, other] = it.snapshots();
            assert_eq!(own.congestion_control, expected, "{knows:?} {socket:?} {route:?}");
            assert_eq!(other.congestion_control, Algorithm::CUBIC, "it is of one side");
        }
    }
}

#[test]
fn a_connection_that_a_cookie_opened_has_what_the_route_says() {
    let metrics = RouteMetrics::new()
        .with_initcwnd(40)
        .with_recvpipe(1 << 20)
        .with_congestion(Algorithm::RENO);
    let tunables = Tunables { syn_cookies: SynCookies::Always, ..Tunables::default() };
    let mut it = Connected::with(Knows::Server, metrics, &tunables, &SocketOptions::default());
    assert_eq!(it.hosts.server.counters().cookies_sent, 1);
    let own = it.own();
    assert_eq!((own.cwnd, own.congestion_control), (40 * MSS, Algorithm::RENO));
    assert_eq!(own.recv_size, 1 << 20);
}

#[test]
fn second_metrics_of_route_override_first() {
    let mut config = config(client_addr, 1, &Tunables::default());
    let route = |metrics| Route {
        network: client_addr(Over::V4),
        prefix_len: 24,
        gateway: None,
        metric: 0,
        metrics,
    };
    config.routes = Vec::from([
        route(RouteMetrics::new().with_initcwnd(20).with_recvpipe(512 * KIB)),
        route(RouteMetrics::new().with_initcwnd(30)),
        route(NOTHING),
    ]);
    let mut hosts = Hosts::new();
    hosts.client = Shard::new(config).expect("a valid configuration");
    let listener = hosts.listen(Over::V4, 8);
    let (client, _) = hosts.connected(Over::V4, listener);
    let own = hosts.client.snapshot(client).expect("open");
    assert_eq!((own.cwnd, own.recv_size), (30 * MSS, 512 * KIB));
}
