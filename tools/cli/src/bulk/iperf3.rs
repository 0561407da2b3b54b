//! The document that iperf3 prints with `-J`: what reads one reads the other.
//!
//! A value that does not exist here is left out, as iperf3 leaves out values that its platform lacks.
//! This includes the other side's processor load: in this process it is part of ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use whimbrel_apps::bulk::{Direction, Peer, Sample, StopCondition, Totals};
use whimbrel_apps::http::HttpDate;
use whimbrel_base::Foreign;
use whimbrel_io::process::CpuTime;

use super::table::span_seconds;
use super::{BulkPlan, FinishedRun, Outcome, StreamOutcome};
use crate::drive::ResourceUsage;
use crate::output::{cookie, system};
use crate::{proc, routes};

/// The result as the JSON document that iperf3 prints.
pub(super) fn document(plan: &BulkPlan, ran: &FinishedRun<Outcome>) -> String {
    let ways: &[Sending] = match plan.bulk.direction {
        Direction::Send => &[Sending::Send],
        Direction::Receive => &[Sending::Receive],
        Direction::Both => &[Sending::Send, Sending::Receive],
    };
    let document = json!({
        "start": start(plan, ran, ways),
        "intervals": intervals(&ran.outcome, ways),
        "end": end(plan, ran, ways),
    });
    format!("{document:#}\n")
}

/// One direction of a transfer, as this side sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    Send,
    Receive,
}

impl Sending {
    /// The streams that go this way.
    fn streams(self, outcome: &Outcome) -> impl Iterator<Item = &StreamOutcome> + Clone {
        let direction = match self {
            Self::Send => Direction::Send,
            Self::Receive => Direction::Receive,
        };
        let goes = move |stream: &&StreamOutcome| {
            stream.direction == direction || stream.direction == Direction::Both
        };
        outcome.streams.iter().filter(goes)
    }

    fn of(self, totals: Totals) -> u64 {
        match self {
            Self::Send => totals.sent,
            Self::Receive => totals.received,
        }
    }
}

fn start(plan: &BulkPlan, ran: &FinishedRun<Outcome>, ways: &[Sending]) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // A stream for each way, as with iperf3, though one connection carries both here.
    let streams = ways.iter().flat_map(|way| way.streams(&ran.outcome));
    let connected = streams.enumerate().map(|(number, stream)| {
        json!({
            "socket": socket(number),
            "local_host": stream.local.map_or(String::new(), |local| local.addr.to_string()),
            "local_port": stream.local.map_or(0, |local| local.port),
            "remote_host": ran.target.addr.to_string(),
            "remote_port": ran.target.port,
        })
    });
    let (duration, bytes) = match plan.bulk.until {
        StopCondition::Elapsed(time) => (time.as_secs(), 0),
        StopCondition::Bytes(each) => (0, each.saturating_mul(plan.bulk.streams.into())),
        StopCondition::Told => (0, 0),
    };
    let cookie = match &plan.bulk.peer {
        Peer::Iperf3(terms) => {
            Foreign::new(terms.cookie.strip_suffix(&[0]).unwrap_or(&terms.cookie)).to_string()
        }
        Peer::Plain | Peer::Iperf3Client => cookie(now),
    };
    let sent_stats = ran.outcome.streams.iter().flat_map(|stream| &stream.samples);
    let mss =
        sent_stats.filter_map(|sample| sample.sender_stats).map(|stats| stats.mss).next_back();
    let tunables = &plan.setup.rules.tunables;
    json!({
        "connected": connected.collect::<Vec<_>>(),
        "version": format!("whimbrel {}", env!("CARGO_PKG_VERSION")),
        "system_info": system(),
        "timestamp": { "time": HttpDate::from_unix_seconds(now).as_str(), "timesecs": now },
        "connecting_to": { "host": ran.target.addr.to_string(), "port": ran.target.port },
        "cookie": cookie,
        "tcp_mss_default": mss.unwrap_or(0),
        "target_bitrate": plan.bulk.rate.unwrap_or(0),
        "sock_bufsize": 0,
        "sndbuf_actual": tunables.send_buffer,
        "rcvbuf_actual": tunables.recv_buffer,
        "test_start": {
            "protocol": "TCP",
            "num_streams": plan.bulk.streams,
            "blksize": plan.bulk.block,
            "omit": plan.bulk.omit.as_secs(),
            "duration": duration,
            "bytes": bytes,
            "blocks": 0,
            "reverse": u8::from(plan.bulk.direction == Direction::Receive),
            "tos": 0,
            "target_bitrate": plan.bulk.rate.unwrap_or(0),
        },
    })
}

