//! Which packets of a capture are wanted: a small part of the language of pcap-filter(7).
//!
//! ```
//! use whimbrel_link::filter::Filter;
//!
//! let filter: Filter = "tcp port 80 and not host 10.0.0.7".parse().unwrap();
//! let syn_or_fin: Filter = "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0".parse().unwrap();
//! let error = "tcp prot 80".parse::<Filter>().unwrap_err();
//! assert!(error.to_string().starts_with("at column 5: \"prot\""));
//! ```
//!
//! There are `ip`, `ip6`, `arp`, `tcp`, `udp`, `icmp` and `icmp6`; `[src|dst] host ADDRESS`, `net
//! ADDRESS/PREFIX`, `port N` and `portrange N-N`, behind one of the former if you like; `less N` and
//! `greater N`; the flags of TCP; and `and`, `or`, `not` and parentheses. As there, `and` and `or`
//! bind equally, from the left, and an address or a number alone has the words of the last one.
//!
//! A packet that contradicts itself has no addresses and no ports.

use alloc::boxed::Box;
use core::str::FromStr;

use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, EtherType, EthernetHeader, Family, IpHeader, Protocol};

use crate::pcapng::LinkType;

mod parse;
mod words;

pub use words::FilterError;

/// A filter of packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter(Term);

impl Filter {
    /// True if a frame of this `link_type` matches.
    pub fn matches(&self, link_type: LinkType, frame: &[u8]) -> bool {
        self.0.holds(&PacketView::of(link_type, frame))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(Self)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Term {
    Not(Box<Term>),
    And(Box<[Term; 2]>),
    Or(Box<[Term; 2]>),
    Is(Kind),
    Host(Side, Address),
    Net(Side, Address, u8),
    /// Ports from the first to the last.
    Ports(Side, u16, u16),
    /// Flags under a mask equal, or do not equal, these.
    Flags {
        mask: u8,
        equal: bool,
        value: u8,
    },
    /// At most this many bytes.
    Less(usize),
    /// At least this many bytes.
    Greater(usize),
}

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Family(Family),
    Arp,
    Protocol(Protocol),
}

/// End of a packet that a term tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Source,
    Destination,
    Either,
    Both,
}

impl Side {
    fn holds<T>(self, [source, destination]: [T; 2], test: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => test(source),
            Self::Destination => test(destination),
            Self::Either => test(source) || test(destination),
            Self::Both => test(source) && test(destination),
        }
    }
}

impl Term {
    fn holds(&self, seen: &PacketView) -> bool {
        match self {
            Self::Not(term) => !term.holds(seen),
            Self::And(terms) => terms.iter().all(|term| term.holds(seen)),
            Self::Or(terms) => terms.iter().any(|term| term.holds(seen)),
            Self::Is(Kind::Arp) => seen.is_arp,
            Self::Is(Kind::Family(family)) => {
                seen.hosts.is_some_and(|[source, _]| source.family() == *family)
            }
            Self::Is(Kind::Protocol(protocol)) => seen.protocol == Some(*protocol),
            Self::Host(side, addr) => {
                seen.hosts.is_some_and(|hosts| side.holds(hosts, |host| host == *addr))
            }
            Self::Net(side, addr, len) => {
                seen.hosts.is_some_and(|hosts| side.holds(hosts, |host| lies_in(host, *addr, *len)))
            }
            Self::Ports(side, first, last) => {
                let ports = first..=last;
                seen.ports.is_some_and(|ends| side.holds(ends, |port| ports.contains(&&port)))
            }
            Self::Flags { mask, equal, value } => {
                seen.flags.is_some_and(|flags| (flags & mask == *value) == *equal)
            }
            Self::Less(bytes) => seen.len <= *bytes,
            Self::Greater(bytes) => seen.len >= *bytes,
        }
    }
}

/// Fields of a packet that a filter tests.
#[derive(Default)]
struct PacketView {
    is_arp: bool,
    hosts: Option<[Address; 2]>,
    protocol: Option<Protocol>,
    ports: Option<[u16; 2]>,
    /// Low eight flags of TCP.
    flags: Option<u8>,
    len: usize,
}

impl PacketView {
    fn of(link_type: LinkType, frame: &[u8]) -> Self {
        let mut seen = Self { len: frame.len(), ..Self::default() };
        if link_type == LinkType::Ethernet {
            let Ok((ethernet, _)) = EthernetHeader::parse(frame) else { return seen };
            seen.is_arp = ethernet.ether_type == EtherType::ARP;
        }
        let Some(packet) = link_type.ip_packet(frame) else { return seen };
        let Ok((ip, payload)) = IpHeader::parse(packet) else { return seen };
        seen.hosts = Some([ip.src, ip.dst]);
        seen.protocol = Some(ip.protocol);
        if ip.fragment.is_some() {
            return seen;
        }
        let port = |at| Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        if matches!(ip.protocol, Protocol::TCP | Protocol::UDP) {
            seen.ports = port(0).zip(port(2)).map(|(source, destination)| [source, destination]);
        }
        if ip.protocol == Protocol::TCP {
            seen.flags = TcpHeader::parse(payload).ok().map(|(tcp, _)| tcp.flags.bits() as u8);
        }
        seen
    }
}

/// True if the first `len` bits are equal.
fn lies_in(host: Address, network: Address, len: u8) -> bool {
    use core::net::IpAddr::{V4, V6};
    let differ = match (host.to_ip(), network.to_ip()) {
        (V4(host), V4(network)) => u128::from(host.to_bits() ^ network.to_bits()) << 96,
        (V6(host), V6(network)) => host.to_bits() ^ network.to_bits(),
        _ => return false,
    };
    differ.checked_shr(128 - u32::from(len)).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
