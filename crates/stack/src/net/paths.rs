//! MTUs of links and paths: the MTU of a link that changes, and path MTUs for others to read.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::Address;

use super::Net;
use crate::InterfaceAddress;
use crate::error::ConfigError;
use crate::ip::{PathMtus, PathsSeen};

/// The MTU of the link, and of paths.
impl Net {
    /// The largest IP packet that the link carries, bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.ip.capabilities.mtu
    }

    /// From now on the link carries IP packets of up to `mtu` bytes. Returns what it carried before.
    pub(crate) fn set_mtu(&mut self, mtu: u16) -> Result<u16, ConfigError> {
        check_mtu(mtu, self.ip.addresses.iter())?;
        let capabilities = &mut self.ip.capabilities;
        let former = core::mem::replace(&mut capabilities.mtu, mtu);
        let cuts = capabilities.max_super > u32::from(former);
        let least = u32::from(mtu);
        capabilities.max_super = if cuts { capabilities.max_super.max(least) } else { least };
        Ok(former)
    }

    /// The largest IP packet that the path to `remote` carries, if that was found out by segments.
    pub(crate) fn path_mtu(&self, now: Instant, remote: &Address) -> Option<u16> {
        self.ip.segment_mtu(now, remote)
    }

    /// Forgets the paths to these hosts.
    pub(crate) fn forget_paths(&mut self, are_meant: impl Fn(&Address) -> bool) {
        self.ip.path_mtus.forget_those(&are_meant);
        self.ip.probed_mtus.forget_those(&are_meant);
        self.ip.datagram_mtus.forget_those(&are_meant);
        self.ip.reply_mtus.forget_those(&are_meant);
    }

    /// Forgets what every path was found to carry.
    pub(crate) fn purge_paths(&mut self) {
        self.ip.path_mtus.clear();
        self.ip.probed_mtus.clear();
        self.ip.datagram_mtus.clear();
        self.ip.reply_mtus.clear();
    }
}

/// The MTU of a path, as datagrams are to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramPath {
    /// The address that the path leads to.
    pub remote: Address,
    /// The largest IP packet, bytes.
    pub mtu: u16,
    /// For how long that is believed from now on.
    pub left: Duration,
}

/// The position up to which the table of paths was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DatagramPathsSeen([PathsSeen; 2]);

/// News of the paths of datagrams, from [`Shard::datagram_paths`](crate::Shard::datagram_paths).
#[derive(Debug)]
pub struct DatagramPathNews {
    /// True if what was read before is forgotten, and `paths` are all that there are.
    pub forgets: bool,
    /// Paths that were heard of since, in no order.
    pub paths: Vec<DatagramPath>,
}

/// MTUs of paths, for callers that send datagrams from other threads.
impl Net {
    /// News of the paths of datagrams since `seen`, which is brought up to date.
    #[inline]
    pub(crate) fn datagram_paths(
        &self,
        at: Instant,
        seen: &mut DatagramPathsSeen,
    ) -> Option<DatagramPathNews> {
        let now = DatagramPathsSeen(self.datagram_tables().map(PathMtus::seen));
        if now == *seen { None } else { Some(self.read_datagram_paths(at, seen, now)) }
    }

    fn datagram_tables(&self) -> [&PathMtus; 2] {
        [&self.ip.path_mtus, &self.ip.datagram_mtus]
    }

    #[cold]
    #[inline(never)]
    fn read_datagram_paths(
        &self,
        at: Instant,
        seen: &mut DatagramPathsSeen,
        now: DatagramPathsSeen,
    ) -> DatagramPathNews {
        let forgets = now.0.iter().zip(&seen.0).any(|(now, seen)| now.forgotten != seen.forgotten);
        let from = if forgets { DatagramPathsSeen::default() } else { *seen };
        *seen = now;
        let noted = self.datagram_tables().into_iter().zip(from.0);
        let noted = noted.flat_map(|(table, from)| table.noted_since(from));
        let path = |(remote, mtu, since): (Address, u16, Instant)| {
            let left = PathMtus::AGE.saturating_sub(at.since(since));
            (!left.is_zero()).then_some(DatagramPath { remote, mtu, left })
        };
        DatagramPathNews { forgets, paths: noted.filter_map(path).collect() }
    }
}

/// Checks that a link carries what every link must, where a host has these addresses.
pub(crate) fn check_mtu<'a>(
    mtu: u16,
    mut addresses: impl Iterator<Item = &'a InterfaceAddress>,
) -> Result<(), ConfigError> {
    let least = if addresses.all(|own| own.addr.is_v4()) { 68 } else { 1_280 };
    if mtu < least { Err(ConfigError::Mtu { mtu, least }) } else { Ok(()) }
}
