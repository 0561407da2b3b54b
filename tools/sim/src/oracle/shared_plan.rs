//! The part of a scenario that both ends share.

use whimbrel_base::Instant;

/// The part of a plan that both ends share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedPlan {
    pub(super) seed: u64,
    /// Most bytes of a stream.
    pub(super) most_bytes: u64,
    pub(super) connections: u16,
    /// Number of the client's ports. If there are fewer than connections, each serves several in
    /// turn.
    pub(super) slots: u16,
    pub(super) patience: RetryPolicy,
    pub(super) simultaneous_open: SimultaneousOpen,
    pub(super) syn_data: SynData,
}

/// Use of text on SYNs (RFC 7413), and the server's limit of such handshakes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SynData {
    Plain,
    Fast { pending: u32 },
}

/// Simultaneous open of some connections (RFC 9293 figure 7), only if each has a port of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SimultaneousOpen {
    None,
    Some,
}

/// Early close by some applications, only if ports are not reused: the server counts a port's
/// connections and may never see one that was given up early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RetryPolicy {
    Endless,
    Short,
}

impl SharedPlan {
    /// Number, time, and the server's port of each connection.
    pub(super) fn calls<'a>(
        &self,
        starts: &'a [Instant],
    ) -> impl Iterator<Item = (u16, Instant, u16)> + 'a {
        let shared = *self;
        (0..).zip(starts).map(move |(number, at)| {
            let crossed = shared.is_crossed(number);
            (number, *at, if crossed { CROSSED_PORT + number } else { LISTENER_PORT })
        })
    }

    /// True if both ends open this connection.
    pub(super) fn is_crossed(&self, number: u16) -> bool {
        self.simultaneous_open == SimultaneousOpen::Some
            && mix(self.seed.rotate_left(31) ^ u64::from(number)).is_multiple_of(2)
    }

    /// Number of connections that both ends open.
    pub(super) fn crossed(&self) -> usize {
        (0..self.connections).filter(|number| self.is_crossed(*number)).count()
    }

    pub(super) fn slot(&self, number: u16) -> u16 {
        number % self.slots
    }
}

/// SplitMix64's output function: every bit of the result depends on every bit of `seed`.
pub(super) fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

pub(super) const LISTENER_PORT: u16 = 80;
const CROSSED_PORT: u16 = 20_000;
