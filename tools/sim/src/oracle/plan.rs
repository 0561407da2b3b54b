//! Plan of one end of a connection.

use std::time::Duration;

use fastrand::Rng;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{
    AckTiming, BufferSize, Cork, KeepAlive, Nagle, SocketOptions, SocketOverrides,
};

use super::shared_plan::{RetryPolicy, SharedPlan, mix};

/// Plan of one end of a connection. Both ends compute it for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPlan {
    /// Key of the bytes.
    pub(super) key: u64,
    /// Number of bytes sent before the end of the stream.
    pub bytes: u64,
    /// Most bytes of one write.
    pub(super) most: usize,
    /// Longest pause between two writes; zero for none.
    pub(super) write_pause: Duration,
    /// Longest pause between two reads; zero reads all data at once.
    pub(super) read_pause: Duration,
    /// Time of its first byte.
    pub(super) beginning: Beginning,
    /// Distance of urgent bytes; 0: none.
    pub(super) urgent_every: u64,
    /// Action after the end of both streams.
    pub(super) ending: Ending,
    /// Number of bytes received after which it closes early, and how.
    pub(super) closes_early_at: Option<(u64, CloseMode)>,
    /// Options of its socket.
    pub(super) options: SocketOptions,
}

/// Start of an application's sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beginning {
    /// When it is connected.
    AtOnce,
    /// After the end of the peer's stream, over a half-closed connection.
    AfterPeersEnd,
}

/// Action of an application after both directions have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It releases the connection without a call to close.
    Release,
    /// It waits until the connection is over.
    Wait,
}

/// The way an application closes before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CloseMode {
    /// It closes: data written is delivered.
    Close,
    /// It aborts: the peer gets a reset.
    Abort,
    /// It ends its stream, waits a while for the peer's end, and then aborts.
    Linger(Duration),
}

/// End of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Client,
    Server,
}

impl StreamPlan {
    /// The plan of one end of connection `number`.
    pub(super) fn new(shared: &SharedPlan, number: u16, end: End) -> Self {
        let key = mix(shared.seed ^ mix(u64::from(number) * 2 + u64::from(end == End::Server)));
        let mut chance = Rng::with_seed(key);
        let most_bytes = shared.most_bytes;
        let gives_up = shared.patience == RetryPolicy::Short && chance.u32(..3) == 0;
        let patience = if gives_up { RetryPolicy::Short } else { RetryPolicy::Endless };
        let pause = |chance: &mut Rng, most: u64| match chance.u32(..4) {
            0 => Duration::from_millis(chance.u64(1..=most)),
            _ => Duration::ZERO,
        };
        Self {
            key,
            bytes: if chance.u32(..8) == 0 { 0 } else { chance.u64(1..=most_bytes) },
            most: 1 << chance.u32(4..=16),
            write_pause: pause(&mut chance, 50),
            read_pause: pause(&mut chance, 400),
            beginning: draw_beginning(shared, number, end),
            urgent_every: if chance.u32(..6) == 0 { chance.u64(1..=30_000) } else { 0 },
            ending: if chance.bool() { Ending::Release } else { Ending::Wait },
            closes_early_at: gives_up
                .then(|| (chance.u64(0..=most_bytes), draw_parting(&mut chance))),
            options: draw_options(&mut chance, patience),
        }
    }

    /// True if it continues to the end of both streams.
    pub(super) const fn is_patient(&self) -> bool {
        self.closes_early_at.is_none()
    }

    /// `len` bytes from `at` on.
    pub(super) fn text(&self, at: u64, len: usize) -> Vec<u8> {
        let last = at + len as u64;
        let words = (at / 8)..=(last / 8);
        let bytes = words.flat_map(|word| mix(self.key.wrapping_add(word)).to_le_bytes());
        bytes.skip((at % 8) as usize).take(len).collect()
    }

