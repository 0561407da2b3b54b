//! MTUs of paths (RFC 1191 6.3, RFC 8201 5.2): a bounded memory by destination.

use alloc::collections::BTreeMap;
use core::time::Duration;

use whimbrel_base::packet::LEAST_PATH_MTU_V4;
use whimbrel_base::{Instant, cold_path};
use whimbrel_wire::Address;

use super::IpLayer;

/// Path MTUs below that of the link, by destination.
///
/// An entry ages, so that a path that became wider is used as such. RFC 1191 6.3 sweeps its table
/// once a minute; here an entry's age is looked at when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    paths: BTreeMap<Address, Path>,
    /// Destinations in the order in which they were last heard of.
    by_age: BTreeMap<u64, Address>,
    next_serial: u64,
    /// Number of paths that carry less than is believed of one.
    narrow: usize,
    /// Changes with what is forgotten.
    forgotten: u64,
}

/// The MTU of a path.
#[derive(Clone, Copy, Debug)]
struct Path {
    serial: u64,
    /// As routers said it.
    said: u16,
    since: Instant,
}

impl Path {
    /// True if it carries less than is believed of a path: packets towards it may be fragmented.
    fn is_narrow(&self, remote: &Address) -> bool {
        remote.is_v4() && self.said < LEAST_PATH_MTU_V4
    }

    fn is_aged(&self, now: Instant) -> bool {
        now.since(self.since) >= PathMtus::AGE
    }
}

/// The position up to which a table of paths was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PathsSeen {
    next_serial: u64,
    /// Differs once anything was forgotten that holds no more.
    pub(crate) forgotten: u64,
}

impl PathMtus {
    /// The most destinations remembered (100 bytes each); at the bound the oldest is forgotten,
    /// and its next connection finds out anew.
    const MOST: usize = 4_096;
    /// RFC 8201 4: "The recommended setting for this timer is twice its minimum value (10
    /// minutes)." Linux' `mtu_expires`.
    pub(crate) const AGE: Duration = Duration::from_secs(600);

    /// The path to `remote` carries no more than `said` bytes.
    pub(crate) fn note(&mut self, now: Instant, remote: Address, said: u16) {
        let known = self.paths.get(&remote).filter(|path| !path.is_aged(now)).map(|path| path.said);
        self.forget(&remote);
        if self.paths.len() >= Self::MOST
            && let Some((_, oldest)) = self.by_age.first_key_value()
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let said = known.map_or(said, |known| known.min(said));
        let path = Path { serial, said, since: now };
        self.narrow += usize::from(path.is_narrow(&remote));
        self.paths.insert(remote, path);
        self.by_age.insert(serial, remote);
    }

    /// The path to `remote` carries `mtu` bytes, whatever was known of it.
    pub(crate) fn set(&mut self, now: Instant, remote: Address, mtu: u16) {
        self.forget(&remote);
        self.note(now, remote, mtu);
    }

    /// Returns the MTU of the path to `remote`, if it is known to be less than the link's; of IPv4
    /// [`LEAST_PATH_MTU_V4`] at least.
    #[inline]
    pub(crate) fn find(&self, now: Instant, remote: &Address) -> Option<u16> {
        let least = if remote.is_v4() { LEAST_PATH_MTU_V4 } else { 0 };
        self.said_of(now, remote).map(|said| said.max(least))
    }

    /// Returns the MTU that routers reported, however little it is.
    #[inline]
    pub(crate) fn said_of(&self, now: Instant, remote: &Address) -> Option<u16> {
        if self.is_empty() {
            return None;
        }
        cold_path();
        self.find_known(now, remote)
    }

    /// True if nothing is known of any path.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    #[inline(never)]
    fn find_known(&self, now: Instant, remote: &Address) -> Option<u16> {
        self.paths.get(remote).filter(|path| !path.is_aged(now)).map(|path| path.said)
    }

    /// True if packets to `remote` may be fragmented, as its path carries less than is believed of one.
    pub(crate) fn has_fragments(&self, now: Instant, remote: &Address) -> bool {
        self.has_narrow()
            && self
                .paths
                .get(remote)
                .is_some_and(|path| path.is_narrow(remote) && !path.is_aged(now))
    }

