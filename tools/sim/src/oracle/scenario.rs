//! Scenario that a seed stands for.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use whimbrel_base::{Instant, Micros};
use whimbrel_link::{BurstLoss, LinkConfig, Probability, QueueLimit, Reorder};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::BufferPolicy;
use whimbrel_wire::Family;

use super::Oracle;
use super::shared_plan::{RetryPolicy, SharedPlan, SimultaneousOpen, SynData, mix};
use crate::pair::{Offload, PairConfig, client_addr, server_at};
use crate::world::Checks;

/// Rules, links, outages and connections, all drawn from a seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    family: Family,
    offload: [Offload; 2],
    /// The MTU of each host's device.
    mtu: [u16; 2],
    tunables: [Tunables; 2],
    links: [LinkConfig; 2],
    /// Times when both directions of the link are down.
    pub outages: Vec<(Instant, Instant)>,
    /// Times when both directions have a smaller MTU, and that MTU.
    pub narrows: Vec<(Instant, Instant, u16)>,
    /// Start of each connection.
    starts: Vec<Instant>,
    shared: SharedPlan,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn new(seed: u64) -> Self {
        let chance = &mut Rng::with_seed(mix(seed));
        let family = if chance.bool() { Family::V4 } else { Family::V6 };
        let mtu = [draw_mtu(chance, family), draw_mtu(chance, family)];
        let shared = draw_connections(chance, seed);
        let tunables = [draw_tunables(chance), draw_tunables(chance)];
        let links = mtu.map(|mtu| {
            let narrow = if chance.u32(..4) == 0 { draw_mtu(chance, family) } else { mtu };
            draw_link(chance, mtu.min(narrow))
        });
        let start = |chance: &mut Rng| Instant::from_millis(chance.u64(..500));
        let mut starts: Vec<Instant> = (0..shared.connections).map(|_| start(chance)).collect();
        starts.sort_unstable();
        let offload = |chance: &mut Rng| match chance.u32(..3) {
            0 => Offload::Full,
            _ => Offload::None,
        };
        let more = &mut Rng::with_seed(mix(seed.rotate_left(13)));
        let tunables = tunables.map(|rules| Tunables {
            // Failures are to be met again and again.
            fast_open_pause: Duration::ZERO,
            ..draw_sizes(more, rules)
        });
        let mut scenario = Self {
            seed,
            family,
            offload: [offload(chance), offload(chance)],
            mtu,
            tunables,
            links,
            outages: draw_outages(chance),
            narrows: draw_narrows(more, family),
            starts,
            shared,
        };
        if chance.u32(..6) == 0 {
            scenario.make_perfect();
        }
        scenario
    }

    /// Removes every reason to send anything twice.
    fn make_perfect(&mut self) {
        self.outages.clear();
        self.narrows.clear();
        self.shared.patience = RetryPolicy::Endless;
        for (link, mtu) in self.links.iter_mut().zip(self.mtu) {
            *link = perfect(link, mtu);
        }
        for rules in &mut self.tunables {
            rules.delayed_ack = rules.delayed_ack.min(Duration::from_millis(40));
        }
    }

    /// Both applications: the client's first.
    pub fn applications(&self) -> [Oracle; 2] {
        let hosts = [client_addr(self.family), server_at(self.family, 0).addr];
        let (shared, starts) = (self.shared, &self.starts);
        [Oracle::client(shared, hosts, starts), Oracle::server(shared, hosts, starts)]
    }

    /// True if connections use Fast Open.
    pub(super) const fn opens_fast(&self) -> bool {
        matches!(self.shared.syn_data, SynData::Fast { .. })
    }

    /// Number of connections that both ends open.
    pub(super) fn crossed(&self) -> usize {
        self.shared.crossed()
    }

    /// True if the links neither lose nor delay anything, and no application closes early.
    pub(super) fn is_perfect(&self) -> bool {
        let perfect = |(link, mtu): (&LinkConfig, u16)| *link == perfect(link, mtu);
        // With the longest round trip, 120 ms, this stays below the least time-out.
        let prompt = |rules: &Tunables| rules.delayed_ack <= Duration::from_millis(40);
        let undisturbed = self.outages.is_empty()
            && self.narrows.is_empty()
            && self.shared.patience == RetryPolicy::Endless;
        undisturbed
            && self.links.iter().zip(self.mtu).all(perfect)
            && self.tunables.iter().all(prompt)
    }

    /// Hosts and links.
    pub fn pair(&self, checks: Checks) -> PairConfig {
        PairConfig {
            metrics: Default::default(),
            tunables: self.tunables.clone(),
            offload: self.offload,
            mtu: self.mtu,
            links: self.links.clone(),
            seed: mix(self.seed),
            checks,
        }
    }
}

