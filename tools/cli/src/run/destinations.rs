//! Destinations of the program's packets: the machine's own services are not among them, unless they are
//! asked for. It is no sandbox: all that the machine's sockets reach is reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use whimbrel_stack::ip::Unreachable;
use whimbrel_wire::{Address, Endpoint};

use super::far::{EXPIRED, Refusal};
use super::network::{DNS_PORT, InsideNetwork};

/// The network inside, and how its addresses map to the machine's.
#[derive(Clone, Debug)]
pub(super) struct Destinations {
    pub(super) network: InsideNetwork,
    /// The machine's name servers; at least one, unless a wire reaches none.
    pub(super) name_servers: Vec<Endpoint>,
    /// True if the gateway's own address leads to the machine's loopback address.
    pub(super) has_host_loopback: bool,
}

/// Meaning of a destination outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outside {
    /// A place to connect to.
    At(Endpoint),
    /// One of the machine's name servers.
    NameServer,
    /// It is not to be reached.
    Denied,
    /// No host has this address.
    NoHost,
    /// No service has this port.
    NoPort,
}

impl Destinations {
    /// Judges a destination inside.
    pub(super) fn judge(&self, to: Endpoint) -> Outside {
        if to.addr == self.network.name_server() {
            return match to.port {
                DNS_PORT => Outside::NameServer,
                _ => Outside::NoPort,
            };
        }
        if self.network.is_gateway(to.addr) {
            return match self.has_host_loopback {
                true => Outside::At(Endpoint::new(loopback(to.addr), to.port)),
                false => Outside::Denied,
            };
        }
        if self.network.contains(to.addr) {
            return Outside::NoHost;
        }
        if is_denied(to.addr.to_ip()) { Outside::Denied } else { Outside::At(to) }
    }

    /// Hops that a packet of the program to `to` has left behind the gateway, where it is passed on.
    ///
    /// # Errors
    ///
    /// None is left (RFC 1812 5.3.1): the refusal.
    pub(super) fn hops_left(&self, to: Address, hop_limit: u8) -> Result<Option<u8>, Refusal> {
        match hop_limit {
            _ if self.network.contains(to) => Ok(None),
            0 | 1 => Err((Some(Unreachable::HopLimit), EXPIRED)),
            hops => Ok(Some(hops - 1)),
        }
    }

    /// The address inside of a sender outside: its own, or the gateway's for one that no packet inside
    /// may have as its source.
    pub(super) fn inside(&self, from: Endpoint) -> Endpoint {
        let is_own = is_denied(from.addr.to_ip()) || self.network.contains(from.addr);
        let addr = if is_own { self.network.gateway_of_family(from.addr) } else { from.addr };
        Endpoint::new(addr, from.port)
    }
}

/// The loopback address of the family of `other`.
pub(super) fn loopback(other: Address) -> Address {
    match other.is_v4() {
        true => Ipv4Addr::LOCALHOST.into(),
        false => Ipv6Addr::LOCALHOST.into(),
    }
}

/// True for addresses of the machine itself, its links, and groups, in whatever form.
fn is_denied(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => {
            // RFC 1122 3.2.1.3: 0/8 is this host on this network.
            v4.octets()[0] == 0
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            v6.is_unspecified()
                || v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || embedded(v6).is_some_and(|v4| is_denied(v4.into()))
        }
    }
}

/// The IPv4 address in an IPv6 address that is mapped, compatible (RFC 4291 2.5.5), or NAT64's (RFC 6052
/// 2.1, RFC 8215).
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, ..] = v6.segments();
    let last = v6.octets().last_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] | [0x64, 0xff9b, 1, ..] => last,
        _ => None,
    }
}

#[cfg(test)]
mod tests;
