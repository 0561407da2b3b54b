//! The form of a listed socket.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde_json::{Map, Value, json};
use whimbrel_base::Tick;
use whimbrel_stack::Shard;
use whimbrel_stack::shard::{Listed, ListedPurpose, ListedTimer};
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{Limit, Snapshot, State, TimerPurpose};
use whimbrel_tcp::recovery::CaState;
use whimbrel_tcp::send::SendTimer;
use whimbrel_wire::Endpoint;

/// Facts about a slice's shard that the forms of its sockets need.
#[derive(Debug)]
pub(super) struct Moment {
    now: Tick,
    /// Names of the congestion controls of its connections.
    algorithms: Vec<(Algorithm, String)>,
    /// The longest delay of an acknowledgment.
    delayed_ack: Duration,
    /// The largest IP packet that the path of each listed socket is known to carry, bytes.
    path_mtus: Vec<u16>,
}

impl Moment {
    pub(super) fn of(shard: &Shard, listed: &[Listed]) -> Self {
        let mut algorithms: Vec<(Algorithm, String)> = Vec::new();
        for snapshot in listed.iter().filter_map(|listed| listed.snapshot.as_ref()) {
            let algorithm = snapshot.congestion_control;
            if algorithms.iter().all(|(known, _)| *known != algorithm) {
                let name = shard.congestion_controls().name(algorithm).to_owned();
                algorithms.push((algorithm, name));
            }
        }
        let path_mtu = |listed: &Listed| {
            let remote = listed.remote.filter(|_| listed.snapshot.is_some());
            remote.and_then(|remote| shard.path_mtu(&remote.addr)).unwrap_or_else(|| shard.mtu())
        };
        Self {
            now: shard.now().tick(),
            algorithms,
            delayed_ack: shard.tunables().delayed_ack,
            path_mtus: listed.iter().map(path_mtu).collect(),
        }
    }

    /// The path MTU of each listed socket.
    pub(super) fn path_mtus(&self) -> impl Iterator<Item = u16> {
        self.path_mtus.iter().copied()
    }

    fn name(&self, algorithm: Algorithm) -> Option<&str> {
        let known = self.algorithms.iter().find(|(known, _)| *known == algorithm);
        known.map(|(_, name)| name.as_str())
    }

    fn since(&self, tick: Tick) -> f64 {
        f64::from(self.now.millis_since(tick)) / 1e3
    }
}

/// A socket as an object; `shard` is the number of its shard.
pub(super) fn record(
    listed: &Listed,
    path_mtu: u16,
    shard: usize,
    moment: &Moment,
    cookies: &RandomState,
) -> Value {
    let transport = if listed.state.is_some() { "tcp" } else { "udp" };
    let mut object = Map::new();
    object.insert("transport".into(), transport.into());
    if let Some(state) = listed.state {
        object.insert("state".into(), state.to_string().into());
    }
    object.insert("local".into(), endpoint(&listed.local));
    object.insert("remote".into(), listed.remote.as_ref().map_or(Value::Null, endpoint));
    object.insert("recv_q".into(), listed.received.into());
    object.insert("send_q".into(), listed.queued.into());
    object.insert("shard".into(), shard.into());
    // The kind of a record changes, and its ends do not.
    let cookie = cookies.hash_one((transport, listed.local, listed.remote));
    object.insert("cookie".into(), format!("{cookie:x}").into());
    object.insert("timers".into(), listed.timers.iter().map(timer).collect());
    if let Some(snapshot) = &listed.snapshot {
        object.insert("info".into(), info(snapshot, path_mtu, moment));
    }
    object.into()
}

fn endpoint(endpoint: &Endpoint) -> Value {
    json!({ "addr": endpoint.addr.to_ip().to_string(), "port": endpoint.port })
}

fn timer(timer: &ListedTimer) -> Value {
    let name = match timer.purpose {
        ListedPurpose::SynAck => "syn-ack",
        ListedPurpose::TimeWait => "time-wait",
        ListedPurpose::Connection(purpose) => match purpose {
            TimerPurpose::DelayedAck => "delayed-ack",
            TimerPurpose::KeepAlive => "keep-alive",
            TimerPurpose::FinWait2 => "fin-wait-2",
            TimerPurpose::Sender(sender) => match sender {
                SendTimer::Retransmission => "retransmission",
                SendTimer::Persist => "persist",
                SendTimer::SynAgain => "syn-again",
                SendTimer::Reordering => "reordering",
                SendTimer::LossProbe => "loss-probe",
                SendTimer::Forget => "forget",
            },
        },
    };
    json!({ "name": name, "left": seconds(timer.left), "attempts": timer.attempts })
}

