//! The pure crates in one WebAssembly module, which must have no import section.
//!
//! A module without imports cannot read a clock, open a file or ask for entropy, because no host
//! function exists. The linker keeps only what an export reaches, so each pure crate has one exported
//! function here that drives its widest entry point. The inputs are arguments and the result depends on
//! them: neither may be folded away.
//!
//! What this does not prove: `std`'s own clock panics on this target instead of importing one.
//! Clippy's `disallowed_methods` covers that side.

use core::time::Duration;

use bytes::Bytes;
use whimbrel_apps::Model;
use whimbrel_apps::http::{FixedBody, HttpServer, Limits};
use whimbrel_apps::load::{
    Correction, Ending, Exchange, FastOpen, Load, LoadPlan, ResponseEnd, StopCondition,
};
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, PortRange, ReservedPorts, Secrets};
use whimbrel_explain::Explainer;
use whimbrel_lab::{CASES, Selection};
use whimbrel_link::pcapng::LinkType;
use whimbrel_link::reader::Packet;
use whimbrel_link::{Link, LinkConfig};
use whimbrel_posix::{Domain, MsgFlags, Outgoing, Protocol, SocketFlags, SocketType, Sockets};
use whimbrel_recovery::cc::{Algorithm, CcState, Control, Window};
use whimbrel_recovery::flight::Flight;
use whimbrel_recovery::{Path, Recovery};
use whimbrel_script::ast::{Snippet, Statement, Term};
use whimbrel_script::call::{Call, Returned};
use whimbrel_script::host::{Network, Progress, ScriptHost};
use whimbrel_script::shard_host::ShardHost;
use whimbrel_script::shell::{self, ShellAct};
use whimbrel_script::snippet::{self, Variables};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, Profile, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::table::FlowHasher;
use whimbrel_udp::{Arrived, Bind, Local, Room, Sockets as UdpSockets};
use whimbrel_wire::{Address, Endpoint, SeqNum, TrafficClass};

/// Links `apps`, `stack` and through them all of `tcp`: a server takes a frame and answers.
#[unsafe(no_mangle)]
pub extern "C" fn probe_server(seed: u64, first: u8) -> usize {
    let Some(mut shard) = shard(seed) else { return 0 };
    if shard.listen(Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), 80), 8).is_err() {
        return 0;
    }
    let mut server = HttpServer::new(FixedBody::new(128), Limits::default());
    let now = Instant::from_nanos(seed);
    shard.rx(now, &[RxFrame::new(&[first; 64], SegMeta::SINGLE)]);
    while shard.advance(now, 64) || server.poll(&mut shard, now, 64) {}
    let mut batch = TxBatch::new(8);
    shard.tx(&mut batch);
    batch.pending().iter().map(|segment| segment.len()).sum()
}

/// Links `explain`: a packet is taken, and a report made.
#[unsafe(no_mangle)]
pub extern "C" fn probe_explain(at: u64, first: u8) -> usize {
    let bytes = [first; 64];
    let mut explainer = Explainer::new();
    for at in [at, at.wrapping_mul(2)] {
        let link_type = LinkType::Raw;
        explainer.take(&Packet { at, direction: None, link_type, wire_len: 64, bytes: &bytes });
    }
    explainer.finish().findings.len()
}

/// Links the loads of `apps`: one begins, and asks for its first connection.
#[unsafe(no_mangle)]
pub extern "C" fn probe_load(seed: u64, last: u8) -> u64 {
    let Some(mut shard) = shard(seed) else { return 0 };
    let second = Duration::from_secs(1);
    let mut load = Load::new(LoadPlan {
        target: Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), 80),
        destinations: Vec::new(),
        exchange: Exchange { request: Bytes::from_static(b"?"), answer: ResponseEnd::Bytes(1) },
        connections: 2,
        until: StopCondition::Elapsed(second),
        rate: Some(100.0),
        offset: Duration::ZERO,
        correction: Correction::On,
        local: Vec::new(),
        fast_open: FastOpen::Off,
        ending: Ending::KeepAlive,
        timeout: second,
        connect_timeout: second,
        warmup: Duration::ZERO,
        interval: second,
    });
    let now = Instant::from_nanos(seed);
    load.poll(&mut shard, now, 64);
    load.end(&mut shard, now + second);
    load.record().service.max() + load.close().in_flight
}

/// Links `posix`: a socket connects, and its first write waits.
#[unsafe(no_mangle)]
pub extern "C" fn probe_posix(seed: u64, last: u8) -> usize {
    let Some(shard) = shard(seed) else { return 0 };
    let mut sockets = Sockets::new(shard);
    let made =
        sockets.socket(Domain::Inet, SocketType::Stream, SocketFlags::NONE, Protocol::Default);
    let Ok(fd) = made else { return 0 };
    let peer = Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), 80);
    let connected = sockets.connect(fd, peer).done();
    let mut out = Outgoing::gather([&[last][..]]);
    let sent = sockets.send(fd, &mut out, MsgFlags::NONE).done();
    usize::from(connected.is_none()) + usize::from(sent.is_none()) + sockets.descriptors().count()
}

/// Links `tcp`'s hash.
#[unsafe(no_mangle)]
pub extern "C" fn probe_tcp(seed: u64, port: u16) -> bool {
    let hasher = FlowHasher::new(&Secrets::from_seed(seed).flows);
    let hash = |port| hasher.hash(&Address::from_v4_bytes([10, 0, 0, 1]), port, 80, 0);
    hash(port) == hash(80)
}