    /// Bytes from `at` to the next urgent one; 0 if `at` is urgent.
    pub(super) fn until_urgent(&self, at: u64) -> Option<u64> {
        (self.urgent_every > 0).then(|| self.urgent_every - 1 - at % self.urgent_every)
    }

    /// True if any byte is urgent.
    pub(super) const fn has_urgent(&self) -> bool {
        self.urgent_every > 0 && self.bytes >= self.urgent_every
    }
}

/// Plan of both ends.
impl SharedPlan {
    /// The plans of the client and of the server.
    pub(super) fn plans(&self, number: u16) -> [StreamPlan; 2] {
        [End::Client, End::Server].map(|end| StreamPlan::new(self, number, end))
    }

    /// Number of connections that both ends complete.
    pub(super) fn undisturbed(&self) -> usize {
        let patient = |number: &u16| self.plans(*number).iter().all(StreamPlan::is_patient);
        (0..self.connections).filter(patient).count()
    }
}

/// At most one end waits for the other; one does in one connection of four.
fn draw_beginning(shared: &SharedPlan, number: u16, end: End) -> Beginning {
    let waits = match mix(shared.seed.rotate_left(17) ^ u64::from(number)) % 8 {
        0 => Some(End::Client),
        1 => Some(End::Server),
        _ => None,
    };
    if waits == Some(end) { Beginning::AfterPeersEnd } else { Beginning::AtOnce }
}

fn draw_parting(chance: &mut Rng) -> CloseMode {
    match chance.u32(..3) {
        0 => CloseMode::Close,
        1 => CloseMode::Abort,
        _ => CloseMode::Linger(Duration::from_millis(chance.u64(0..=20_000))),
    }
}

/// An end that does not give up has no time-out shorter than all outages in a row.
fn draw_options(chance: &mut Rng, patience: RetryPolicy) -> SocketOptions {
    let sometimes = |chance: &mut Rng| chance.u32(..6) == 0;
    let time_limit = match patience {
        RetryPolicy::Endless => Duration::from_secs(300),
        RetryPolicy::Short => Duration::from_millis(chance.u64(500..=40_000)),
    };
    let keep_alive = sometimes(chance);
    SocketOptions {
        nagle: if chance.bool() { Nagle::On } else { Nagle::Off },
        cork: if sometimes(chance) { Cork::On } else { Cork::Off },
        keep_alive: if keep_alive { KeepAlive::On } else { KeepAlive::Off },
        overrides: SocketOverrides {
            keepalive_time: keep_alive.then(|| Duration::from_secs(chance.u64(1..=10))),
            keepalive_interval: keep_alive.then(|| Duration::from_secs(chance.u64(3..=9))),
            keepalive_probes: keep_alive.then_some(match patience {
                RetryPolicy::Endless => 100,
                RetryPolicy::Short => chance.u8(1..=3),
            }),
            user_timeout: sometimes(chance).then_some(time_limit),
            max_seg: sometimes(chance).then(|| chance.u16(88..=9_000)),
            unsent_low_water: sometimes(chance).then(|| chance.u32(1..=50_000)),
            window_clamp: sometimes(chance).then(|| chance.u32(1_000..=100_000)),
            acks: if sometimes(chance) { AckTiming::AtOnce } else { AckTiming::Delayed },
            ..SocketOverrides::default()
        },
        send_size: draw_size(chance),
        recv_size: draw_size(chance),
        congestion_control: chance.choice(Algorithm::OURS).map(|(algorithm, _)| algorithm),
        ..SocketOptions::default()
    }
}

/// Size of a buffer, usually the default of the rules.
fn draw_size(chance: &mut Rng) -> BufferSize {
    let bytes = (1 << chance.u32(11..=18)) + chance.u32(..1_000);
    match chance.u32(..8) {
        0 => BufferSize::Asked(bytes),
        1 => BufferSize::Floor(bytes),
        2 => BufferSize::Exact(bytes),
        _ => BufferSize::Auto,
    }
}
