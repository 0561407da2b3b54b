//! Which datagrams a socket takes.

use whimbrel_wire::{Address, Endpoint, Family};

/// What an application asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind {
    /// At which addresses of this host.
    pub local: Local,
    /// At which port; 0: one is drawn of the ephemeral ones.
    pub port: u16,
    /// Whether others may have the port.
    pub sharing: Sharing,
}

impl Bind {
    /// A port of its own.
    pub const fn new(local: Local, port: u16) -> Self {
        Self { local, port, sharing: Sharing::Alone }
    }
}

/// The addresses at which a socket receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Local {
    /// One address of this host.
    Address(Address),
    /// All of one family: `0.0.0.0`, or `::` with `IPV6_V6ONLY`.
    Every(Family),
    /// All of both families: `::`.
    Both,
}

impl Local {
    /// The address that stands for it.
    pub fn address(&self) -> Address {
        match self {
            Self::Address(address) => *address,
            Self::Every(Family::V4) => Address::from_v4_octets([0; 4]),
            Self::Every(Family::V6) | Self::Both => Address::from_octets([0; 16]),
        }
    }

    /// True if datagrams for `address` are its.
    #[inline]
    pub fn covers(&self, address: &Address) -> bool {
        match self {
            Self::Address(own) => own == address,
            Self::Every(family) => *family == address.family(),
            Self::Both => true,
        }
    }

    /// True if a datagram could be for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(address), wide) | (wide, Self::Address(address)) => wide.covers(address),
            (Self::Every(one), Self::Every(other)) => one == other,
            (Self::Both, _) | (_, Self::Both) => true,
        }
    }
}

/// Whether a socket shares its port with others that share it, too (`SO_REUSEADDR`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sharing {
    /// Whoever would take the same datagrams is refused.
    #[default]
    Alone,
    /// A datagram goes to whoever asked for it most exactly: connected to its sender, bound to its
    /// address, bound to all. Of several who asked for the same, to the last.
    Shared,
}

/// What a socket takes of what is sent to its port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) local: Local,
    /// From whom alone, if it is connected.
    pub(crate) remote: Option<Endpoint>,
}

impl Key {
    /// True if a datagram to this address, from there, is its.
    #[inline]
    pub(crate) fn takes(&self, to: &Address, from: &Endpoint) -> bool {
        self.local.covers(to) && self.remote.is_none_or(|remote| remote == *from)
    }

    /// Every key that takes such a datagram, the most exact first.
    pub(crate) fn candidates(to: &Address, from: &Endpoint) -> [Self; 4] {
        let (own, any) = (Local::Address(*to), Local::Every(to.family()));
        let open = |local| Self { local, remote: None };
        [Self { local: own, remote: Some(*from) }, open(own), open(any), open(Local::Both)]
    }
}
