//! Counters and sums of a host, over all of its shards.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use whimbrel_stack::ip::IpCounters;
use whimbrel_stack::shard::{
    Census, Listing, ListingDetail, ListingPlace, Memory, SocketState, StateCounts,
};
use whimbrel_stack::udp;
use whimbrel_tcp::Counters;
use whimbrel_tcp::table::PassiveLatencies;

use super::ask::ask;
use super::request::Refusal;
use crate::Inspect;

/// Counters and sums of some shards.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) tcp: Counters,
    pub(crate) udp: udp::Counters,
    ip: Vec<IpCounters>,
    census: Census,
    pub(crate) memory: Memory,
    /// Times of passive opens, if they are recorded.
    pub(crate) latencies: Option<PassiveLatencies>,
    /// Connections that wait to be accepted, and the most that may.
    pub(crate) accept_queue: (u64, u64),
}

impl Figures {
    /// Gets the figures of each shard, and adds them up.
    pub(crate) fn of(shards: &[Arc<dyn Inspect>]) -> Result<Self, Refusal> {
        let mut sum: Option<Self> = None;
        for shard in shards {
            let one = ask(shard.as_ref(), |shard| Self::of_shard(shard))?;
            match &mut sum {
                None => sum = Some(one),
                Some(sum) => sum.add(one),
            }
        }
        let mut sum = sum.ok_or_else(|| Refusal::new("ended", "the stack has no shard"))?;
        sum.accept_queue = accept_queue(shards)?;
        Ok(sum)
    }

    fn of_shard(shard: &whimbrel_stack::Shard) -> Self {
        Self {
            tcp: shard.counters().clone(),
            udp: shard.udp().counters.clone(),
            ip: vec![shard.ip_counters().clone()],
            census: shard.census(),
            memory: shard.memory(),
            latencies: shard.latencies().cloned(),
            accept_queue: (0, 0),
        }
    }

    fn add(&mut self, other: Self) {
        self.tcp += &other.tcp;
        self.udp += &other.udp;
        self.ip.extend(other.ip);
        self.census += other.census;
        self.memory += other.memory;
        if let Some(latencies) = &other.latencies {
            *self.latencies.get_or_insert_default() += latencies;
        }
    }

    /// Every counter by its name.
    pub(super) fn counters(&self) -> Map<String, Value> {
        let tcp = self.tcp.iter().map(|(name, _, value)| (name, value));
        let udp = self.udp.iter().map(|(name, _, value)| (name, value));
        tcp.chain(udp).chain(self.ip()).map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// Counters of packets by their names.
    pub(crate) fn ip(&self) -> impl Iterator<Item = (&'static str, u64)> {
        IP_COUNTERS.iter().map(|(name, read)| (*name, self.ip.iter().map(read).sum()))
    }

    /// Dropped segments and packets by reason.
    pub(crate) fn drops(&self) -> Map<String, Value> {
        let mut drops = Map::new();
        let segments = self.tcp.drops().map(|(reason, count)| (reason.name(), count));
        let packets = self.ip.iter().flat_map(IpCounters::drops);
        let packets = packets.map(|(reason, count)| (reason.name(), count));
        for (name, count) in segments.chain(packets) {
            let before = drops.get(name).and_then(Value::as_u64).unwrap_or(0);
            drops.insert(name.into(), (before + count).into());
        }
        drops
    }

    /// Memory, records and queues.
    pub(super) fn summary(&self) -> Value {
        let Census { connections, syn_entries, time_wait, listeners, timers, replies, .. } =
            self.census;
        let Memory { held, text, budget, pressure } = self.memory;
        json!({
            "records": {
                "connections": connections, "half_open": syn_entries, "time_wait": time_wait,
                "listeners": listeners, "udp_sockets": self.census.udp_sockets, "timers": timers,
                "replies": replies, "fragments": self.census.fragmented,
            },
            "memory": {
                "held": held, "text": text, "budget": budget,
                "pressure": format!("{pressure:?}").to_ascii_lowercase(),
            },
            "accept_queue": { "waiting": self.accept_queue.0, "most": self.accept_queue.1 },
        })
    }
}

/// Connections that wait to be accepted, and the most that may, over all listeners.
fn accept_queue(shards: &[Arc<dyn Inspect>]) -> Result<(u64, u64), Refusal> {
    let (mut waiting, mut most) = (0, 0);
    for shard in shards {
        let mut place = Some(ListingPlace::default());
        while let Some(from) = place.filter(|place| place.is_at_listeners()) {
            let (listed, next) = ask(shard.as_ref(), move |shard| {
                let mut listed = Vec::new();
                let next = Listing::new(shard, ListingDetail::Brief).slice(from, &mut listed);
                (listed, next)
            })?;
            waiting += listed.iter().map(|it| it.received).sum::<u64>();
            most += listed.iter().map(|it| it.queued).sum::<u64>();
            place = next;
        }
    }
    Ok((waiting, most))
}

/// Sockets in each state, counted in slices.
pub(crate) fn count(shards: &[Arc<dyn Inspect>]) -> Result<StateCounts, Refusal> {
    let mut counts = StateCounts::default();
    for shard in shards {
        let mut next = Some(0);
        while let Some(from) = next {
            let (slice, on) = ask(shard.as_ref(), move |shard| {
                let mut slice = StateCounts::default();
                let on = Listing::new(shard, ListingDetail::Brief).count(from, &mut slice);
                (slice, on)
            })?;
            counts += slice;
            next = on;
        }
    }
    Ok(counts)
}

/// Number of sockets in each state, by RFC 9293's names.
pub(super) fn states(shards: &[Arc<dyn Inspect>]) -> Result<Map<String, Value>, Refusal> {
    let counts = count(shards)?;
    Ok(counts.iter().map(|(state, count)| (state.to_string(), count.into())).collect())
}

/// `TcpCurrEstab`: connections in ESTABLISHED or CLOSE-WAIT.
pub(super) fn established(shards: &[Arc<dyn Inspect>]) -> Result<usize, Refusal> {
    let counts = count(shards)?;
    Ok(counts.of(SocketState::Established) + counts.of(SocketState::CloseWait))
}

/// Reads a counter of packets.
type ReadCounter = fn(&IpCounters) -> u64;

/// Counters of packets, under the names of Linux' MIB; both families together.
const IP_COUNTERS: &[(&str, ReadCounter)] = &[
    ("IpInReceives", |ip| ip.in_receives),
    ("IpInDelivers", |ip| ip.in_delivers),
    ("IpOutRequests", |ip| ip.out_requests),
    ("IpOutNoRoutes", |ip| ip.out_no_routes),
    ("IpReasmTimeout", |ip| ip.reassembly_timeouts),
    ("IpReasmReqds", |ip| ip.reassembly_fragments),
    ("IpReasmOKs", |ip| ip.reassembled),
    ("IpReasmFails", |ip| ip.reassembly_failures),
    ("IpFragOKs", |ip| ip.fragmented),
    ("IpFragCreates", |ip| ip.fragments_created),
    ("IcmpOutEchoReps", |ip| ip.echo_replies),
    ("IcmpOutEchos", |ip| ip.echo_requests),
    ("IpExtInCEPkts", |ip| ip.in_ce),
];
