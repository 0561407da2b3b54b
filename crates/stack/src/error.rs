//! Errors of callers: each names the limit, the value and the remedy.

use core::fmt;
use core::time::Duration;

use whimbrel_base::tunables::{InvalidTunable, TunableError};
use whimbrel_wire::{Address, Endpoint, MacAddress};

/// A configuration that makes no host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A prefix longer than its address.
    #[error("prefix length {len} exceeds the {bits} bits of the address: give 0 to {bits}")]
    PrefixLength {
        /// The length that was given.
        len: u8,
        /// Bits of an address of this family.
        bits: u8,
    },
    /// No address, or too many.
    #[error("a host needs 1 to {most} addresses, {count} were given")]
    AddressCount {
        /// Number given.
        count: usize,
        /// The most there may be.
        most: usize,
    },
    /// A link that cannot carry the least packet of a family that this host has an address of.
    #[error(
        "an MTU of {mtu} bytes: with these addresses every link carries {least}; give that or more"
    )]
    Mtu {
        /// The MTU that was given, in bytes.
        mtu: u16,
        /// 68 for IPv4 (RFC 791 3.1), 1,280 for IPv6 (RFC 8200 5).
        least: u16,
    },
    /// A tunable that may not have its value, or not together with another.
    #[error(transparent)]
    Tunable(#[from] InvalidTunable),
    /// Not the address of one station.
    #[error(
        "{0} names no single station: give an address with an even first byte, as in 02:00:00:00:00:01"
    )]
    Station(MacAddress),
    /// The unspecified address, or one of several hosts.
    #[error("{0} names no single host: give a unicast address, as in 10.9.0.2 or fd09::2")]
    NotAHost(Address),
    /// An address is given twice.
    #[error("address {0} is given twice: give it once")]
    DuplicateAddress(Address),
}

/// Why the rules of a host that runs could not be changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetuneError {
    /// No such tunable, or not such a value.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// A value that may not stand together with another.
    #[error(transparent)]
    Invalid(#[from] InvalidTunable),
    /// It holds from the beginning of a host to its end.
    #[error("{name} cannot be changed while the host runs: give it in the configuration")]
    Fixed {
        /// The name of the tunable.
        name: &'static str,
    },
}

/// Why a host that runs did not get an address, or did not lose it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No host can have it, or not over this link, or this host has as many as it may.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The host has it.
    #[error("{0} is an address of this host already: give another, or remove it first")]
    Exists(Address),
    /// The host has it not.
    #[error("{0} is not an address of this host: only what was given can be removed")]
    Unknown(Address),
    /// Not one that others can know.
    #[error(
        "{0} is a loopback address: every host has 127.0.0.1 and ::1, and no others of their kind"
    )]
    Loopback(Address),
    /// Another station has it.
    #[error(
        "{addr} is in use by the station {station}: give another, or take it from that station"
    )]
    InUse {
        /// The address that was asked for.
        addr: Address,
        /// The station that answered for it.
        station: MacAddress,
    },
    /// So many are asked for already.
    #[error(
        "{limit} addresses are asked for at this moment, the most at a time: try again in a second"
    )]
    Checking {
        /// The most at a time.
        limit: usize,
    },
}

/// Why a host that runs did not get a route, or did not lose it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The prefix is longer than its address.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Not a network that a host sends to, or whose gateway is of the other family.
    #[error("{0} is no network to send to: give a unicast network, and a gateway of its family")]
    NotANetwork(Address),
    /// There is one to this network over this gateway.
    #[error("a route to {network}/{prefix_len} over that gateway exists: remove it first")]
    Exists {
        /// The network that both lead to.
        network: Address,
        /// The length of its prefix.
        prefix_len: u8,
    },
    /// There is no such route.
    #[error(
        "no route to {network}/{prefix_len} over that gateway was given (that of an address goes \
         with the address)"
    )]
    Unknown {
        /// The network that was named.
        network: Address,
        /// The length of its prefix.
        prefix_len: u8,
    },
    /// No host on the link can be the gateway.
    #[error(
        "the gateway {0} is not on a directly connected network: give a neighbour, or first an \
         address in its network"
    )]
    Gateway(Address),
    /// As many as there may be.
    #[error("too many routes: the limit is {limit}; remove some, or give shorter prefixes")]
    TooMany {
        /// The limit, which is reached.
        limit: usize,
    },
}

