//! The environment of each call: the time, the rules, and where to count.

use whimbrel_base::{Instant, Tick};
use whimbrel_recovery::cc::Algorithms;

use crate::{Counters, Tunables};

/// The time, the rules and the counters of one shard.
#[derive(Debug)]
pub struct Env {
    /// The time of the burst being processed; one reading serves all its segments.
    pub now: Instant,
    /// The millisecond it lies in: several of each segment's steps note it, and it takes a division.
    pub tick: Tick,
    /// The rules in force.
    pub tunables: Tunables,
    /// Counts of events, by name.
    pub counters: Counters,
    /// The congestion controls that connections can have.
    pub algorithms: Algorithms,
}
