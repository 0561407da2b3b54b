//! The text of `ss -i` and the lines of the control socket equal the library's `TcpInfo` of the same moment.
//! Time is virtual: while a listing is taken, it stands still.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, process};

use bytes::Bytes;
use serde_json::{Value, json};
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_io::Inspect;
use whimbrel_io::control::{ControlHost, ControlInfo, ControlPlace, ControlServer};
use whimbrel_posix::{
    Domain, Fcntl, Fd, FileFlags, Incoming, MsgFlags, OptionValue, Outgoing, Protocol, Shut,
    SocketFlags, SocketOption, SocketType, Sockets, TcpInfo,
};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use crate::attach::{Attached, HostOption};
use crate::ss::field;

/// A process's sockets, into which a control socket looks.
struct Host(Mutex<Sockets>);

impl Inspect for Host {
    fn inspect(&self, call: Box<dyn FnOnce(&mut Shard) + Send>) {
        call(self.0.lock().expect("no panic").shard_mut());
    }
}

/// Two hosts 10 ms apart. The wire loses, doubles and delays some packets.
struct World {
    now: Instant,
    hosts: [Arc<Host>; 2],
    attached: [Attached; 2],
    servers: Vec<ControlServer>,
    /// Packets by arrival and number, with the host they go to.
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
    is_cut: bool,
}

impl World {
    fn new() -> Self {
        let hosts = [1, 2].map(|last| Arc::new(Host(Mutex::new(sockets(last)))));
        let served = [0, 1].map(|at| serve(at, &hosts[at]));
        let [(one, first), (two, second)] = served;
        Self {
            now: Instant::ZERO,
            hosts,
            attached: [first, second],
            servers: vec![one, two],
            wire: BTreeMap::new(),
            number: 0,
            is_cut: false,
        }
    }

