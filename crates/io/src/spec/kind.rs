//! The kinds of wire that can be typed, and what each takes.

use std::fmt;

/// A kind of wire. Shown as it is typed: `tun:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An interface of IP packets.
    Tun,
    /// An interface of Ethernet frames.
    Tap,
    /// A place on an interface of the machine's.
    Packet,
    /// A socket between two processes.
    Unix,
    /// A capture, replayed.
    Pcap,
}

impl Kind {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Tun, Self::Tap, Self::Packet, Self::Unix, Self::Pcap]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tun => "tun",
            Self::Tap => "tap",
            Self::Packet => "packet",
            Self::Unix => "unix",
            Self::Pcap => "pcap",
        }
    }

    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Tun | Self::Tap | Self::Packet => "an interface name",
            Self::Unix => "the path of a socket",
            Self::Pcap => "a capture",
        }
    }

    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Tun => &["addr", "host", "queues", "offload", "mtu"],
            Self::Tap => &["addr", "host", "mac", "offload", "mtu", "dad"],
            Self::Packet => &["addr", "gw", "mac", "fanout", "offload", "dad"],
            Self::Unix => &["addr", "mtu"],
            Self::Pcap => &["addr", "mac", "speed"],
        }
    }

    /// Its keys, for people.
    pub(super) fn key_list(self) -> String {
        match self.keys() {
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
            [] => String::new(),
        }
    }

    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Tun => super::EXAMPLE,
            Self::Tap => "tap:whim0,addr=10.9.0.2/24,host=10.9.0.1",
            Self::Packet => "packet:eth0,addr=10.9.0.2/24,gw=10.9.0.1",
            Self::Unix => "unix:/run/whimbrel.sock,addr=10.9.0.2/24",
            Self::Pcap => "pcap:whim0.pcapng,addr=10.9.0.2/24",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name())
    }
}
