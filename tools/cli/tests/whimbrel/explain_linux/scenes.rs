//! The scenes: each is a path with one cause, and what both ends do, in the words of `tests/data/talk.py`.

/// A cause on a path between two kernels.
pub(super) struct Scene {
    /// The finding that must be first; a kind of `LOSS` behind a colon.
    pub(super) label: &'static str,
    /// Congestion control of both ends.
    pub(super) control: &'static str,
    /// Keys of `whimbrel link`.
    pub(super) path: &'static str,
    /// Words of the server; `None`: no program listens.
    pub(super) server: Option<&'static str>,
    /// Words of the client.
    pub(super) client: &'static str,
    /// Signs of the cause at the ends: `client COUNTER`, `server COUNTER`, or `says TEXT`.
    pub(super) truth: &'static [&'static str],
    pub(super) spot: Spot,
    /// False if windows are not scaled.
    pub(super) scales: bool,
    /// Time after which both programs end.
    pub(super) seconds: u32,
    /// True if nstat or ss of the capture's host confirm it.
    pub(super) is_settled: bool,
    /// True if it belongs to each run.
    pub(super) is_quick: bool,
}

/// Place of the capture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Client,
    Server,
}

const PLAIN: Scene = Scene {
    label: "",
    control: "cubic",
    path: "delay=10ms",
    server: Some("-- recv=500 send=3000000 drain ss shut end"),
    client: "-- send=500 recv=3000000 end",
    truth: &[],
    spot: Spot::Server,
    scales: true,
    seconds: 20,
    is_settled: false,
    is_quick: false,
};
const LONG: Scene = Scene {
    server: Some("-- recv=500 send=8000000 drain ss shut end"),
    client: "-- send=500 recv=8000000 end",
    truth: &["server TcpRetransSegs"],
    is_settled: true,
    seconds: 30,
    ..PLAIN
};
const SHORT: Scene = Scene {
    server: Some("-- recv=500 wait=1.5 send=20000 shut end"),
    client: "-- send=500 recv=20000 end",
    ..PLAIN
};
const LISTEN_FULL: Scene = Scene {
    label: "ACCEPT_OVERFLOW",
    is_settled: true,
    server: Some("backlog=1 accept-after=3.5 conns=8 -- recv=500 send=5000 shut end"),
    client: "conns=8 gap=0.003 -- send=500 recv=5000 end",
    truth: &["server TcpExtListenOverflows"],
    ..PLAIN
};
const SMALL_WINDOW: Scene = Scene {
    label: "RWND_LIMITED",
    is_settled: true,
    path: "rate=200M delay=40ms",
    client: "rcvbuf=32768 -- send=500 recv=3000000 end",
    truth: &["says rwnd_limited"],
    ..PLAIN
};
const SMALL_BUFFER: Scene = Scene {
    label: "SENDER_LIMITED",
    is_settled: true,
    control: "bbr",
    path: "rate=200M delay=40ms",
    server: Some("sndbuf=65536 -- recv=500 send=3000000 drain ss shut end"),
    truth: &["says sndbuf_limited"],
    ..PLAIN
};
const TAIL: Scene = Scene {
    label: "TAIL_LOSS",
    is_settled: true,
    path: "rate=100M delay=60ms back.drop=10",
    server: Some("-- recv=500 send=14480 drain recv=500 send=14480 shut end"),
    client: "-- send=500 recv=14480 send=500 recv=14480 end",
    truth: &["server TcpRetransSegs"],
    ..PLAIN
};
const POLICED: Scene =
    Scene { label: "LOSS:policer", path: "rate=200M delay=20ms back.police=10M:60k", ..LONG };
const BY_CHANCE: Scene =
    Scene { label: "LOSS:by chance", path: "rate=20M delay=20ms back.loss=1%", ..LONG };
const DOWN: Scene = Scene {
    server: Some("-- recv=500 send=12000000 drain ss shut end"),
    client: "-- send=500 recv=12000000 end",
    truth: &["server TcpExtTCPTimeouts"],
    seconds: 30,
    ..PLAIN
};

