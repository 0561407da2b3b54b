//! What paths were found to carry (RFC 1191 6.3, RFC 8201 5.2): a bounded memory by destination.

use alloc::collections::BTreeMap;
use core::time::Duration;

use whimbrel_base::{Instant, cold_path};
use whimbrel_wire::Address;

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
}

#[derive(Clone, Copy, Debug)]
struct Path {
    serial: u64,
    mtu: u16,
    since: Instant,
}

impl PathMtus {
    /// The most destinations remembered (100 octets each); at the bound the oldest is forgotten,
    /// and its next connection finds out anew.
    const MOST: usize = 4_096;
    /// RFC 8201 4: "The recommended setting for this timer is twice its minimum value (10
    /// minutes)." Linux' `mtu_expires`.
    const AGE: Duration = Duration::from_secs(600);

    /// The path to `remote` carries no more than `mtu` octets.
    pub(crate) fn note(&mut self, now: Instant, remote: Address, mtu: u16) {
        let known = self.find(now, &remote);
        self.forget(&remote);
        if self.paths.len() >= Self::MOST
            && let Some((_, oldest)) = self.by_age.first_key_value()
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let mtu = known.map_or(mtu, |known| known.min(mtu));
        self.paths.insert(remote, Path { serial, mtu, since: now });
        self.by_age.insert(serial, remote);
    }

    /// What the path to `remote` carries, if it is known to be less than the link.
    #[inline]
    pub(crate) fn find(&self, now: Instant, remote: &Address) -> Option<u16> {
        if self.is_empty() {
            return None;
        }
        cold_path();
        self.find_known(now, remote)
    }

    /// Whether nothing is known of any path.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    #[inline(never)]
    fn find_known(&self, now: Instant, remote: &Address) -> Option<u16> {
        let path = self.paths.get(remote)?;
        (now.since(path.since) < Self::AGE).then_some(path.mtu)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.paths.clear();
        self.by_age.clear();
    }

    /// Forgets those of the destinations that `leads_there` names: their way is another now.
    pub(crate) fn forget_those(&mut self, leads_there: impl Fn(&Address) -> bool) {
        self.paths.retain(|remote, _| !leads_there(remote));
        let paths = &self.paths;
        self.by_age.retain(|_, remote| paths.contains_key(remote));
    }

    fn forget(&mut self, remote: &Address) {
        if let Some(path) = self.paths.remove(remote) {
            self.by_age.remove(&path.serial);
        }
    }
}

#[cfg(test)]
mod tests;
