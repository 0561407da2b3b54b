//! One UDP socket: what was asked of it, and the socket of the stack that it has.

use whimbrel_stack::UdpHandle;
use whimbrel_udp::{Fragmenting, Local, SendOptions, Sharing};
use whimbrel_wire::{Address, Family, TrafficClass};

use crate::socket::Blocking;
use crate::{Domain, Errno};

/// What a descriptor of `SOCK_DGRAM` stands for.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) domain: Domain,
    pub(crate) blocking: Blocking,
    pub(crate) reuse_addr: bool,
    pub(crate) v6_only: bool,
    /// `SO_RCVBUF` and `SO_SNDBUF`, bytes, where they were set.
    pub(crate) recv_size: Option<u32>,
    pub(crate) send_size: Option<u32>,
    pub(crate) packets: Packets,
    pub(crate) shut_read: bool,
    pub(crate) shut_write: bool,
    /// Once it is bound; the first call that sends or connects binds it.
    pub(crate) handle: Option<UdpHandle>,
}

/// What IP headers of either family say.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Packets {
    pub(crate) ttl: Option<u8>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) tos: TrafficClass,
    pub(crate) class: TrafficClass,
    pub(crate) fragmenting: Fragmenting,
    /// What is longer goes out as datagrams of so many bytes; 0: as one.
    pub(crate) segment: u16,
}

impl Datagrams {
    pub(crate) fn new(domain: Domain, blocking: Blocking) -> Self {
        Self {
            domain,
            blocking,
            reuse_addr: false,
            v6_only: false,
            recv_size: None,
            send_size: None,
            packets: Packets::default(),
            shut_read: false,
            shut_write: false,
            handle: None,
        }
    }

    /// What it receives, bound to this address.
    pub(crate) fn local_at(&self, addr: Address) -> Result<Local, Errno> {
        match (self.domain, addr.family()) {
            (Domain::Inet, Family::V6) => Err(Errno::EAFNOSUPPORT),
            (Domain::Inet6, Family::V4) if self.v6_only => Err(Errno::EINVAL),
            (Domain::Inet6, Family::V6) if addr.is_unspecified() && !self.v6_only => {
                Ok(Local::Both)
            }
            (_, family) if addr.is_unspecified() => Ok(Local::Every(family)),
            _ => Ok(Local::Address(addr)),
        }
    }

    pub(crate) const fn sharing(&self) -> Sharing {
        if self.reuse_addr { Sharing::Shared } else { Sharing::Alone }
    }
}

impl Packets {
    /// What packets to this address say.
    pub(crate) fn options_to(&self, to: &Address) -> SendOptions {
        let (hop_limit, class) = match to.family() {
            Family::V4 => (self.ttl, self.tos),
            Family::V6 => (self.hop_limit, self.class),
        };
        SendOptions { hop_limit, class, fragmenting: self.fragmenting }
    }
}
