//! What links and paths carry: the MTU of a link that changes, and path MTUs for others to read.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::Address;

use super::{ConfigError, Shard, check_mtu};
use crate::ip::{FlowKey, PathMtus, PathsSeen};

/// The MTU of the link.
impl Shard {
    /// From now on the link carries IP packets of up to `mtu` octets, and new connections announce what fits.
    /// If that is less than before, what connections have in flight and does not fit is cut anew and sent
    /// again, as no congestion lost it; segments of connections that are there never become larger. It walks
    /// all connections. A device that cuts super-segments has to take them still.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Mtu`]: below 68, or below 1,280 where this host has an address of IPv6.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), ConfigError> {
        check_mtu(mtu, self.net.ip.addresses.iter())?;
        let capabilities = &mut self.net.ip.capabilities;
        let former = core::mem::replace(&mut capabilities.mtu, mtu);
        let cuts = capabilities.max_super > u32::from(former);
        let least = u32::from(mtu);
        capabilities.max_super = if cuts { capabilities.max_super.max(least) } else { least };
        self.tcp.cutting.set_sizes(self.net.ip.max_text(), mtu);
        if mtu < former {
            self.narrow_connections(mtu);
        }
        Ok(())
    }

    fn narrow_connections(&mut self, mtu: u16) {
        let mut next = 0;
        while let Some(found) = self.tcp.records.connections.0.first_from(next) {
            let index = match found {
                Ok((index, _)) => index,
                Err(on) => {
                    next = on;
                    continue;
                }
            };
            next = index + 1;
            if let Some((connection, cx)) = self.connection(index) {
                connection.on_link_mtu(cx, mtu);
                let (key, mss) = (FlowKey::of(connection), connection.mss());
                // What was being cut is in flight: it goes again with the rest.
                self.tcp.cutting.forget_larger(&key, mss);
                self.after_change(index);
            }
        }
    }
}

/// What a path carries, as datagrams are to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramPath {
    /// The address that the path leads to.
    pub remote: Address,
    /// The largest IP packet, octets.
    pub mtu: u16,
    /// For how long that is believed from now on.
    pub left: Duration,
}

/// How far the table of paths was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DatagramPathsSeen([PathsSeen; 2]);

/// News of the paths of datagrams, from [`Shard::datagram_paths`].
#[derive(Debug)]
pub struct DatagramPathNews {
    /// What was read before is forgotten, and `paths` are all that there are.
    pub forgets: bool,
    /// Paths that were heard of since, in no order.
    pub paths: Vec<DatagramPath>,
}

/// What paths carry, for callers that send datagrams from other threads.
impl Shard {
    /// What was heard of the paths of datagrams since `seen`, which is brought up to date; `None`: nothing.
    #[inline]
    pub fn datagram_paths(&self, seen: &mut DatagramPathsSeen) -> Option<DatagramPathNews> {
        let now = DatagramPathsSeen(self.datagram_tables().map(PathMtus::seen));
        if now == *seen { None } else { Some(self.read_datagram_paths(seen, now)) }
    }

    fn datagram_tables(&self) -> [&PathMtus; 2] {
        [&self.net.ip.path_mtus, &self.net.ip.datagram_mtus]
    }

    #[cold]
    #[inline(never)]
    fn read_datagram_paths(
        &self,
        seen: &mut DatagramPathsSeen,
        now: DatagramPathsSeen,
    ) -> DatagramPathNews {
        let forgets = now.0.iter().zip(&seen.0).any(|(now, seen)| now.forgotten != seen.forgotten);
        let from = if forgets { DatagramPathsSeen::default() } else { *seen };
        *seen = now;
        let noted = self.datagram_tables().into_iter().zip(from.0);
        let noted = noted.flat_map(|(table, from)| table.noted_since(from));
        let path = |(remote, mtu, since): (Address, u16, Instant)| {
            let left = PathMtus::AGE.saturating_sub(self.cx.now.since(since));
            (!left.is_zero()).then_some(DatagramPath { remote, mtu, left })
        };
        DatagramPathNews { forgets, paths: noted.filter_map(path).collect() }
    }
}
