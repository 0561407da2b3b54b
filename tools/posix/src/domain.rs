//! Arguments of `socket`: family, type and protocol.

use whimbrel_wire::{Address, Family};

c_enum! {
    /// A family of addresses.
    Domain {
        /// Only IPv4.
        Inet = 2, "AF_INET";
        /// IPv6; by default IPv4 too, in mapped form.
        Inet6 = 10, "AF_INET6";
    }
}

c_enum! {
    /// A kind of socket.
    SocketType {
        /// A stream of bytes.
        Stream = 1, "SOCK_STREAM";
        /// Datagrams: each whole, or not at all.
        Dgram = 2, "SOCK_DGRAM";
        /// Raw packets, which `socket` refuses.
        Raw = 3, "SOCK_RAW";
    }
}

c_enum! {
    /// The protocol of a socket, as `socket` takes it.
    Protocol {
        /// Default protocol of the type.
        Default = 0, "IPPROTO_IP";
        /// TCP, of streams.
        Tcp = 6, "IPPROTO_TCP";
        /// UDP, of datagrams.
        Udp = 17, "IPPROTO_UDP";
    }
}

impl Domain {
    /// The address that stands for all of the family: `0.0.0.0` or `::`.
    pub const fn unspecified(self) -> Address {
        match self {
            Self::Inet => Address::from_v4_bytes([0; 4]),
            Self::Inet6 => Address::from_bytes([0; 16]),
        }
    }

    /// The IP version of its addresses.
    pub const fn family(self) -> Family {
        match self {
            Self::Inet => Family::V4,
            Self::Inet6 => Family::V6,
        }
    }
}