fn intervals(outcome: &Outcome, ways: &[Sending]) -> Value {
    let count = outcome.streams.iter().map(|stream| stream.samples.len()).max().unwrap_or(0);
    let interval = |place: usize| {
        let mut streams = Vec::new();
        let mut interval = Map::new();
        let mut before = 0;
        for (turn, way) in ways.iter().enumerate() {
            let mut bytes = 0;
            let mut last = None;
            let first = before;
            for (number, stream) in way.streams(outcome).enumerate() {
                before += 1;
                let Some(sample) = stream.samples.get(place) else { continue };
                bytes += way.of(sample.moved);
                last = Some(sample);
                let number = first + number;
                streams.push(in_interval(stream, place, sample, *way, socket(number)));
            }
            let Some(sample) = last else { continue };
            let sum = if turn == 0 { "sum" } else { "sum_bidir_reverse" };
            interval.insert(sum.into(), whole_interval(outcome, place, sample, *way, bytes));
        }
        interval.insert("streams".into(), streams.into());
        Value::Object(interval)
    };
    (0..count).map(interval).collect()
}

/// One stream in one interval.
fn in_interval(
    stream: &StreamOutcome,
    place: usize,
    sample: &Sample,
    way: Sending,
    socket: usize,
) -> Value {
    let mut map = span(sample, way.of(sample.moved), way);
    map.insert("socket".into(), socket.into());
    if let Some(stats) = sample.sender_stats.filter(|_| way == Sending::Send) {
        if let Some(again) = retransmits(stream, place) {
            map.insert("retransmits".into(), again.into());
        }
        map.insert("snd_cwnd".into(), stats.cwnd.into());
        map.insert("snd_wnd".into(), stats.rwnd.into());
        map.insert("rtt".into(), micros(stats.rtt.unwrap_or_default()).into());
        map.insert("rttvar".into(), micros(stats.rttvar).into());
        map.insert("pmtu".into(), (stats.mss + HEADERS).into());
    }
    map.into()
}

/// All streams in one interval.
fn whole_interval(
    outcome: &Outcome,
    place: usize,
    sample: &Sample,
    way: Sending,
    bytes: u64,
) -> Value {
    let mut map = span(sample, bytes, way);
    let again: Option<u64> = outcome.streams.iter().map(|stream| retransmits(stream, place)).sum();
    if let Some(again) = again.filter(|_| way == Sending::Send) {
        map.insert("retransmits".into(), again.into());
    }
    map.into()
}

fn span(sample: &Sample, bytes: u64, way: Sending) -> Map<String, Value> {
    let seconds = span_seconds(sample.from, sample.until);
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let mut map = Map::new();
    map.insert("start".into(), sample.from.as_secs_f64().into());
    map.insert("end".into(), sample.until.as_secs_f64().into());
    map.insert("seconds".into(), seconds.into());
    map.insert("bytes".into(), bytes.into());
    map.insert("bits_per_second".into(), rate.into());
    map.insert("omitted".into(), sample.omitted.into());
    map.insert("sender".into(), (way == Sending::Send).into());
    map
}

/// Segments that a stream sent again in one interval, if that is known.
fn retransmits(stream: &StreamOutcome, place: usize) -> Option<u64> {
    let at = |place: usize| stream.samples.get(place)?.sender_stats?.retransmits;
    let before = place.checked_sub(1).and_then(at).unwrap_or(0);
    at(place).map(|count| count.saturating_sub(before))
}

fn end(plan: &BulkPlan, ran: &FinishedRun<Outcome>, ways: &[Sending]) -> Value {
    let outcome = &ran.outcome;
    let mut streams = Vec::new();
    let mut map = Map::new();
    for (turn, way) in ways.iter().enumerate() {
        for stream in way.streams(outcome) {
            streams.push(stream_end(outcome, stream, *way, socket(streams.len())));
        }
        let (bytes, came) =
            way.streams(outcome).map(|stream| ends(outcome, stream, *way)).fold(
                (Counted::default(), Counted::default()),
                |(bytes, came), (sender, receiver)| (bytes.with(sender), came.with(receiver)),
            );
        let (sent, received) = match turn {
            0 => ("sum_sent", "sum_received"),
            _ => ("sum_sent_bidir_reverse", "sum_received_bidir_reverse"),
        };
        let mut sum = total(bytes, *way);
        if let Some(again) = outcome.retransmits.filter(|_| *way == Sending::Send) {
            sum.insert("retransmits".into(), again.into());
        }
        map.insert(sent.into(), sum.into());
        map.insert(received.into(), total(came, *way).into());
    }
    map.insert("streams".into(), streams.into());
    if let Some(effort) = &ran.effort {
        map.insert("cpu_utilization_percent".into(), cpu(effort, outcome));
    }
    let own = congestion(plan, ran);
    let (near, far) = match plan.bulk.direction {
        Direction::Receive => ("receiver_tcp_congestion", "sender_tcp_congestion"),
        Direction::Send | Direction::Both => ("sender_tcp_congestion", "receiver_tcp_congestion"),
    };
    // Another program's stack reports them only if the client requested its output.
    let told = outcome
        .theirs
        .as_ref()
        .and_then(|theirs| Some(theirs.congestion.as_ref()?.verbatim().clone()));
    if let Some(theirs) = told.or_else(|| plan.target.is_none().then(|| own.clone())) {
        map.insert(far.into(), theirs.into());
    }
    if let Some(text) = outcome.theirs.as_ref().and_then(|theirs| theirs.server_output.as_ref()) {
        map.insert("server_output_text".into(), text.verbatim().clone().into());
    }
    map.insert(near.into(), own.into());
    map.into()
}

