//! One UDP socket: its settings, its socket in the stack, and its calls.

mod calls;
mod options;

use whimbrel_stack::UdpHandle;
use whimbrel_udp::{Fragmenting, Local, SendOptions, Sharing};
use whimbrel_wire::{Address, Endpoint, Family, TrafficClass};

use crate::blocking::Blocking;
use crate::{Domain, Errno, Fd};

/// Result of `recvfrom(2)` in addition to the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedFrom {
    /// Bytes; with `MSG_TRUNC` the full length of the datagram.
    pub len: usize,
    /// Sender; `None` for a stream.
    pub from: Option<Endpoint>,
    /// True if some bytes of the datagram did not fit and are lost (`MSG_TRUNC` in `msg_flags`).
    pub is_truncated: bool,
}

/// Socket of a `SOCK_DGRAM` descriptor.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Its own descriptor.
    fd: Fd,
    domain: Domain,
    pub(crate) blocking: Blocking,
    reuse_addr: bool,
    v6_only: bool,
    /// `SO_RCVBUF` and `SO_SNDBUF`, bytes, if they were set.
    recv_size: Option<u32>,
    send_size: Option<u32>,
    packets: Packets,
    shut_read: bool,
    shut_write: bool,
    /// Socket of the stack, once bound; the first call that sends or connects binds it.
    handle: Option<UdpHandle>,
}

/// Settings of IP headers, of both families.
#[derive(Clone, Copy, Default, Debug)]
struct Packets {
    ttl: Option<u8>,
    hop_limit: Option<u8>,
    tos: TrafficClass,
    class: TrafficClass,
    fragmenting: Fragmenting,
    /// Size of the datagrams that a longer send is cut into; 0: it goes as one.
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

    /// Local address of the socket when it is bound to `addr`.
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
    /// Options of packets to this address.
    fn options_to(&self, to: &Address) -> SendOptions {
        let (hop_limit, class) = match to.family() {
            Family::V4 => (self.ttl, self.tos),
            Family::V6 => (self.hop_limit, self.class),
        };
        let options = SendOptions::new().with_class(class).with_fragmenting(self.fragmenting);
        hop_limit.map_or(options, |hop_limit| options.with_hop_limit(hop_limit))
    }
}
