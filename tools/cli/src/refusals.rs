//! Frames and segments that stacks refused, by reason.

use std::fmt;
use std::ops::AddAssign;

use whimbrel_stack::Shard;

use crate::quantity::thousands;

/// Drops of a stack's shards, by reason: `dropped: 31 NO_SOCKET, 4 TCP_CSUM`.
pub(crate) fn refusals<'s>(shards: impl IntoIterator<Item = &'s Shard>) -> String {
    let mut all = Refusals::default();
    shards.into_iter().for_each(|shard| all += &Refusals::of(shard));
    if all.0.is_empty() { "none dropped".into() } else { format!("dropped: {all}") }
}

/// Number of dropped frames and segments, by reason; only reasons that occurred.
#[derive(Clone, Default, Debug)]
pub(crate) struct Refusals(Vec<(&'static str, u64)>);

impl Refusals {
    /// Drops of a shard so far, by reason.
    pub(crate) fn of(shard: &Shard) -> Self {
        let segments = shard.counters().drops().map(|(reason, count)| (reason.name(), count));
        let packets = shard.ip_counters().drops().map(|(reason, count)| (reason.name(), count));
        Self(segments.chain(packets).filter(|(_, count)| *count > 0).collect())
    }

    /// Counts one more for this reason.
    pub(crate) fn count(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    /// Each reason with its count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }

    fn add(&mut self, name: &'static str, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((name, count)),
        }
    }
}

impl AddAssign<&Self> for Refusals {
    fn add_assign(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, count)| self.add(name, *count));
    }
}

/// `31 NO_SOCKET, 4 TCP_CSUM`, or `none`.
impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.iter().map(|(name, count)| format!("{} {name}", thousands(*count)));
        let all = all.collect::<Vec<_>>().join(", ");
        f.write_str(if all.is_empty() { "none" } else { &all })
    }
}
