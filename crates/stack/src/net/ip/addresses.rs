//! This host's addresses, by value and by the small index that records keep.

mod changes;
mod foreign;
mod loopback;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use whimbrel_wire::{Address, Family};

use crate::InterfaceAddress;
use crate::error::ConfigError;

use self::foreign::ForeignAddresses;

pub use whimbrel_tcp::table::PathClass;

/// This host's addresses. Records hold an index of two bytes instead of sixteen.
#[derive(Debug)]
pub struct Addresses {
    by_index: Vec<InterfaceAddress>,
    /// The numbers that are compared first with the addresses of an IPv4 packet.
    first_v4: FirstV4,
    /// The network of each.
    networks: Vec<Network>,
    /// Each network once: a host of many addresses has few.
    links: Vec<Network>,
    index_of: BTreeMap<Address, u16>,
    /// Places of addresses that were removed. With any, the table has three places at least
    /// ([`Addresses::index_of`]).
    holes: BTreeSet<u16>,
    /// Those that this host speaks for without having them, if it takes any.
    others: Option<Box<ForeignAddresses>>,
}

impl Addresses {
    /// A host may have this many: two numbers are those of the loopback addresses.
    pub const MOST: usize = FIRST_LOOPBACK as usize;

    /// The table of `addresses`, in their order.
    pub fn new(addresses: &[InterfaceAddress]) -> Result<Self, ConfigError> {
        if addresses.is_empty() || addresses.len() > Self::MOST {
            return Err(ConfigError::AddressCount { count: addresses.len(), most: Self::MOST });
        }
        let mut index_of = BTreeMap::new();
        for (index, address) in (0..).zip(addresses) {
            check_address(address)?;
            if index_of.insert(address.addr, index).is_some() {
                return Err(ConfigError::DuplicateAddress(address.addr));
            }
        }
        let networks: Vec<_> = addresses.iter().map(Network::of).collect();
        let mut links = networks.clone();
        links.sort_unstable_by_key(|link| (link.prefix, link.mask));
        links.dedup_by_key(|link| (link.prefix, link.mask));
        let (by_index, holes) = (addresses.to_vec(), BTreeSet::new());
        let first_v4 = FirstV4::of(&by_index);
        Ok(Self { by_index, first_v4, networks, links, index_of, holes, others: None })
    }

    /// The index of `addr`, if it is this host's on its networks. The loopback addresses are not: no packet
    /// that a wire brings may have them.
    #[inline]
    pub fn index_of(&self, addr: &Address) -> Option<u16> {
        // Most hosts have two addresses at most; a map of a million entries would not beat this.
        match self.by_index.as_slice() {
            [one] => (one.addr == *addr).then_some(0),
            [one, two] => {
                if one.addr == *addr {
                    Some(0)
                } else {
                    (two.addr == *addr).then_some(1)
                }
            }
            _ => self.index_among_many(*addr),
        }
    }

    /// Returns the index of an IPv4 address: as it stands in a packet, it need not be put together to be compared.
    #[inline]
    pub(crate) fn index_of_v4(&self, bytes: [u8; 4]) -> Option<u16> {
        let FirstV4 { numbers: [one, two], are_all } = self.first_v4;
        let number = FirstV4::number(bytes);
        if number == one {
            Some(0)
        } else if are_all {
            (number == two).then_some(1)
        } else {
            self.index_among_many(Address::from_v4_bytes(bytes))
        }
    }

    /// True if `addr` is this host's: one on its networks, or a loopback address.
    #[inline]
    pub fn is_local(&self, addr: &Address) -> bool {
        self.local_index_of(addr).is_some()
    }

    /// The index of `addr`, if it is this host's in this sense.
    #[inline]
    pub fn local_index_of(&self, addr: &Address) -> Option<u16> {
        self.index_of(addr).or_else(|| loopback::index_of(addr))
    }

    /// The index of `source`, if it is this host's and packets to `to` can come from there.
    #[inline(never)]
    pub(crate) fn source_index_of(&self, source: &Address, to: &Address) -> Option<u16> {
        // RFC 1122 3.2.1.3 (g): "Addresses of this form MUST NOT appear outside a host."
        let may_speak = !Self::is_loopback(source) || self.is_local(to);
        self.local_index_of(source).filter(|_| may_speak && source.family() == to.family())
    }

    /// True if `addr` is one of the two loopback addresses that every host has.
    pub fn is_loopback(addr: &Address) -> bool {
        loopback::index_of(addr).is_some()
    }

