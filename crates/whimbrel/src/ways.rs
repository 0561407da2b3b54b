//! What a shard knows of its ways out, for tasks: so that a datagram that cannot be sent fails in the call
//! that sends it, as on Linux, and not when the shard comes to it.
//!
//! It is changed where the shard is, with it; between the two a datagram may slip through, which the shard
//! judges again.

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

/// The ways out of a shard.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Differs after each change.
    version: AtomicU64,
    table: Mutex<Table>,
    /// The most that its MTU can be set to.
    most_mtu: u16,
}

#[derive(Debug)]
struct Table {
    mtu: u16,
    routes: Routes,
    /// Paths that are narrower than the link, and until when that is believed.
    paths: BTreeMap<Address, Path>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    mtu: u16,
    until: Instant,
}

/// What was last found of a destination, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgedWay {
    version: u64,
    to: Endpoint,
    /// The bytes that a datagram has which leaves whole.
    whole: usize,
}

impl Ways {
    /// Those of a shard, whose MTU can be set to `most_mtu` at most.
    pub(crate) fn new(shard: &Shard, most_mtu: u16) -> Self {
        let table =
            Table { mtu: shard.mtu(), routes: shard.routes().clone(), paths: BTreeMap::new() };
        Self { version: AtomicU64::new(0), table: Mutex::new(table), most_mtu }
    }

    /// The MTU of its link.
    pub(crate) fn mtu(&self) -> u16 {
        self.table().mtu
    }

    /// The bytes of a datagram to `to` that leaves whole, by what was found before if that holds.
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
        // What becomes old by itself is looked up each time.
        *judged = (!ages).then_some(JudgedWay { version, to, whole });
        Ok(whole)
    }

    /// Changes the routes as the shard's were.
    fn change_routes(&self, change: impl FnOnce(&mut Routes)) {
        self.change(|table| change(&mut table.routes));
    }

    /// The shard has another address.
    pub(crate) fn add_address(&self, own: &InterfaceAddress) {
        // The shard has judged it.
        self.change_routes(|routes| drop(routes.add_own(own)));
    }

    /// The shard has another route.
    pub(crate) fn add_route(&self, route: Route) {
        self.change_routes(|routes| drop(routes.add(route)));
    }

    /// The shard has a route no more.
    pub(crate) fn remove_route(&self, route: &Route) {
        self.change_routes(|routes| _ = routes.remove(route));
    }

    /// The shard has an address no more.
    pub(crate) fn remove_address(&self, own: &InterfaceAddress) {
        self.change_routes(|routes| routes.remove_own(own));
    }

    /// The link has another MTU.
    pub(crate) fn set_mtu(&self, mtu: u16) {
        self.change(|table| table.mtu = mtu);
    }

    /// Checks that the MTU can be so much.
    pub(crate) fn check_mtu(&self, mtu: u16) -> io::Result<()> {
        if mtu > self.most_mtu { Err(fault::mtu_beyond(mtu, self.most_mtu)) } else { Ok(()) }
    }

    /// Learns what the shard heard of paths.
    pub(crate) fn learn(&self, seen: &mut DatagramPathsSeen, shard: &Shard) {
        let Some(mut news) = shard.datagram_paths(seen) else { return };
        self.change(|table| {
            // What gave way in the shard is not told: all are read anew before they are too many.
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

    /// Nothing panics under the lock.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The bytes of a datagram to `remote` that leaves whole, and whether that changes by itself.
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

/// The family that a socket at this address does not speak.
pub(crate) fn check_family(local: std::net::SocketAddr, to: Endpoint) -> io::Result<()> {
    let is_same = local.is_ipv4() == to.addr.is_v4();
    // At `::` it speaks both.
    if is_same || (local.is_ipv6() && local.ip().is_unspecified()) {
        return Ok(());
    }
    Err(fault::udp(UdpError::Family(to)))
}

/// The most paths that are kept: twice as many as the two tables of a shard have, so that where these are full
/// not each report has all of them read anew.
const MOST_PATHS: usize = 4 * 4_096;

#[cfg(test)]
mod tests;