/// Links `recovery`: a flight is lost at a time-out, and the window falls.
#[unsafe(no_mangle)]
pub extern "C" fn probe_recovery(number: u8, millis: u64) -> u32 {
    let (mss, now) = (1_000, Instant::from_millis(millis));
    let mut flight = Flight::default();
    flight.transmit(0..10_000, mss, now);
    let mut window = Window::new(Algorithm::of_number(number), mss.into());
    let mut control = Control { window: &mut window, state: &mut CcState::default() };
    let path =
        Path { now, sack: true, mss: mss.into(), srtt: None, min_rtt: None, reorders: false };
    Recovery::default().on_timeout(&mut flight, &mut control, &path, 1);
    window.cwnd + flight.pipe()
}

/// Links `udp`: a datagram meets its socket, or none.
#[unsafe(no_mangle)]
pub extern "C" fn probe_udp(seed: u64, port: u16) -> usize {
    let Some(range) = PortRange::new(40_000, 50_000) else { return 0 };
    let mut sockets = UdpSockets::new(&Secrets::from_seed(seed), range, ReservedPorts::NONE);
    let Ok(socket) = sockets.bind(&Bind::new(Local::Both, 0)) else { return 0 };
    let end = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), port);
    let class = TrafficClass::default();
    let (data, hop_limit, dont_fragment) = (&[1][..], 64, true);
    let datagram = Arrived { from: end, to: end, data, class, hop_limit, dont_fragment };
    let _ = sockets.deliver(&datagram, Room::Enough);
    sockets.recv(socket).map_or(0, |received| received.data.len())
}

/// Links `base`: keys from a seed, and their hash.
#[unsafe(no_mangle)]
pub extern "C" fn probe_base(seed: u64, millis: u64) -> u64 {
    let hash = Secrets::from_seed(seed).ports.prf().hash(&millis.to_be_bytes());
    Instant::from_millis(millis).as_nanos() ^ hash
}

/// Links `wire`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_wire(left: u32, right: u32) -> u32 {
    SeqNum::new(left).later(SeqNum::new(right)).raw()
}

/// Links `link`: its parser of what is typed, its chance and its time.
#[unsafe(no_mangle)]
pub extern "C" fn probe_link(seed: u64, nanos: u64) -> u64 {
    let Ok(config) = "rate=45M,delay=35ms,jitter=1ms,loss=1%".parse::<LinkConfig>() else {
        return 0;
    };
    let mut link = Link::new(config, seed);
    link.push_frame(Instant::from_nanos(nanos), Bytes::from_static(&[0; 64]));
    link.next_arrival().map_or(0, Instant::as_nanos)
}

/// Links `sim`: a whole world, from a seed to its end.
#[unsafe(no_mangle)]
pub extern "C" fn probe_sim(seed: u64) -> u64 {
    whimbrel_sim::run_seed(seed).bytes
}

/// Links `lab`: the first row of a case is measured.
#[unsafe(no_mangle)]
pub extern "C" fn probe_lab(place: usize, goes_on: bool) -> usize {
    let Some(case) = CASES.get(place) else { return 0 };
    let Ok(setups) = whimbrel_lab::plan(case, &Selection::default()) else { return 0 };
    let Some(setup) = setups.first() else { return 0 };
    setup.measure(&|| goes_on).map_or(0, |measured| measured.figures.len())
}

/// Links `script`: shell lines are read and done, a call blocks, a packet leaves.
#[unsafe(no_mangle)]
pub extern "C" fn probe_script(millis: u64, last: u8) -> usize {
    let peer = Endpoint::new(Address::from_v4_bytes([192, 0, 2, last]), 80);
    let network = Network {
        local: Address::from_v4_bytes([192, 168, 0, 1]),
        prefix_len: 16,
        gateway: Address::from_v4_bytes([192, 168, 0, 2]),
        remote: peer.addr,
        mtu: 1500,
    };
    let Some(Ok(tunables)) = Profile::by_name("freebsd").map(Profile::tunables) else { return 0 };
    let Ok(mut host) = ShardHost::new(&network, tunables) else { return 0 };
    let Ok(acts) = shell::read("sysctl -w net.inet.tcp.sack.enable=1") else { return 0 };
    for act in acts {
        if let ShellAct::Set { name, value } = act {
            let _ = host.set(&name, &value);
        }
    }
    let made = host.call(Call::Socket {
        domain: Domain::Inet,
        kind: SocketType::Stream,
        flags: SocketFlags::NONE,
        protocol: Protocol::Default,
    });
    let Progress::Done(Returned { value: Ok(fd), .. }) = made else { return 0 };
    let blocked = host.call(Call::Connect { fd: fd as i32, to: peer });
    host.run_until(Duration::from_millis(millis));
    let Ok(info) = host.tcp_info(fd as i32) else { return 0 };
    let mut variables = Variables::default();
    let state = Statement::Set("state".into(), Term::Name("tcpi_state".into()));
    let snippet = Snippet { line: 1, statements: Ok(vec![state]) };
    let _ = snippet::evaluate(&snippet, &mut variables, &info);
    let known = usize::from(variables.value("state").is_some());
    let packets = core::iter::from_fn(|| host.poll_packet()).map(|(_, packet)| packet.len());
    packets.sum::<usize>() + known + usize::from(matches!(blocked, Progress::Blocked(_)))
}

/// A host.
fn shard(seed: u64) -> Option<Shard> {
    let addr = Address::from_v4_bytes([10, 0, 0, 1]);
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(seed),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Shard::new(config).ok()
}