    /// The loopback address with this index.
    pub fn loopback(index: u16) -> Option<Address> {
        loopback::get(index).copied()
    }

    #[inline(never)]
    fn index_among_many(&self, addr: Address) -> Option<u16> {
        self.index_of.get(&addr).copied()
    }

    /// The address with this index.
    #[inline]
    pub fn get(&self, index: u16) -> Option<&Address> {
        match self.by_index.get(usize::from(index)) {
            Some(own) => Some(&own.addr),
            None => self.get_other(index),
        }
    }

    /// The address of this host itself with this index.
    #[inline]
    pub(crate) fn local(&self, index: u16) -> Option<&Address> {
        match self.by_index.get(usize::from(index)) {
            Some(own) => Some(&own.addr),
            None => loopback::get(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_other(&self, index: u16) -> Option<&Address> {
        loopback::get(index).or_else(|| self.others.as_ref()?.get(index))
    }

    /// Every address with its network.
    pub fn iter(&self) -> impl Iterator<Item = &InterfaceAddress> {
        self.numbered().map(|(_, own)| own)
    }

    /// Every address with its network and its index.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u16, &InterfaceAddress)> {
        (0..).zip(&self.by_index).filter(|(index, _)| !self.holes.contains(index))
    }

    /// Returns the class of the path to `remote`: how long a segment of its can still be under way.
    pub fn path_class(&self, remote: &Address) -> PathClass {
        if self.is_local(remote) {
            PathClass::Loopback
        } else if self.links.iter().any(|link| link.contains(remote)) {
            PathClass::Link
        } else {
            PathClass::Remote
        }
    }

    /// The address to speak from to `remote`: one of its network if there is any, else the first
    /// of its family that is not confined to a link (RFC 6724 5, rules 1, 2 and 8 for a host
    /// with one interface). To itself a host speaks from the address that it speaks to.
    #[inline(never)]
    pub fn source_for(&self, remote: &Address) -> Option<u16> {
        if let Some(itself) = self.local_index_of(remote) {
            return Some(itself);
        }
        let family = remote.family();
        let all = (0u16..).zip(self.by_index.iter().zip(&self.networks));
        let candidates = all
            .filter(|(index, (own, _))| own.addr.family() == family && !self.holes.contains(index));
        candidates
            .max_by_key(|(index, (own, network))| {
                let near = network.contains(remote);
                let reaches = !is_link_local(&own.addr) || is_link_local(remote);
                (reaches, near, core::cmp::Reverse(*index))
            })
            .map(|(index, _)| index)
    }
}

/// Addresses of others, which have a number while something refers to them.
impl Addresses {
    /// From now on there are such.
    pub(crate) fn take_any(&mut self) {
        if self.others.is_none() {
            // With all numbers taken there is none for others; and some remain for addresses to come.
            let own = u16::try_from(self.by_index.len()).unwrap_or(FIRST_LOOPBACK);
            let first = own.saturating_add(SPARE).min(FIRST_LOOPBACK);
            self.others = Some(Box::new(ForeignAddresses::new(first)));
        }
    }

    /// True if there may be such.
    #[inline]
    pub(crate) fn accepts_any_address(&self) -> bool {
        self.others.is_some()
    }

    /// Returns their number.
    pub fn others(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.len())
    }

    /// True if this is the index of an address that is not this host's.
    #[inline]
    pub(crate) fn is_other(&self, index: u16) -> bool {
        usize::from(index) >= self.by_index.len()
    }

    /// The index of `addr`, be it this host's or another's that it has a number for.
    pub(crate) fn index_of_any(&self, addr: &Address) -> Option<u16> {
        self.local_index_of(addr).or_else(|| self.index_of_other(addr))
    }

    /// The number of another's address, if it has one.
    pub(crate) fn index_of_other(&self, addr: &Address) -> Option<u16> {
        self.others.as_ref()?.index_of(addr)
    }

    /// The index of another's address, which it gets if it has none; `None` if all are taken. Until the
    /// next sweep, or while a record holds it.
    pub(crate) fn intern(&mut self, addr: Address) -> Option<u16> {
        self.others.as_mut()?.intern(addr)
    }

    /// Returns the number of further addresses that can have one.
    pub(crate) fn spare(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.spare())
    }