/// The load of this process, in percent of one processor.
fn cpu(effort: &ResourceUsage, outcome: &Outcome) -> Value {
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / effort.elapsed.as_secs_f64();
    let CpuTime { user, system } = effort.cpu;
    let mut load = json!({
        "host_total": percent(user + system),
        "host_user": percent(user),
        "host_system": percent(system),
    });
    if let Some(theirs) = outcome.theirs.as_ref().map(|theirs| theirs.processors) {
        load["remote_total"] = theirs.total.into();
        load["remote_user"] = theirs.user.into();
        load["remote_system"] = theirs.system.into();
    }
    load
}

/// Name of this side's congestion control.
fn congestion(plan: &BulkPlan, ran: &FinishedRun<Outcome>) -> String {
    match ran.client {
        Some(_) => routes::congestion(&plan.setup.routes, ran.target.addr)
            .map_or_else(|| super::congestion(&plan.setup.rules), str::to_owned),
        None => plan.bulk.options.congestion.clone().unwrap_or_else(proc::congestion_control),
    }
}

fn stream_end(outcome: &Outcome, stream: &StreamOutcome, way: Sending, socket: usize) -> Value {
    let (sent, came) = ends(outcome, stream, way);
    let mut sender = total(sent, way);
    let mut receiver = total(came, way);
    for side in [&mut sender, &mut receiver] {
        side.insert("socket".into(), socket.into());
    }
    let sent_stats = || stream.samples.iter().filter_map(|sample| sample.sender_stats);
    let rtts: Vec<u64> = sent_stats().filter_map(|stats| stats.rtt).map(micros).collect();
    let mean = rtts.iter().sum::<u64>().checked_div(rtts.len() as u64).unwrap_or(0);
    // The other side does not report its retransmissions; these are this side's in either direction, as
    // with iperf3.
    if let Some(again) = sent_stats().next_back().and_then(|stats| stats.retransmits)
        && way == Sending::Send
    {
        sender.insert("retransmits".into(), again.into());
    }
    if let (Sending::Receive, Some(again)) =
        (way, stream.theirs.and_then(|theirs| theirs.retransmits))
    {
        sender.insert("retransmits".into(), again.into());
    }
    let most = |figures: &mut dyn Iterator<Item = u64>| Value::from(figures.max().unwrap_or(0));
    sender.insert("max_snd_cwnd".into(), most(&mut sent_stats().map(|stats| stats.cwnd)));
    sender.insert("max_snd_wnd".into(), most(&mut sent_stats().map(|stats| stats.rwnd)));
    sender.insert("max_rtt".into(), most(&mut rtts.iter().copied()));
    sender.insert("min_rtt".into(), rtts.iter().min().copied().unwrap_or(0).into());
    sender.insert("mean_rtt".into(), mean.into());
    json!({ "sender": sender, "receiver": receiver })
}

fn total(Counted { bytes, seconds }: Counted, way: Sending) -> Map<String, Value> {
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let mut map = Map::new();
    map.insert("start".into(), 0.0.into());
    map.insert("end".into(), seconds.into());
    map.insert("seconds".into(), seconds.into());
    map.insert("bytes".into(), bytes.into());
    map.insert("bits_per_second".into(), rate.into());
    map.insert("sender".into(), (way == Sending::Send).into());
    map
}

/// One side's counts.
#[derive(Clone, Copy, Default)]
struct Counted {
    bytes: u64,
    seconds: f64,
}

impl Counted {
    /// Adds the counts of another stream.
    fn with(self, other: Self) -> Self {
        let seconds = self.seconds.max(other.seconds);
        Self { bytes: self.bytes + other.bytes, seconds }
    }
}

/// Bytes sent and received, as each side reported them; else this side's counts.
fn ends(outcome: &Outcome, stream: &StreamOutcome, way: Sending) -> (Counted, Counted) {
    let seconds = outcome.elapsed.as_secs_f64();
    let own = Counted { bytes: way.of(stream.counted), seconds };
    let direction = match way {
        Sending::Send => Direction::Send,
        Sending::Receive => Direction::Receive,
    };
    let theirs = stream
        .counted_there(direction)
        .map_or(own, |(bytes, there)| Counted { bytes, seconds: there.unwrap_or(seconds) });
    if way == Sending::Send { (own, theirs) } else { (theirs, own) }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The number of a stream: iperf3's are descriptors, 5, 7, 9 and so on.
const fn socket(number: usize) -> usize {
    5 + 2 * number
}

/// Bytes of IPv4 and TCP headers.
const HEADERS: u32 = 40;