/// Scenes with a cause each; `is_quick` ones are played in CI.
pub(super) const SCENES: [Scene; 30] = [
    Scene {
        label: "CLOSE_WAIT_HELD",
        server: Some("-- recv=500 send=5000 shut end"),
        client: "-- send=500 recv=5000 wait=64 ss end",
        truth: &["says CLOSE-WAIT"],
        seconds: 80,
        ..PLAIN
    },
    Scene {
        label: "IDLE_FORGOTTEN",
        path: "delay=10ms forget=10s",
        server: Some("-- recv=500 send=1000 recv=500 send=1000 end"),
        client: "-- send=500 recv=1000 wait=12 send=500 recv=1000 end",
        truth: &["client TcpExtTCPTimeouts"],
        spot: Spot::Client,
        ..PLAIN
    },
    Scene {
        label: "SYN_UNANSWERED",
        path: "delay=10ms loss=100%",
        server: None,
        client: "patience=6 -- end",
        truth: &["client TcpExtTCPTimeouts"],
        spot: Spot::Client,
        ..PLAIN
    },
    Scene {
        label: "SYN_REFUSED",
        server: None,
        client: "-- end",
        truth: &["client TcpAttemptFails", "server TcpOutRsts"],
        spot: Spot::Client,
        is_quick: true,
        ..PLAIN
    },
    Scene { is_quick: true, ..LISTEN_FULL },
    // One after another: the full queue drops SYNs, and answers none.
    Scene {
        control: "bbr",
        path: "delay=25ms",
        server: Some("backlog=1 accept-after=5.5 conns=8 -- recv=500 send=5000 shut end"),
        client: "conns=8 gap=0.3 -- send=500 recv=5000 end",
        ..LISTEN_FULL
    },
    Scene { label: "OPTIONS_MISSING", path: "rate=200M delay=40ms", scales: false, ..PLAIN },
    Scene {
        label: "OPTIONS_MISSING",
        control: "bbr",
        path: "rate=200M delay=60ms",
        scales: false,
        ..PLAIN
    },
    Scene { label: "APP_SLOW", is_quick: true, ..SHORT },
    Scene {
        label: "APP_SLOW",
        control: "bbr",
        server: Some("-- recv=500 send=15000 wait=1 send=15000 shut end"),
        client: "-- send=500 recv=30000 end",
        ..SHORT
    },
    Scene { is_quick: true, ..SMALL_WINDOW },
    Scene {
        control: "bbr",
        path: "rate=100M delay=60ms",
        client: "rcvbuf=100000 -- send=500 recv=3000000 end",
        ..SMALL_WINDOW
    },
    Scene {
        label: "ZERO_WINDOW",
        path: "rate=100M delay=10ms",
        client: "rcvbuf=65536 -- send=500 wait=2.5 recv=3000000 end",
        truth: &["client TcpExtTCPToZeroWindowAdv"],
        is_quick: true,
        ..PLAIN
    },
    Scene {
        label: "ZERO_WINDOW",
        control: "bbr",
        path: "rate=50M delay=5ms",
        client: "-- send=500 wait=3 recv=20000000 end",
        server: Some("-- recv=500 send=20000000 drain shut end"),
        truth: &["client TcpExtTCPToZeroWindowAdv"],
        ..PLAIN
    },
    Scene { is_quick: true, ..SMALL_BUFFER },
    Scene {
        path: "rate=100M delay=30ms",
        server: Some("sndbuf=32768 -- recv=500 send=2000000 drain ss shut end"),
        client: "-- send=500 recv=2000000 end",
        ..SMALL_BUFFER
    },
    Scene {
        label: "CWND_LIMITED",
        path: "rate=200M delay=80ms",
        server: Some("-- recv=500 send=1000000 drain ss shut end"),
        client: "-- send=500 recv=1000000 end",
        truth: &["says cwnd:"],
        ..PLAIN
    },
    Scene {
        label: "NAGLE_DELACK",
        path: "rate=100M delay=5ms",
        server: Some("-- rounds=10:300:300 shut end"),
        client: "-- talks=10:2*150:300 end",
        truth: &["server TcpExtDelayedACKs"],
        spot: Spot::Client,
        is_quick: true,
        ..PLAIN
    },
    Scene {
        label: "BUFFERBLOAT",
        path: "rate=5M delay=5ms queue=1000p",
        truth: &["says minrtt"],
        ..PLAIN
    },
    Scene { label: "LOSS:congestion", path: "rate=20M delay=20ms queue=40p", ..LONG },
    Scene { is_quick: true, ..POLICED },
    Scene { control: "bbr", path: "rate=300M delay=35ms back.police=15M:50k", ..POLICED },
    Scene { control: "bbr", ..BY_CHANCE },
    Scene { is_quick: true, ..TAIL },
    Scene { control: "bbr", path: "rate=100M delay=90ms back.drop=10", ..TAIL },
    Scene {
        label: "REORDERING",
        path: "rate=50M delay=20ms back.reorder=3%:8ms",
        truth: &["client TcpExtTCPOFOQueue"],
        spot: Spot::Client,
        ..PLAIN
    },
    Scene {
        label: "PMTU_BLACKHOLE",
        path: "rate=100M delay=10ms at=0s:mtu=1000",
        server: Some("-- recv=500 send=100000 drain shut end"),
        client: "-- send=500 recv=100000 end",
        truth: &["server TcpExtTCPTimeouts"],
        seconds: 12,
        ..PLAIN
    },
    Scene { label: "OUTAGE", path: "rate=50M delay=10ms at=1500ms:down at=4500ms:up", ..DOWN },
    Scene { label: "PEER_SILENT", path: "rate=50M delay=10ms at=1500ms:down", seconds: 12, ..DOWN },
    Scene {
        label: "RST_WITH_DATA",
        server: Some("-- recv=500 wait=0.3"),
        client: "-- send=5000 recv=500",
        truth: &["server TcpExtTCPAbortOnClose"],
        is_settled: true,
        is_quick: true,
        ..PLAIN
    },
];
