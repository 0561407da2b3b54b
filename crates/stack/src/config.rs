//! Configuration of a shard, given once at its start.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use whimbrel_base::Secrets;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_wire::{Address, MacAddress};

/// Everything that a [`Shard`](crate::Shard) needs to know to be a host.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// The rules of the stack.
    pub tunables: Tunables,
    /// Keys for ISNs, ports, timestamps, cookies and tables: from the system's entropy, or from a
    /// seed where runs must repeat.
    pub secrets: Secrets,
    /// Capabilities of the device.
    pub capabilities: Capabilities,
    /// The addresses of this host, each with the length of its prefix.
    pub addresses: Vec<InterfaceAddress>,
    /// Routes beyond those that the addresses' own networks imply.
    pub routes: Vec<Route>,
}

/// Capabilities of a device; what it lacks, the stack does itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// The first header of its frames.
    pub medium: Medium,
    /// The largest IP packet that the link carries, bytes (68 ..= 65,535; IPv6 needs 1,280).
    pub mtu: u16,
    /// The largest IP packet that the device takes and cuts itself (segmentation offload), bytes;
    /// equal to `mtu` if it cannot cut.
    pub max_super: u32,
    /// The device completes the transport checksums of what is sent.
    pub tx_checksum: bool,
    /// The device cuts datagrams, too, and completes the checksum of each (`UDP_L4`): `max_super` exceeds
    /// `mtu` and `tx_checksum` holds.
    pub udp_segmentation: bool,
    /// The rule that spreads flows over several queues.
    pub steering: Steering,
}

impl Capabilities {
    /// A device of one queue that leaves all to the stack: no offload.
    pub const fn plain(medium: Medium, mtu: u16) -> Self {
        let steering = Steering::None;
        Self {
            medium,
            mtu,
            max_super: mtu as u32,
            tx_checksum: false,
            udp_segmentation: false,
            steering,
        }
    }

    /// Sets that the device completes the checksums of TCP and UDP.
    #[must_use]
    pub const fn with_tx_checksum(mut self) -> Self {
        self.tx_checksum = true;
        self
    }

    /// Sets that the device cuts TCP segments of up to `max_super` bytes, and completes the checksums.
    #[must_use]
    pub const fn with_segmentation(mut self, max_super: u32) -> Self {
        self.max_super = max_super;
        self.with_tx_checksum()
    }

    /// Sets that it cuts datagrams, too; after [`Capabilities::with_segmentation`].
    #[must_use]
    pub const fn with_udp_segmentation(mut self) -> Self {
        self.udp_segmentation = true;
        self
    }

    /// Sets the rule that spreads flows over several queues.
    #[must_use]
    pub const fn with_steering(mut self, steering: Steering) -> Self {
        self.steering = steering;
        self
    }
}

/// The first header of a device's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// The IP header: TUN.
    Ip,
    /// An Ethernet header: TAP, AF_PACKET, AF_XDP.
    Ethernet {
        /// This host's own station: neither a group nor all zeroes.
        mac: MacAddress,
    },
}

/// The rule by which a device with several queues chooses one for a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steering {
    /// One queue, or no rule: a shard must forward what belongs to another.
    None,
    /// One queue for all of a flow, by a rule that is not known.
    Consistent,
    /// `(source port ^ destination port) / 2 mod queues`, so that a shard can draw ports that come
    /// home. Halved, because the lowest bit says little: Linux' clients take even ports first.
    Computable {
        /// The one that this is (`0 .. queues`).
        queue: u16,
        /// The number of queues (1 ..= 65,535).
        queues: u16,
    },
}

impl Steering {
    /// The queue that this is, where that is known; 0 otherwise.
    pub const fn queue(self) -> u16 {
        match self {
            Self::None | Self::Consistent => 0,
            Self::Computable { queue, .. } => queue,
        }
    }

    /// True if segments between these ports come in by this queue; where that cannot be computed,
    /// they are taken as they come. The two directions are alike.
    pub const fn maps_to_this_queue(self, one: u16, other: u16) -> bool {
        match self {
            Self::None | Self::Consistent => true,
            Self::Computable { queue, queues } => queue_between(one, other, queues) == queue,
        }
    }
}

/// Of so many queues (at least 1) that one by which segments between these ports come in, where that
/// is [computed](Steering::Computable).
pub const fn queue_between(one: u16, other: u16, queues: u16) -> u16 {
    match queues {
        0 => 0,
        queues => ((one ^ other) >> 1) % queues,
    }
}

/// One of this host's addresses, and the network it lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAddress {
    /// An address of this host.
    pub addr: Address,
    /// The length of the network's prefix (0 ..= 32 for IPv4, 0 ..= 128 for IPv6).
    pub prefix_len: u8,
}

impl InterfaceAddress {
    /// Creates an address with the prefix length of its network.
    pub fn new(addr: IpAddr, prefix_len: u8) -> Self {
        Self { addr: addr.into(), prefix_len }
    }
}

/// A route: the next hop of packets to a network.
///
/// ```
/// use whimbrel_stack::Route;
///
/// # fn main() -> Result<(), core::net::AddrParseError> {
/// let internet = Route::default_via("10.0.0.1".parse()?);
/// let office = Route::new("192.0.2.0".parse()?, 24).via("10.0.0.9".parse()?).with_metric(5);
/// let on_link = Route::new("198.51.100.0".parse()?, 24);
/// # assert_eq!((internet.prefix_len, office.metric, on_link.gateway), (0, 5, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Route {
    /// Any address of the network; its host bits do not matter.
    pub network: Address,
    /// The length of the network's prefix (0 ..= 32 for IPv4, 0 ..= 128 for IPv6).
    pub prefix_len: u8,
    /// The router, or `None` if the network is directly connected.
    pub gateway: Option<Address>,
    /// Among routes of one prefix the least metric wins, then the first given; the others are for when
    /// its gateway does not answer (RFC 1122 3.3.1.4).
    pub metric: u32,
    /// Path metrics of the paths over it.
    pub metrics: RouteMetrics,
}

impl Route {
    /// Creates a route to a directly connected network, with metric 0 and without path metrics.
    pub fn new(network: IpAddr, prefix_len: u8) -> Self {
        let metrics = RouteMetrics::new();
        Self { network: network.into(), prefix_len, gateway: None, metric: 0, metrics }
    }

    /// Creates the default route by this gateway: to 0.0.0.0/0, or to ::/0 if it is an IPv6 address.
    pub fn default_via(gateway: IpAddr) -> Self {
        let any = match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::new(any, 0).via(gateway)
    }

    /// Sets the gateway.
    #[must_use]
    pub fn via(mut self, gateway: IpAddr) -> Self {
        self.gateway = Some(gateway.into());
        self
    }

    /// Sets the metric.
    #[must_use]
    pub fn with_metric(mut self, metric: u32) -> Self {
        self.metric = metric;
        self
    }

    /// Sets the path metrics.
    #[must_use]
    pub fn with_metrics(mut self, metrics: RouteMetrics) -> Self {
        self.metrics = metrics;
        self
    }
}
