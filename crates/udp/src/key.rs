//! Selection of the datagrams that a socket receives.

use whimbrel_wire::{Address, Endpoint, Family};

/// Parameters of a bind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind {
    /// Local addresses.
    pub local: Local,
    /// Local port; 0 selects an ephemeral one.
    pub port: u16,
    /// Sharing of the port with other sockets.
    pub sharing: Sharing,
}

impl Bind {
    /// Creates parameters for an unshared port.
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
    /// Returns the address that represents it.
    pub fn address(&self) -> Address {
        match self {
            Self::Address(address) => *address,
            Self::Every(Family::V4) => Address::from_v4_bytes([0; 4]),
            Self::Every(Family::V6) | Self::Both => Address::from_bytes([0; 16]),
        }
    }

    /// True if it includes `address`.
    #[inline]
    pub fn covers(&self, address: &Address) -> bool {
        match self {
            Self::Address(own) => own == address,
            Self::Every(family) => *family == address.family(),
            Self::Both => true,
        }
    }

    /// True if one datagram could match both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(address), wide) | (wide, Self::Address(address)) => wide.covers(address),
            (Self::Every(one), Self::Every(other)) => one == other,
            (Self::Both, _) | (_, Self::Both) => true,
        }
    }
}

/// Sharing of a port with other sockets that share it, too (`SO_REUSEADDR`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sharing {
    /// Not shared: a bind that would match the same datagrams fails.
    #[default]
    Alone,
    /// Shared: a datagram goes to the socket that matches it most exactly: connected to its sender,
    /// bound to its address, bound to all. Of equal ones, it goes to the latest.
    Shared,
}

/// Match of the datagrams that a socket receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) local: Local,
    /// The only sender, if it is connected.
    pub(crate) remote: Option<Endpoint>,
}

impl Key {
    /// True if a datagram from `from` to this address matches.
    #[inline]
    pub(crate) fn takes(&self, to: &Address, from: &Endpoint) -> bool {
        self.local.covers(to) && self.remote.is_none_or(|remote| remote == *from)
    }

    /// Returns every key that such a datagram matches, the most exact first.
    pub(crate) fn candidates(to: &Address, from: &Endpoint) -> [Self; 4] {
        let (own, any) = (Local::Address(*to), Local::Every(to.family()));
        let open = |local| Self { local, remote: None };
        [Self { local: own, remote: Some(*from) }, open(own), open(any), open(Local::Both)]
    }
}