    fn on<T>(&self, host: usize, call: impl FnOnce(&mut Sockets) -> T) -> T {
        call(&mut self.hosts[host].0.lock().expect("no panic"))
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// The next thing happens, if that is before `end`; otherwise it is `end`.
    fn step(&mut self, end: Instant) -> bool {
        (0..2).for_each(|host| self.carry(host));
        let deadlines = [0, 1].map(|host| self.on(host, |it| it.shard().next_deadline()));
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let next = deadlines.into_iter().flatten().chain(arrival).min();
        let next = next.filter(|next| *next <= end);
        self.now = self.now.max(next.unwrap_or(end));
        while let Some(entry) = self.wire.first_entry().filter(|it| it.key().0 <= self.now) {
            let (host, packet) = entry.remove();
            let frames = [RxFrame::new(&packet, SegMeta::SINGLE)];
            self.on(host, |it| it.shard_mut().rx(self.now, &frames));
        }
        for host in 0..2 {
            self.on(host, |it| {
                while it.shard_mut().advance(self.now, 64) {}
                it.drain_events();
            });
        }
        next.is_some()
    }

    /// Takes what a host sends.
    fn carry(&mut self, host: usize) {
        let mut batch = TxBatch::new(64);
        loop {
            let more = self.on(host, |it| it.shard_mut().tx(&mut batch));
            for packet in batch.pending() {
                self.send(host, &packet.to_vec());
            }
            batch.consume(batch.pending().len());
            if !more {
                return;
            }
        }
    }

    fn send(&mut self, from: usize, packet: &[u8]) {
        self.number += 1;
        let late = if self.number % 37 == 9 { Duration::from_millis(6) } else { Duration::ZERO };
        let arrives = self.now + Duration::from_millis(10) + late;
        if self.is_cut || self.number % 41 == 20 {
            return;
        }
        self.wire.insert((arrives, self.number), (1 - from, packet.to_vec()));
        if self.number % 31 == 7 {
            self.number += 1;
            self.wire.insert((arrives, self.number), (1 - from, packet.to_vec()));
        }
    }

    /// The only connection of a host: the control socket's record of it, and the library's.
    fn look(&mut self, host: usize, fd: Fd) -> (Value, TcpInfo) {
        let mut found = Vec::new();
        let listing = json!({ "transport": "tcp", "detail": "full" });
        let each = |socket: Value| {
            found.extend(Some(socket).filter(|it| field(it, "state") != "LISTEN"));
            Ok(())
        };
        self.attached[host].list(listing, each).expect("a listing");
        assert_eq!(found.len(), 1, "{found:?}");
        let info = self.on(host, |it| it.tcp_info(fd)).expect("a connection");
        (found.remove(0), info)
    }

    /// Compares a connection with its `TcpInfo`, and adds the names that were printed to `seen`.
    fn compare(&mut self, host: usize, fd: Fd, seen: &mut BTreeSet<&'static str>) {
        let (socket, info) = self.look(host, fd);
        let text = super::super::variables(&socket).expect("variables");
        let wanted = printed(&info);
        assert_eq!(names(&text), names_of(&wanted), "{text}\n{info:?}");
        for (part, (name, values)) in parts(&text).iter().zip(&wanted) {
            let numbers = numbers(part);
            let near = |(one, other): (&f64, &f64)| (one - other).abs() <= other.abs() * 1e-5;
            let equal = numbers.len() == values.len() && numbers.iter().zip(values).all(near);
            assert!(equal, "{name}: {part} is not {values:?}: {text}\n{info:?}");
        }
        compare_json(&socket["info"], &info);
        seen.extend(wanted.iter().map(|(name, _)| *name));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.servers.clear();
        (0..2).for_each(|at| drop(fs::remove_dir_all(folder(at))));
    }
}

/// Each field with its number, as iproute2's `tcp_stats_print` has them: names, order and units.
fn printed(it: &TcpInfo) -> Vec<(&'static str, Vec<f64>)> {
    let has = |name: &str| {
        let bit = TcpInfo::OPTIONS.iter().find(|(known, _)| *known == name).expect("an option").1;
        it.tcpi_options & u32::from(bit) != 0
    };
    let millis = |micros: u32| f64::from(micros) / 1e3;
    let rate = f64::from(it.tcpi_snd_cwnd) * f64::from(it.tcpi_snd_mss) * 8e6
        / f64::from(it.tcpi_rtt.max(1));
    let busy = it.tcpi_busy_time as f64;
    let limited = |time: u64| {
        let share = format!("{:.1}", time as f64 * 100.0 / busy);
        vec![(time / 1_000) as f64, share.parse().expect("a number")]
    };
    let wide = |value: u64| vec![value as f64];
    let one = |value: u32| vec![f64::from(value)];
    let scales = vec![f64::from(it.tcpi_snd_wscale), f64::from(it.tcpi_rcv_wscale)];
    let sent_again = [it.tcpi_retrans, it.tcpi_total_retrans].map(f64::from);
    let most = Some(it.tcpi_max_pacing_rate).filter(|most| *most != u64::MAX);
    let pacing = [Some(it.tcpi_pacing_rate), most];
    let pacing = pacing.into_iter().flatten().map(|bytes| bytes as f64 * 8.0).collect();
    let fields = [
        ("ts", has("TCPI_OPT_TIMESTAMPS"), vec![]),
        ("sack", has("TCPI_OPT_SACK"), vec![]),
        ("ecn", has("TCPI_OPT_ECN"), vec![]),
        ("fastopen", has("TCPI_OPT_SYN_DATA"), vec![]),
        ("cubic", true, vec![]),
        ("wscale", has("TCPI_OPT_WSCALE"), scales),
        ("rto", it.tcpi_rto != 0, vec![millis(it.tcpi_rto)]),
        ("backoff", it.tcpi_backoff != 0, one(it.tcpi_backoff)),
        ("rtt", it.tcpi_rtt != 0, vec![millis(it.tcpi_rtt), millis(it.tcpi_rttvar)]),
        ("ato", it.tcpi_ato != 0, vec![millis(it.tcpi_ato)]),
        ("mss", it.tcpi_snd_mss != 0, one(it.tcpi_snd_mss)),
        ("pmtu", it.tcpi_pmtu != 0, one(it.tcpi_pmtu)),
        ("rcvmss", it.tcpi_rcv_mss != 0, one(it.tcpi_rcv_mss)),
        ("advmss", it.tcpi_advmss != 0, one(it.tcpi_advmss)),
        ("cwnd", it.tcpi_snd_cwnd != 0, one(it.tcpi_snd_cwnd)),
        ("ssthresh", it.tcpi_snd_ssthresh < 0xffff, one(it.tcpi_snd_ssthresh)),
        ("bytes_sent", it.tcpi_bytes_sent != 0, wide(it.tcpi_bytes_sent)),
        ("bytes_retrans", it.tcpi_bytes_retrans != 0, wide(it.tcpi_bytes_retrans)),
        ("bytes_acked", it.tcpi_bytes_acked != 0, wide(it.tcpi_bytes_acked)),
        ("bytes_received", it.tcpi_bytes_received != 0, wide(it.tcpi_bytes_received)),
        ("segs_out", it.tcpi_segs_out != 0, one(it.tcpi_segs_out)),
        ("segs_in", it.tcpi_segs_in != 0, one(it.tcpi_segs_in)),
        ("data_segs_out", it.tcpi_data_segs_out != 0, one(it.tcpi_data_segs_out)),
        ("data_segs_in", it.tcpi_data_segs_in != 0, one(it.tcpi_data_segs_in)),
        ("send", it.tcpi_rtt != 0 && it.tcpi_snd_cwnd != 0, vec![rate]),
        ("lastsnd", it.tcpi_last_data_sent != 0, one(it.tcpi_last_data_sent)),
        ("lastrcv", it.tcpi_last_data_recv != 0, one(it.tcpi_last_data_recv)),
        ("lastack", it.tcpi_last_ack_recv != 0, one(it.tcpi_last_ack_recv)),
        ("pacing_rate", it.tcpi_pacing_rate != 0, pacing),
        ("delivered", it.tcpi_delivered != 0, one(it.tcpi_delivered)),
        ("delivered_ce", it.tcpi_delivered_ce != 0, one(it.tcpi_delivered_ce)),
        ("busy", it.tcpi_busy_time != 0, wide(it.tcpi_busy_time / 1_000)),
        ("rwnd_limited", it.tcpi_rwnd_limited != 0, limited(it.tcpi_rwnd_limited)),
        ("sndbuf_limited", it.tcpi_sndbuf_limited != 0, limited(it.tcpi_sndbuf_limited)),
        ("unacked", it.tcpi_unacked != 0, one(it.tcpi_unacked)),
        ("retrans", it.tcpi_retrans + it.tcpi_total_retrans != 0, sent_again.to_vec()),
        ("lost", it.tcpi_lost != 0, one(it.tcpi_lost)),
        ("sacked", it.tcpi_sacked != 0, one(it.tcpi_sacked)),
        ("dsack_dups", it.tcpi_dsack_dups != 0, one(it.tcpi_dsack_dups)),
        ("reord_seen", it.tcpi_reord_seen != 0, one(it.tcpi_reord_seen)),
        ("rcv_ssthresh", it.tcpi_rcv_ssthresh != 0, one(it.tcpi_rcv_ssthresh)),
        ("notsent", it.tcpi_notsent_bytes != 0, one(it.tcpi_notsent_bytes)),
        ("minrtt", !matches!(it.tcpi_min_rtt, 0 | u32::MAX), vec![millis(it.tcpi_min_rtt)]),
        ("snd_wnd", it.tcpi_snd_wnd != 0, one(it.tcpi_snd_wnd)),
    ];
    let shown = fields.into_iter().filter(|(_, is_shown, _)| *is_shown);
    shown.map(|(name, _, values)| (name, values)).collect()
}

/// Compares fields of JSON, whose sizes are bytes and times seconds; some of them are none of iproute2's.
fn compare_json(json: &Value, it: &TcpInfo) {
    let number = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name}: {json}"));
    let mss = f64::from(it.tcpi_snd_mss);
    for (name, segs) in
        [("unacked", it.tcpi_unacked), ("lost", it.tcpi_lost), ("retrans_out", it.tcpi_retrans)]
    {
        assert_eq!((number(name) / mss).ceil(), f64::from(segs), "{name}: {json}\n{it:?}");
    }
    assert_eq!((number("cwnd") / mss).floor(), f64::from(it.tcpi_snd_cwnd));
    let threshold = json["ssthresh"].as_u64().map(|bytes| bytes / u64::from(it.tcpi_snd_mss));
    assert_eq!(threshold.unwrap_or(0x7fff_ffff), u64::from(it.tcpi_snd_ssthresh));
    for (name, micros) in [
        ("rto", u64::from(it.tcpi_rto)),
        ("ato", it.tcpi_ato.into()),
        ("rttvar", it.tcpi_rttvar.into()),
        ("rtt", it.tcpi_rtt.into()),
        ("minrtt", if it.tcpi_min_rtt == u32::MAX { 0 } else { it.tcpi_min_rtt.into() }),
        ("lastsnd", u64::from(it.tcpi_last_data_sent) * 1_000),
        ("lastrcv", u64::from(it.tcpi_last_data_recv) * 1_000),
        ("lastack", u64::from(it.tcpi_last_ack_recv) * 1_000),
        ("busy", it.tcpi_busy_time),
        ("rwnd_limited", it.tcpi_rwnd_limited),
        ("sndbuf_limited", it.tcpi_sndbuf_limited),
    ] {
        let time = super::super::seconds(&json[name]).unwrap_or_default();
        assert_eq!(time.as_micros(), u128::from(micros), "{name}: {json}\n{it:?}");
    }
    let most = json["max_pacing_rate"].as_u64().unwrap_or(u64::MAX);
    assert_eq!(most, it.tcpi_max_pacing_rate, "{json}");
    let rate = json["pacing_rate"].as_u64().unwrap_or_default();
    assert_eq!(rate, it.tcpi_pacing_rate, "{json}");
    for (name, count) in [
        ("mss", u64::from(it.tcpi_snd_mss)),
        ("advmss", it.tcpi_advmss.into()),
        ("rcvmss", it.tcpi_rcv_mss.into()),
        ("pmtu", it.tcpi_pmtu.into()),
        ("sacked", it.tcpi_sacked.into()),
        ("snd_wnd", it.tcpi_snd_wnd.into()),
        ("rcv_wnd", it.tcpi_rcv_wnd.into()),
        ("rcv_ssthresh", it.tcpi_rcv_ssthresh.into()),
        ("notsent", it.tcpi_notsent_bytes.into()),
        ("backoff", it.tcpi_backoff.into()),
        ("timeouts", it.tcpi_total_rto.into()),
        ("retrans_total", it.tcpi_total_retrans.into()),
        ("delivered", it.tcpi_delivered.into()),
        ("bytes_sent", it.tcpi_bytes_sent),
        ("bytes_retrans", it.tcpi_bytes_retrans),
        ("bytes_acked", it.tcpi_bytes_acked),
        ("bytes_received", it.tcpi_bytes_received),
    ] {
        assert_eq!(json[name], count, "{name}: {json}\n{it:?}");
    }
}