/// Why a listener could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another listener is there.
    #[error("address in use: another listener is at {0}; choose another port or close it")]
    InUse(Endpoint),
    /// Not an address of this host.
    #[error(
        "{0} is not an address of this host: listen on one of its own, or on the unspecified one"
    )]
    NotLocal(Endpoint),
    /// Port 0 means "any" in a request and nothing on the wire.
    #[error("port 0 cannot be listened on: give 1 to 65535")]
    PortZero,
}

/// Why a connection could not be begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no route to this endpoint.
    #[error("no route to {0}: add one, or an address in its network")]
    NoRoute(Endpoint),
    /// This host has no address of the peer's family.
    #[error("no address of the family of {0}: give this host one")]
    NoSource(Endpoint),
    /// The peer's port or address is not one to connect to.
    #[error("{0} cannot be connected to: give a unicast address and a port from 1 to 65535")]
    NotAPeer(Endpoint),
    /// The address to connect from is not this host's.
    #[error("{0} is not an address of this host: bind to one of its own, or to none")]
    NotLocal(Endpoint),
    /// A record of this 4-tuple exists.
    #[error("address in use: a connection from {local} to {remote} exists; bind another port")]
    InUse {
        /// The end that was asked for.
        local: Endpoint,
        /// The endpoint to connect to.
        remote: Endpoint,
    },
    /// Every ephemeral port towards this peer is taken.
    #[error(
        "ports exhausted towards {remote}: from {first} to {last} {in_use} are in use and {waiting} \
         wait in TIME-WAIT{}; widen net.ipv4.ip_local_port_range or add source addresses", Next(.next)
    )]
    PortsExhausted {
        /// The endpoint to connect to.
        remote: Endpoint,
        /// The first ephemeral port.
        first: u16,
        /// The last ephemeral port.
        last: u16,
        /// Number in use, on all source addresses that were tried, of those that come in
        /// to this shard.
        in_use: u32,
        /// Number in TIME-WAIT there.
        waiting: u32,
        /// When the next of those comes free, or may be taken over, if nothing changes.
        next: Option<Duration>,
    },
    /// The host has as many connections as it may.
    #[error("too many connections: the limit is {limit}; raise max_connections or close some")]
    TooMany {
        /// The value of the limit, which is reached.
        limit: u32,
    },
}

impl ConnectError {
    /// Adds what another shard of the same host said of the same peer: where both are out of
    /// ports, the figures of both.
    #[must_use]
    pub fn and_then(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::PortsExhausted { in_use, waiting, next, .. },
                Self::PortsExhausted {
                    remote,
                    first,
                    last,
                    in_use: more_in_use,
                    waiting: more_waiting,
                    next: other_next,
                },
            ) => Self::PortsExhausted {
                remote,
                first,
                last,
                in_use: in_use + more_in_use,
                waiting: waiting + more_waiting,
                next: [next, other_next].into_iter().flatten().min(),
            },
            (_, other) => other,
        }
    }
}

/// An address that is not this host's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is not an address of this host: give one of its own")]
pub struct NotLocal(pub Address);

/// When the next port comes free.
struct Next<'a>(&'a Option<Duration>);

impl fmt::Display for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(next) => write!(f, ", of which the next comes free in {} ms", next.as_millis()),
            None => Ok(()),
        }
    }
}

/// Why a packet cannot be sent unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// No IP packet, or of another length than its header says.
    #[error(
        "no IP packet: give one whole, of the length that its header says, with no bytes behind"
    )]
    Header,
    /// More than the link carries.
    #[error("a packet of {len} bytes: the link carries {mtu} (its MTU); send it in fragments")]
    TooLong {
        /// The length of the packet, bytes.
        len: usize,
        /// The MTU of the link.
        mtu: u16,
    },
    /// To or from an address that is never seen on a link.
    #[error("{0} is a loopback address, which no packet outside a host may have")]
    Loopback(Address),
    /// Too much waits to be sent.
    #[error("768 answers, or 1 MiB of them, wait to leave: try again when the device takes some")]
    Full,
}

/// Why nothing can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// This side shut down its direction, or the connection is over.
    #[error("the connection no longer sends: it was shut down, closed or reset")]
    Closed,
    /// The handle names nothing.
    #[error("no such connection")]
    Unknown,
}
