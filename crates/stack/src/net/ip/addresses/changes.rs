//! Addresses that come and go while the host runs.
//!
//! Records have the number of an address, so numbers do not move: one that was removed leaves a hole, which
//! the next that is added fills. The caller that removes one ensures that nothing has its number still.

use alloc::collections::BTreeSet;

use whimbrel_wire::Address;

use super::{Addresses, FirstV4, Network, check_address};
use crate::InterfaceAddress;
use crate::error::ConfigError;

impl Addresses {
    /// Returns the number of addresses this host has on its networks.
    pub fn len(&self) -> usize {
        self.by_index.len() - self.holes.len()
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the most it may have: fewer than [`Addresses::MOST`] where numbers behind those that it began with
    /// are those of others.
    pub(crate) fn most(&self) -> usize {
        self.others.as_ref().map_or(Self::MOST, |others| others.first().into())
    }

    /// True if numbers were left by addresses that are no more.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Adds one; returns its number: the least that an address left and that is not `in_use` still, or a
    /// new one.
    pub(crate) fn add(
        &mut self,
        address: InterfaceAddress,
        in_use: &BTreeSet<u16>,
    ) -> Result<u16, ConfigError> {
        check_address(&address)?;
        if self.is_local(&address.addr) {
            return Err(ConfigError::DuplicateAddress(address.addr));
        }
        let (next, most) = (self.by_index.len(), self.most());
        let network = Network::of(&address);
        let index = match self.holes.difference(in_use).next().copied() {
            Some(hole) => {
                self.holes.remove(&hole);
                self.put(hole, address, network);
                hole
            }
            None => {
                let beyond = ConfigError::AddressCount { count: next + 1, most };
                let index = u16::try_from(next).ok().filter(|_| next < most).ok_or(beyond)?;
                self.by_index.push(address);
                self.networks.push(network);
                index
            }
        };
        self.index_of.insert(address.addr, index);
        self.first_v4 = FirstV4::of(&self.by_index);
        if !self.links.contains(&network) {
            self.links.push(network);
        }
        Ok(index)
    }

    /// Removes one; returns what it was, if it was this host's.
    pub(crate) fn remove(&mut self, addr: &Address) -> Option<InterfaceAddress> {
        let index = self.index_of.remove(addr)?;
        let place = usize::from(index);
        let (removed, network) = (*self.by_index.get(place)?, *self.networks.get(place)?);
        self.put(index, HOLE, Network::of(&HOLE));
        self.holes.insert(index);
        if !self.numbered().any(|(_, own)| Network::of(own) == network) {
            self.links.retain(|link| *link != network);
        }
        self.pad();
        self.first_v4 = FirstV4::of(&self.by_index);
        Some(removed)
    }

    fn put(&mut self, index: u16, address: InterfaceAddress, network: Network) {
        let place = usize::from(index);
        if let (Some(own), Some(its)) = (self.by_index.get_mut(place), self.networks.get_mut(place))
        {
            (*own, *its) = (address, network);
        }
    }

    /// With holes, the table has so many places that it is looked up by its map, which knows of none.
    fn pad(&mut self) {
        while self.by_index.len() < LEAST_WITH_HOLES {
            self.holes.insert(self.by_index.len() as u16);
            self.by_index.push(HOLE);
            self.networks.push(Network::of(&HOLE));
        }
    }
}

/// In the place of an address that was removed; nothing compares with it.
const HOLE: InterfaceAddress =
    InterfaceAddress { addr: Address::from_bytes([0; 16]), prefix_len: 128 };
/// Two places or fewer are compared one by one.
const LEAST_WITH_HOLES: usize = 3;

#[cfg(test)]
mod tests;
