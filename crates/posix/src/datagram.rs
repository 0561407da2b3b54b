//! One UDP socket: what was asked of it, the socket of the stack that it has, and the calls on it.

mod calls;
mod options;

use whimbrel_stack::UdpHandle;
use whimbrel_udp::{Fragmenting, Local, SendOptions, Sharing};
use whimbrel_wire::{Address, Endpoint, Family, TrafficClass};

use crate::blocking::Blocking;
use crate::{Domain, Errno, Fd};

/// What `recvfrom(2)` says of what it received, beside the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedFrom {
    /// Bytes; with `MSG_TRUNC` as many as the datagram has, whatever fitted.
    pub len: usize,
    /// Who sent them; a stream does not tell.
    pub from: Option<Endpoint>,
    /// Of a datagram some bytes did not fit, and are lost (`MSG_TRUNC` in `msg_flags`).
    pub is_truncated: bool,
}

/// What a descriptor of `SOCK_DGRAM` stands for.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Its own descriptor.
    fd: Fd,
    domain: Domain,
    pub(crate) blocking: Blocking,
    reuse_addr: bool,
    v6_only: bool,
    /// `SO_RCVBUF` and `SO_SNDBUF`, bytes, where they were set.
    recv_size: Option<u32>,
    send_size: Option<u32>,
    packets: Packets,
    shut_read: bool,
    shut_write: bool,
    /// Once it is bound; the first call that sends or connects binds it.
    handle: Option<UdpHandle>,
}

/// What IP headers of either family say.
#[derive(Clone, Copy, Default, Debug)]
struct Packets {
    ttl: Option<u8>,
    hop_limit: Option<u8>,
    tos: TrafficClass,
    class: TrafficClass,
    fragmenting: Fragmenting,
    /// What is longer goes out as datagrams of so many bytes; 0: as one.
    segment: u16,
}

impl Datagrams {
    pub(crate) fn new(fd: Fd, domain: Domain, blocking: Blocking) -> Self {
        Self {
            fd,
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
    fn local_at(&self, addr: Address) -> Result<Local, Errno> {
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

    const fn sharing(&self) -> Sharing {
        if self.reuse_addr { Sharing::Shared } else { Sharing::Alone }
    }
}

impl Packets {
    /// What packets to this address say.
    fn options_to(&self, to: &Address) -> SendOptions {
        let (hop_limit, class) = match to.family() {
            Family::V4 => (self.ttl, self.tos),
            Family::V6 => (self.hop_limit, self.class),
        };
        SendOptions { hop_limit, class, fragmenting: self.fragmenting }
    }
}