/// Description of the scenario, for people.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, offload, mtu, tunables, links, outages, narrows, shared, .. } = self;
        let SharedPlan { connections, slots, most_bytes, patience, syn_data, .. } = shared;
        let crossed = self.crossed();
        writeln!(f, "{family:?}, offload {offload:?}, MTU {mtu:?}")?;
        write!(f, "{connections} connections ({crossed} from both ends), opening {syn_data:?}, ")?;
        write!(f, "on {slots} ports of ")?;
        writeln!(f, "at most {most_bytes} bytes, patience {patience:?}, outages {outages:?}")?;
        writeln!(f, "narrow {narrows:?}")?;
        for (side, tunables) in ["client", "server"].into_iter().zip(tunables) {
            let Tunables { send_buffer, recv_buffer, timestamps, sack, window_scaling, .. } =
                tunables;
            write!(f, "{side}: send {send_buffer}, recv {recv_buffer}, timestamps {timestamps}, ")?;
            writeln!(f, "sack {sack}, scaling {window_scaling}")?;
            let Tunables { recv_auto, recv_buffer_max, send_auto, send_buffer_max, .. } = tunables;
            write!(f, "  recv auto {recv_auto} to {recv_buffer_max}, ")?;
            writeln!(f, "send {send_auto} to {send_buffer_max}, buffers {:?}", tunables.buffers)?;
        }
        for (way, link) in ["up", "down"].into_iter().zip(links) {
            writeln!(f, "{way}: {link:?}")?;
        }
        Ok(())
    }
}

fn draw_connections(chance: &mut Rng, seed: u64) -> SharedPlan {
    let connections = chance.u16(1..=8);
    let patience = if chance.u32(..4) == 0 { RetryPolicy::Short } else { RetryPolicy::Endless };
    let fewer = patience == RetryPolicy::Endless && chance.u32(..3) == 0;
    let slots = if fewer { chance.u16(1..=connections) } else { connections };
    let crossed = slots == connections && chance.u32(..3) == 0;
    let simultaneous_open = if crossed { SimultaneousOpen::Some } else { SimultaneousOpen::None };
    // If ports are reused, a connection could not be told from the ghost of another.
    let fast = slots == connections && mix(seed.rotate_left(9)).is_multiple_of(3);
    let pending = 1 + mix(seed.rotate_left(11)) as u32 % 8;
    let syn_data = if fast { SynData::Fast { pending } } else { SynData::Plain };
    let most_bytes = 1 << chance.u32(8..=19);
    SharedPlan { seed, most_bytes, connections, slots, patience, simultaneous_open, syn_data }
}

/// A usual MTU of links: IPv6 needs at least 1,280.
fn draw_mtu(chance: &mut Rng, family: Family) -> u16 {
    let usual = [1_280, 1_500, 4_352, 9_000];
    match family {
        Family::V4 => [576, 1_006, usual[chance.usize(..4)]][chance.usize(..3)],
        Family::V6 => usual[chance.usize(..4)],
    }
}