/// The variables of a connection, under the names of `ss -i` where it has one; times in seconds.
fn info(it: &Snapshot, path_mtu: u16, moment: &Moment) -> Value {
    let mut info = Map::new();
    for part in [
        negotiated(it),
        window(it, moment),
        times(it, moment),
        counts(it),
        memory(it),
        waits(it, moment),
    ] {
        super::extend(&mut info, part);
    }
    info.insert("pmtu".into(), path_mtu.into());
    info.into()
}

fn negotiated(it: &Snapshot) -> Value {
    // Before the peer answers, they are only offered.
    let agreed = it.state != State::SynSent;
    let stamped = agreed && it.timestamps;
    let scales = it.scales.filter(|_| agreed);
    // Each segment has the timestamps of RFC 7323, 10 bytes and 2 to fill up.
    let advertised = it.advertised_mss.saturating_sub(if stamped { 12 } else { 0 });
    json!({
        "ts": stamped, "sack": agreed && it.sack, "ecn": agreed && it.ecn,
        "fastopen": agreed && it.syn_data,
        "wscale": scales.map(|(peer, own)| [peer.get(), own.get()]),
        "mss": it.mss, "advmss": advertised, "rcvmss": it.tally.rcv_mss,
        "no_delay": it.no_delay, "keep_alive": it.keep_alive,
        "fin_received": it.fin_received, "fin_unacked": it.fin_unacked,
        "soft_error": it.soft_error.map(|error| format!("{error:?}")),
    })
}

fn window(it: &Snapshot, moment: &Moment) -> Value {
    let ca_state = match it.ca_state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    };
    json!({
        "congestion": moment.name(it.congestion_control), "ca_state": ca_state, "cwnd": it.cwnd,
        "ssthresh": (it.ssthresh != u32::MAX).then_some(it.ssthresh),
        "pipe": it.pipe, "lost": it.lost, "sacked": it.sacked, "retrans_out": it.sent_again,
        "snd_wnd": it.snd.wnd.get(), "rcv_wnd": it.rcv.wnd(), "persist": it.persist,
        "pacing_rate": it.pacing_rate, "max_pacing_rate": it.max_pacing_rate,
    })
}

fn times(it: &Snapshot, moment: &Moment) -> Value {
    let limits = [Limit::Network, Limit::Window, Limit::Buffer];
    json!({
        "rto": seconds(it.rto), "ato": seconds(moment.delayed_ack), "backoff": it.backoff, "rtt": it.srtt.map(seconds),
        "rttvar": seconds(it.rttvar), "minrtt": it.tally.min_rtt().map(seconds),
        "lastsnd": moment.since(it.tally.last_data_sent), "lastrcv": moment.since(it.tally.last_data_recv),
        "lastack": moment.since(it.tally.last_ack_recv),
        "busy": seconds(limits.map(|limit| it.limited(limit)).into_iter().sum()),
        "rwnd_limited": seconds(it.limited(Limit::Window)),
        "sndbuf_limited": seconds(it.limited(Limit::Buffer)),
        "attempts": it.attempts, "keep_alive_probes": it.keep_alive_probes,
    })
}

fn counts(it: &Snapshot) -> Value {
    let tally = &it.tally;
    json!({
        "bytes_sent": tally.bytes_acked + u64::from(it.unacked_text()) + it.info_counts.bytes_retrans,
        "bytes_retrans": it.info_counts.bytes_retrans, "bytes_acked": tally.bytes_acked,
        "bytes_received": tally.bytes_received, "segs_out": tally.segs_out,
        "segs_in": tally.segs_in, "data_segs_out": tally.data_segs_out,
        "data_segs_in": tally.data_segs_in, "delivered": tally.delivered,
        "delivered_ce": it.info_counts.delivered_ce, "retrans_total": it.info_counts.total_retrans,
        "dsack_dups": it.info_counts.dsack_dups, "reord_seen": it.info_counts.reorderings,
        "timeouts": it.info_counts.timeouts,
    })
}

fn memory(it: &Snapshot) -> Value {
    json!({
        "unread": it.unread, "send_queued": it.send_queued, "notsent": it.unsent,
        "unacked": it.snd.max.offset_from(it.snd.una), "send_buffer": it.send_size, "recv_buffer": it.recv_size, "rcv_ssthresh": it.recv_limit,
    })
}

/// The reason why the sender does not send more, and the time for which it has held.
fn waits(it: &Snapshot, moment: &Moment) -> Value {
    let held = seconds(it.limit_held);
    let (limit, held) = match it.tally.limit() {
        // At the latest since the peer spoke last.
        Limit::Application => ("application", moment.since(it.tally.last_ack_recv)),
        Limit::Network => ("network", held),
        Limit::Window => ("window", held),
        Limit::Buffer => ("buffer", held),
    };
    json!({ "limit": limit, "limit_held": held })
}

fn seconds(time: Duration) -> f64 {
    // To a nanosecond: more digits would be those of the binary fraction.
    time.as_nanos() as f64 / 1e9
}