    /// A record, or an answer, has this index.
    #[inline]
    pub(crate) fn hold(&mut self, index: u16) {
        if self.is_other(index) {
            self.hold_other(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn hold_other(&mut self, index: u16) {
        if let Some(others) = &mut self.others {
            others.hold(index);
        }
    }

    /// It has it no more.
    #[inline]
    pub(crate) fn release(&mut self, index: u16) {
        if self.is_other(index) {
            self.release_other(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn release_other(&mut self, index: u16) {
        if let Some(others) = &mut self.others {
            others.release(index);
        }
    }

    /// Frees numbers without a holder: between two bursts, when no segment is under way.
    #[inline]
    pub(crate) fn sweep(&mut self) {
        if self.others.is_some() {
            self.sweep_others();
        }
    }

    #[cold]
    #[inline(never)]
    fn sweep_others(&mut self) {
        if let Some(others) = &mut self.others {
            others.sweep();
        }
    }
}

/// The first two addresses, as they stand in packets of IPv4: most hosts have no more.
#[derive(Clone, Copy, Debug)]
struct FirstV4 {
    /// The bytes of each as a number; [`FirstV4::NONE`] for an address of IPv6, or where there is none.
    numbers: [u64; 2],
    /// There are no others.
    are_all: bool,
}

impl FirstV4 {
    /// No four bytes come to that.
    const NONE: u64 = u64::MAX;

    fn of(addresses: &[InterfaceAddress]) -> Self {
        let number = |own: &InterfaceAddress| match own.addr.family() {
            Family::V4 => Self::number(own.addr.v4_bytes()),
            Family::V6 => Self::NONE,
        };
        let numbers = [0, 1].map(|index| addresses.get(index).map_or(Self::NONE, number));
        Self { numbers, are_all: addresses.len() <= 2 }
    }

    #[inline]
    fn number(bytes: [u8; 4]) -> u64 {
        u32::from_ne_bytes(bytes).into()
    }
}

/// The addresses that have a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    prefix: u128,
    mask: u128,
    family: Family,
}

impl Network {
    fn of(own: &InterfaceAddress) -> Self {
        let family = own.addr.family();
        let mask = mask(family, own.prefix_len);
        Self { prefix: u128::from_be_bytes(*own.addr.as_bytes()) & mask, mask, family }
    }

    #[inline]
    fn contains(&self, addr: &Address) -> bool {
        u128::from_be_bytes(*addr.as_bytes()) & self.mask == self.prefix
            && addr.family() == self.family
    }
}

/// Checks that a host can have this address, with this prefix.
fn check_address(address: &InterfaceAddress) -> Result<(), ConfigError> {
    check_prefix(&address.addr, address.prefix_len)?;
    // RFC 1122 3.2.1.3 (a), (c): of a host "on this network" only a source while it learns its
    // address, of all hosts only a destination; RFC 4291 2.5.2: "must never be assigned".
    if address.addr.is_unspecified() || address.addr.is_multicast_or_broadcast() {
        return Err(ConfigError::NotAHost(address.addr));
    }
    Ok(())
}

pub(crate) fn is_link_local(addr: &Address) -> bool {
    let bytes = addr.as_bytes();
    match addr.family() {
        Family::V4 => addr.v4_bytes().starts_with(&[169, 254]),
        Family::V6 => bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80,
    }
}

/// The bits of a family's addresses.
pub(super) fn bits(family: Family) -> u8 {
    match family {
        Family::V4 => 32,
        Family::V6 => 128,
    }
}

pub(crate) fn check_prefix(addr: &Address, len: u8) -> Result<(), ConfigError> {
    let bits = bits(addr.family());
    if len > bits { Err(ConfigError::PrefixLength { len, bits }) } else { Ok(()) }
}

/// The first `len` bits of the address as its family counts them, the others zero.
pub(super) fn masked(addr: &Address, len: u8) -> Address {
    let mask = mask(addr.family(), len);
    Address::from_bytes((u128::from_be_bytes(*addr.as_bytes()) & mask).to_be_bytes())
}

/// The first `len` bits as a family counts them, and all before them.
fn mask(family: Family, len: u8) -> u128 {
    let skipped = 128 - u32::from(bits(family));
    let keep = (skipped + u32::from(len)).min(128);
    u128::MAX.checked_shl(128 - keep).unwrap_or(0)
}

/// The numbers from here on are those of the loopback addresses.
const FIRST_LOOPBACK: u16 = u16::MAX - 1;
/// Numbers kept for own addresses that are added while there are foreign ones.
const SPARE: u16 = 64;

#[cfg(test)]
pub(super) mod tests;