fn draw_tunables(chance: &mut Rng) -> Tunables {
    let buffer = |chance: &mut Rng| (1u32 << chance.u32(11..=22)) + chance.u32(..1_000);
    let recv_buffer = buffer(chance);
    Tunables {
        send_buffer: buffer(chance),
        recv_buffer,
        recv_buffer_max: if chance.u32(..4) == 0 { 1 << 30 } else { recv_buffer },
        window_scaling: chance.u32(..4) != 0,
        timestamps: chance.u32(..4) != 0,
        sack: chance.u32(..4) != 0,
        delayed_ack: Duration::from_millis([0, 40, 200, 490][chance.usize(..4)]),
        ack_every: chance.u8(1..=4),
        max_out_of_order: if chance.u32(..4) == 0 { chance.u16(1..=8) } else { 256 },
        // No connection may give up: the oracle tests whether each ends well.
        syn_retries: 30,
        synack_retries: 30,
        retries: 30,
        orphan_retries: 30,
        max_rto: Micros::from_millis(5_000),
        // TIME-WAIT outlasts all outages in a row. Otherwise a peer that has forgotten answers the
        // last text with a reset only, and its sender must report that it may not have arrived.
        msl_link: Duration::from_secs(60),
        ..Tunables::default()
    }
}

/// Draws the growth of buffers with the path, and the meaning of a requested size.
fn draw_sizes(chance: &mut Rng, rules: Tunables) -> Tunables {
    let policies = [BufferPolicy::Floor, BufferPolicy::Floor, BufferPolicy::Exact];
    let grows = chance.bool();
    Tunables {
        recv_auto: chance.u32(..4) != 0,
        send_auto: chance.u32(..4) != 0,
        send_buffer_max: if grows { rules.send_buffer_max } else { rules.send_buffer },
        buffers: policies[chance.usize(..3)],
        ..rules
    }
}

/// Half of the links are good; the others lose up to a tenth of the frames, and have all other
/// impairments.
fn draw_link(chance: &mut Rng, mtu: u16) -> LinkConfig {
    let delay = Duration::from_micros(chance.u64(10..=60_000));
    let rate = [None, Some(chance.u64(500_000..=100_000_000))][chance.usize(..2)];
    let queue = QueueLimit::Packets(chance.u32(4..=200));
    let mut link = LinkConfig::default().with_delay(delay).with_queue(queue).with_mtu(mtu);
    link.rate = rate;
    if chance.bool() {
        return link;
    }
    let some = |chance: &mut Rng, most: u32| {
        let often = chance.bool();
        Probability::from_millionths(if often { chance.u32(..=most) } else { 0 })
    };
    let burst = BurstLoss {
        enter: Probability::from_millionths(chance.u32(..=10_000)),
        leave: Probability::from_percent(chance.u32(20..=60)),
        loss: Probability::from_percent(80),
    };
    let extra = Duration::from_micros(chance.u64(100..=50_000));
    link.jitter = Duration::from_micros(chance.u64(0..=10_000));
    link.loss = some(chance, 100_000);
    link.burst_loss = chance.bool().then_some(burst);
    link.reorder = chance.bool().then_some(Reorder { chance: some(chance, 100_000), extra });
    link.duplicate = some(chance, 50_000);
    link.corrupt = some(chance, 50_000);
    link
}

/// A link of the same delay and queue, without a rate, losses and the like.
fn perfect(link: &LinkConfig, mtu: u16) -> LinkConfig {
    LinkConfig::default().with_delay(link.delay).with_queue(link.queue).with_mtu(mtu)
}

/// One scenario in three has a narrower path for a while, most likely during repairs.
fn draw_narrows(chance: &mut Rng, family: Family) -> Vec<(Instant, Instant, u16)> {
    let count = if chance.u32(..3) == 0 { chance.usize(1..=4) } else { 0 };
    let mut at = Instant::ZERO;
    let mut narrow = |chance: &mut Rng| {
        let from = at + Duration::from_millis(chance.u64(1..=500));
        let until = from + Duration::from_millis(chance.u64(1..=2_000));
        at = until;
        (from, until, draw_mtu(chance, family))
    };
    (0..count).map(|_| narrow(chance)).collect()
}

/// One scenario in four has outages, none longer than thirty seconds.
fn draw_outages(chance: &mut Rng) -> Vec<(Instant, Instant)> {
    let count = if chance.u32(..4) == 0 { chance.usize(1..=3) } else { 0 };
    let mut at = Instant::ZERO;
    let mut outage = |chance: &mut Rng| {
        let from = at + Duration::from_millis(chance.u64(1..=3_000));
        let until = from + Duration::from_millis(chance.u64(1..=30_000));
        at = until;
        (from, until)
    };
    (0..count).map(|_| outage(chance)).collect()
}
