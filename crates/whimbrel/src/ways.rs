//! A task's view of a shard's routes and path MTUs. With it, sending a datagram that cannot leave fails
//! at once, as on Linux, and not when the shard reaches the datagram.
//!
//! The shard updates it when its own state changes. A datagram sent in between is checked again by the
//! shard.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use whimbrel_stack::ip::Routes;
use whimbrel_stack::{
    DatagramPath, DatagramPathsSeen, InterfaceAddress, Route, Shard, UdpError, judge_destination,
};
use whimbrel_wire::{Address, Endpoint, Family, Ipv4Header, Ipv6Header, UdpHeader};

use crate::fault;

/// Routes, path MTUs and addresses of a shard, shared with tasks.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Changes with each update.
    version: AtomicU64,
    table: Mutex<Table>,
    /// Largest MTU that can be set.
    most_mtu: u16,
}

#[derive(Debug)]
struct Table {
    mtu: u16,
    routes: Routes,
    /// Path MTUs below the link's, with their expiry times.
    paths: BTreeMap<Address, Path>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    mtu: u16,
    until: Instant,
}

/// Last result for a destination, with the version it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgedWay {
    version: u64,
    to: Endpoint,
    /// Largest datagram that leaves unfragmented, in bytes.
    whole: usize,
}

impl Ways {
    /// Copies those of a shard whose MTU can be set to at most `most_mtu`.
    pub(crate) fn new(shard: &Shard, most_mtu: u16) -> Self {
        let table =
            Table { mtu: shard.mtu(), routes: shard.routes().clone(), paths: BTreeMap::new() };
        Self { version: AtomicU64::new(0), table: Mutex::new(table), most_mtu }
    }

    /// Returns the MTU of the link.
    pub(crate) fn mtu(&self) -> u16 {
        self.table().mtu
    }

    /// Returns the largest unfragmented datagram to `to` in bytes, from `judged` if that is still
    /// valid.
    pub(crate) fn judge(&self, judged: &mut Option<JudgedWay>, to: Endpoint) -> io::Result<usize> {
        let version = self.version.load(Ordering::Acquire);
        if let Some(known) = judged.filter(|known| known.version == version && known.to == to) {
            return Ok(known.whole);
        }
        let table = self.table();
        let is_local = [[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()]
            .contains(&to.addr.to_ip());
        judge_destination(&table.routes, is_local, to).map_err(fault::udp)?;
        let (whole, ages) = table.whole(&to.addr);
        // Results that expire are looked up each time.
        *judged = (!ages).then_some(JudgedWay { version, to, whole });
        Ok(whole)
    }

    /// Applies a change that the shard's routes have had.
    fn change_routes(&self, change: impl FnOnce(&mut Routes)) {
        self.change(|table| change(&mut table.routes));
    }

    /// Adds an address of the shard.
    pub(crate) fn add_address(&self, own: &InterfaceAddress) {
        // The shard has checked it.
        self.change_routes(|routes| drop(routes.add_own(own)));
    }

    /// Adds a route of the shard.
    pub(crate) fn add_route(&self, route: Route) {
        self.change_routes(|routes| drop(routes.add(route)));
    }

    /// Removes a route of the shard.
    pub(crate) fn remove_route(&self, route: &Route) {
        self.change_routes(|routes| _ = routes.remove(route));
    }

    /// Removes an address of the shard.
    pub(crate) fn remove_address(&self, own: &InterfaceAddress) {
        self.change_routes(|routes| routes.remove_own(own));
    }

    /// Sets the MTU of the link.
    pub(crate) fn set_mtu(&self, mtu: u16) {
        self.change(|table| table.mtu = mtu);
    }

    /// Fails if the MTU exceeds the largest allowed.
    pub(crate) fn check_mtu(&self, mtu: u16) -> io::Result<()> {
        if mtu > self.most_mtu { Err(fault::mtu_beyond(mtu, self.most_mtu)) } else { Ok(()) }
    }

    /// Copies path MTUs that the shard has learnt.
    pub(crate) fn learn(&self, seen: &mut DatagramPathsSeen, shard: &Shard) {
        let Some(mut news) = shard.datagram_paths(seen) else { return };
        self.change(|table| {
            // Evictions at the shard are not reported: everything is read again before the table is too
            // large.
            if table.paths.len() + news.paths.len() > MOST_PATHS && !news.forgets {
                let all = shard.datagram_paths(&mut DatagramPathsSeen::default());
                news.paths = all.map(|all| all.paths).unwrap_or_default();
                news.forgets = true;
            }
            if news.forgets {
                table.paths.clear();
            }
            let now = Instant::now();
            for DatagramPath { remote, mtu, left } in news.paths {
                let path = table.paths.entry(remote).or_insert(Path { mtu, until: now });
                let known = if path.until > now { path.mtu } else { mtu };
                *path = Path { mtu: known.min(mtu), until: path.until.max(now + left) };
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table();
        change(&mut table);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Locks the table. Nothing panics under the lock.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the largest unfragmented datagram to `remote` in bytes, and true if that expires.
    fn whole(&self, remote: &Address) -> (usize, bool) {
        let headers = UdpHeader::LEN
            + match remote.family() {
                Family::V4 => Ipv4Header::LEN,
                Family::V6 => Ipv6Header::LEN,
            };
        let known = self.paths.get(remote);
        let path = known.filter(|path| path.until > Instant::now()).map(|path| path.mtu);
        let route = self.routes.metrics_to(remote).and_then(|metrics| metrics.mtu);
        let mtu = path.into_iter().chain(route).fold(self.mtu, u16::min);
        (usize::from(mtu).saturating_sub(headers), known.is_some())
    }
}

/// Fails if a socket at `local` cannot send to the family of `to`.
pub(crate) fn check_family(local: std::net::SocketAddr, to: Endpoint) -> io::Result<()> {
    let is_same = local.is_ipv4() == to.addr.is_v4();
    // A socket at `::` has both families.
    if is_same || (local.is_ipv6() && local.ip().is_unspecified()) {
        return Ok(());
    }
    Err(fault::udp(UdpError::Family(to)))
}

/// Limit of path entries: twice the size of the shard's two tables, so that full tables do not cause a
/// complete reread for each report.
const MOST_PATHS: usize = 4 * 4_096;

#[cfg(test)]
mod tests;