/// The words of a line of `ss`; a rate has two.
fn parts(text: &str) -> Vec<String> {
    text.replace("send ", "send:")
        .replace("pacing_rate ", "pacing_rate:")
        .split(' ')
        .map(str::to_owned)
        .collect()
}

fn names(text: &str) -> Vec<String> {
    let name = |part: &String| part.split(':').next().unwrap_or_default().to_owned();
    parts(text).iter().map(name).collect()
}

fn names_of(wanted: &[(&'static str, Vec<f64>)]) -> Vec<String> {
    wanted.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The numbers of a word: one, or two of `a/b`, `a,b` and `ams(b%)`.
fn numbers(part: &str) -> Vec<f64> {
    let values = part.split_once(':').map_or("", |(_, values)| values);
    let pieces = values.split(|it: char| !it.is_ascii_digit() && it != '.');
    pieces.filter(|piece| !piece.is_empty()).map(|it| it.parse().expect("a number")).collect()
}

fn folder(at: usize) -> std::path::PathBuf {
    env::temp_dir().join(format!("whim-ss-live-{}-{at}", process::id()))
}

fn serve(at: usize, host: &Arc<Host>) -> (ControlServer, Attached) {
    fs::create_dir(folder(at)).expect("a temporary folder");
    let path = folder(at).join("control.sock");
    let place = ControlPlace::Path(path.clone());
    let shards = vec![Arc::clone(host) as Arc<dyn Inspect>];
    let server =
        ControlServer::start(&place, ControlInfo::new("test"), vec![ControlHost::new(shards)]);
    let attached = Attached::new(path.to_str(), &HostOption { host: None });
    (server.expect("served"), attached.expect("a greeting"))
}

fn sockets(last: u8) -> Sockets {
    let addr = Address::from_v4_bytes([10, 0, 0, last]);
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(last.into()),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Sockets::new(Shard::new(config).expect("a valid configuration"))
}

/// A socket that does not block.
fn stream(sockets: &mut Sockets) -> Fd {
    let made =
        sockets.socket(Domain::Inet, SocketType::Stream, SocketFlags::NONE, Protocol::Default);
    let fd = made.expect("a free descriptor");
    let flags = Fcntl::SetFl(FileFlags::O_RDWR | FileFlags::O_NONBLOCK);
    sockets.fcntl(fd, flags).expect("an open descriptor");
    fd
}

#[test]
fn fields_of_a_connection_equal_its_tcp_info() {
    let mut world = World::new();
    let mut seen = BTreeSet::new();
    let at = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80);
    let listener = world.on(1, |it| {
        let fd = stream(it);
        it.bind(fd, at).and_then(|()| it.listen(fd, 8)).expect("a free port");
        fd
    });
    let client = world.on(0, stream);
    // The first SYN is lost: the connection is looked at while it opens.
    world.is_cut = true;
    let _ = world.on(0, |it| it.connect(client, at));
    world.run(Duration::from_millis(300));
    world.compare(0, client, &mut seen);
    world.is_cut = false;
    world.run(Duration::from_secs(2));
    let accepted = world.on(1, |it| it.accept(listener, SocketFlags::NONE)).done();
    let server = accepted.expect("it does not wait").expect("a connection").fd;
    // Nothing is read for a time, so that the window closes; nothing arrives for another.
    for round in 0..400 {
        world.is_cut = (150..250).contains(&round);
        if round == 300 {
            let most = OptionValue::Int(1_000_000);
            world
                .on(0, |it| it.setsockopt(client, SocketOption::MaxPacingRate, &most))
                .expect("open");
        }
        let mut text = Outgoing::new(Bytes::from(vec![0; 20_000]));
        let _ = world.on(0, |it| it.send(client, &mut text, MsgFlags::MSG_DONTWAIT));
        if !(50..100).contains(&round) {
            let mut into = Incoming::new(1 << 20);
            let _ = world.on(1, |it| it.recv(server, &mut into, MsgFlags::MSG_DONTWAIT));
        }
        world.run(Duration::from_millis(7));
        world.compare(0, client, &mut seen);
        world.compare(1, server, &mut seen);
    }
    world.on(0, |it| it.shutdown(client, Shut::Write)).expect("connected");
    for _ in 0..40 {
        world.run(Duration::from_millis(7));
        world.compare(0, client, &mut seen);
    }
    // Every field had a value, but for those that need marks, Fast Open or a small buffer.
    let all: BTreeSet<_> = printed(&filled()).into_iter().map(|(name, _)| name).collect();
    let missed: Vec<_> = all.difference(&seen).copied().collect();
    assert_eq!(world.look(0, client).1.tcpi_max_pacing_rate, 1_000_000);
    assert_eq!(missed, ["delivered_ce", "ecn", "fastopen", "sndbuf_limited"]);
}

/// A `TcpInfo` all of whose fields are printed.
fn filled() -> TcpInfo {
    TcpInfo::by_field(|name| if name == "tcpi_options" { 255 } else { 2 })
}
