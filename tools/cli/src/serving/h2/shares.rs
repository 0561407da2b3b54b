//! The memory of all connections together, by source: where it is too much, the connection that holds most of the
//! source that holds most gives way. So neither many connections nor large ones of one client close another's.

use std::collections::{BTreeMap, BTreeSet};

use whimbrel_apps::source::Source;

/// Bytes of each connection and each source. Each change costs a few look-ups in trees of them.
#[derive(Default)]
pub(super) struct Shares {
    held: u64,
    of_sources: BTreeMap<Source, u64>,
    sources: BTreeSet<(u64, Source)>,
    connections: BTreeSet<(Source, u64, u32)>,
}

impl Shares {
    /// Bytes that all hold.
    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    /// The connection at this place holds `after` bytes, no longer `before`; one that holds none is gone.
    pub(super) fn change(&mut self, source: Source, place: u32, before: u64, after: u64) {
        if before == after {
            return;
        }
        self.held = self.held + after - before;
        let all = self.of_sources.remove(&source).unwrap_or(0);
        self.sources.remove(&(all, source));
        let all = all + after - before;
        if all > 0 {
            self.of_sources.insert(source, all);
            self.sources.insert((all, source));
        }
        self.connections.remove(&(source, before, place));
        if after > 0 {
            self.connections.insert((source, after, place));
        }
    }

    /// The place of the connection that gives way next.
    pub(super) fn greatest(&self) -> Option<u32> {
        let (_, source) = *self.sources.last()?;
        let of_source = (source, 0, 0)..=(source, u64::MAX, u32::MAX);
        self.connections.range(of_source).next_back().map(|(_, _, place)| *place)
    }
}

#[cfg(test)]
#[path = "shares/tests.rs"]
mod tests;