    /// True if any path carries less than is believed of one.
    #[inline]
    pub(crate) fn has_narrow(&self) -> bool {
        self.narrow > 0
    }

    /// Returns the position up to which this table was filled.
    pub(crate) fn seen(&self) -> PathsSeen {
        PathsSeen { next_serial: self.next_serial, forgotten: self.forgotten }
    }

    /// Returns what was noted since `seen` and is believed still: destinations, what their paths carry, and since when
    /// that is known.
    pub(crate) fn noted_since(
        &self,
        seen: PathsSeen,
    ) -> impl Iterator<Item = (Address, u16, Instant)> {
        let noted = self.by_age.range(seen.next_serial..);
        noted.filter_map(|(_, remote)| {
            let since = self.paths.get(remote)?.since;
            Some((*remote, self.find(since, remote)?, since))
        })
    }

    /// Forgets what is too old to be true, from the oldest on.
    pub(crate) fn sweep(&mut self, now: Instant) {
        while let Some((_, oldest)) = self.by_age.first_key_value()
            && self.paths.get(oldest).is_none_or(|path| path.is_aged(now))
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.forget_those(|_| true);
    }

    /// Forgets those of the destinations that `leads_there` names: their way is another now.
    pub(crate) fn forget_those(&mut self, leads_there: impl Fn(&Address) -> bool) {
        self.paths.retain(|remote, _| !leads_there(remote));
        let paths = &self.paths;
        self.by_age.retain(|_, remote| paths.contains_key(remote));
        self.narrow = paths.iter().filter(|(remote, path)| path.is_narrow(remote)).count();
        self.forgotten += 1;
    }

    pub(crate) fn forget(&mut self, remote: &Address) {
        if let Some(path) = self.paths.remove(remote) {
            self.by_age.remove(&path.serial);
            self.narrow -= usize::from(path.is_narrow(remote));
        }
    }
}

impl IpLayer {
    /// True if anything is known of paths that segments are to know.
    #[inline]
    pub(crate) fn knows_paths(&self) -> bool {
        // One comparison: a branch for each would cost each connection.
        self.path_mtus.paths.len() | self.probed_mtus.paths.len() != 0
    }

    /// The largest packet that the path to `remote` carries, as segments are to know it, if it is less than the
    /// link's: by reports, and by probes of other connections, whichever is less.
    #[inline]
    pub(crate) fn segment_mtu(&self, now: Instant, remote: &Address) -> Option<u16> {
        if !self.knows_paths() {
            return None;
        }
        cold_path();
        let (said, probed) =
            (self.path_mtus.find(now, remote), self.probed_mtus.said_of(now, remote));
        [said, probed].into_iter().flatten().min()
    }

    /// The largest packet that the path to `remote` carries, as datagrams are to know it: what was
    /// found out by segments holds for them, and not the other way round. A forged error about a
    /// segment has to quote what is in flight (RFC 5927); of a datagram that is not remembered.
    #[inline]
    pub(crate) fn datagram_mtu(&self, now: Instant, remote: &Address) -> u16 {
        let knows_none = self.path_mtus.is_empty() && self.datagram_mtus.is_empty();
        if knows_none && !self.routes.has_metrics() {
            return self.capabilities.mtu;
        }
        self.known_datagram_mtu(now, remote)
    }

    #[inline(never)]
    fn known_datagram_mtu(&self, now: Instant, remote: &Address) -> u16 {
        let known = [&self.path_mtus, &self.datagram_mtus].map(|paths| paths.find(now, remote));
        let route = self.routes.metrics_to(remote).and_then(|metrics| metrics.mtu);
        known.into_iter().flatten().chain(route).fold(self.capabilities.mtu, u16::min)
    }

    /// True if the path to `remote` carries less than is believed of one, as datagrams are to know it.
    #[inline]
    pub(super) fn is_narrow_to_datagrams(&self, now: Instant, remote: &Address) -> bool {
        // One comparison, as nearly no path does.
        self.path_mtus.narrow | self.datagram_mtus.narrow != 0 && self.is_narrow_path(now, remote)
    }

    #[inline(never)]
    fn is_narrow_path(&self, now: Instant, remote: &Address) -> bool {
        [&self.path_mtus, &self.datagram_mtus].iter().any(|paths| paths.has_fragments(now, remote))
    }
}

#[cfg(test)]
mod tests;
