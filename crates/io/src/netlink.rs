//! A small rtnetlink client that sets up one interface (link, address, route) and lists what
//! exists.
//!
//! It is written by hand: a few requests of a fixed shape, and their replies. The `rtnetlink` crate
//! would bring tokio, futures and a tree of netlink crates; the older ioctls cannot add an IPv6
//! address without duplicate address detection.

use std::fs::File;
use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Family};

use crate::sys;
pub use crate::sys::interface_index;

pub mod diag;
pub mod veth;

/// A netlink socket that changes the interfaces of this thread's network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: File,
    sequence: u32,
}

impl Netlink {
    /// Opens the socket. Needs no privilege; the requests do.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: sys::route_socket()?, sequence: 0 })
    }

    /// Turns off the kernel's own link-local IPv6 address, and so router solicitations and
    /// multicast reports, on an interface that has only one peer.
    pub fn no_generated_addresses(&mut self, index: u32) -> io::Result<()> {
        let mut request = Request::link(index, 0);
        request.nested(IFLA_AF_SPEC, |request| {
            request.nested(libc::AF_INET6 as u16, |request| {
                request.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
            });
        });
        self.send(request)
    }

    /// Sets MTU (bytes) and queue length (frames), and brings the interface up.
    pub fn bring_up(&mut self, index: u32, mtu: u16, queue: u32) -> io::Result<()> {
        let mut request = Request::link(index, libc::IFF_UP as u32);
        request.attribute(IFLA_MTU, &u32::from(mtu).to_ne_bytes());
        request.attribute(IFLA_TXQLEN, &queue.to_ne_bytes());
        self.send(request)
    }

    /// Sets the number of segments that the kernel leaves to the interface to cut from one. With 1, each
    /// packet is one.
    pub fn set_most_segments(&mut self, index: u32, segments: u32) -> io::Result<()> {
        let mut request = Request::link(index, 0);
        request.attribute(IFLA_GSO_MAX_SEGS, &segments.to_ne_bytes());
        self.send(request)
    }

    /// Gives an address to the interface, which is up, and returns when packets to it are
    /// delivered. There is no duplicate address detection, because the stack is the only other
    /// station on the link.
    pub fn add_address(&mut self, index: u32, address: InterfaceAddress) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        // struct ifaddrmsg: family, prefix length, flags, scope, index.
        request.put(&[family(address.addr), address.prefix_len, 0, 0]);
        request.put(&index.to_ne_bytes());
        request.address(libc::IFA_LOCAL, address.addr);
        request.address(libc::IFA_ADDRESS, address.addr);
        if address.addr.family() == Family::V4 {
            return self.send(request);
        }
        request.attribute(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        self.send(request)?;
        self.await_delivery(address.addr)
    }

    /// Waits until the kernel has made the route to an IPv6 address, which it does later in a work
    /// queue. Until then sockets can bind to the address, but packets to it are dropped
    /// (`Ip6InAddrErrors`).
    fn await_delivery(&mut self, address: Address) -> io::Result<()> {
        let limit = Instant::now() + DELIVERY_LIMIT;
        while !self.is_delivered(address)? {
            if Instant::now() > limit {
                let text = format!(
                    "the kernel has {address}, and made no local route to it in {} s: try again when the \
                     machine is less busy",
                    DELIVERY_LIMIT.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            thread::sleep(DELIVERY_PAUSE);
        }
        Ok(())
    }

    /// True if packets to the IPv6 address stay in this machine.
    fn is_delivered(&mut self, address: Address) -> io::Result<bool> {
        let mut request = Request::new(libc::RTM_GETROUTE, 0);
        // struct rtmsg, as in `route`.
        request.put(&[family(address), 128, 0, 0, 0, 0, 0, 0]);
        request.put(&0u32.to_ne_bytes());
        request.address(libc::RTA_DST, address);
        let mut is_local = false;
        match self.ask(request, |body| is_local = body.get(ROUTE_TYPE) == Some(&libc::RTN_LOCAL)) {
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(false),
            asked => asked.map(|()| is_local),
        }
    }

    /// Routes packets to `network` into the interface.
    pub fn add_route(&mut self, index: u32, network: InterfaceAddress) -> io::Result<()> {
        self.route(index, network, None)
    }

    /// Routes packets to `network` to a neighbour on the interface.
    pub fn add_route_by(
        &mut self,
        index: u32,
        network: InterfaceAddress,
        gateway: Address,
    ) -> io::Result<()> {
        self.route(index, network, Some(gateway))
    }

    fn route(
        &mut self,
        index: u32,
        network: InterfaceAddress,
        gateway: Option<Address>,
    ) -> io::Result<()> {
        let scope = gateway.map_or(libc::RT_SCOPE_LINK, |_| libc::RT_SCOPE_UNIVERSE);
        let mut request =
            Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        // struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope,
        // type, flags.
        request.put(&[family(network.addr), network.prefix_len, 0, 0]);
        request.put(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
        request.put(&0u32.to_ne_bytes());
        request.address(libc::RTA_DST, network.addr);
        request.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        if let Some(gateway) = gateway {
            request.address(libc::RTA_GATEWAY, gateway);
        }
        self.send(request)
    }

    fn send(&mut self, request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request.finish(self.sequence);
        self.socket.write_all(&message)?;
        let mut reply = [0; 4096];
        loop {
            let len = self.socket.read(&mut reply)?;
            if let Some(answer) = acknowledgment(reply.get(..len).unwrap_or_default(), &message) {
                return answer;
            }
        }
    }

    /// Sends a request for a list, and passes the body of each reply to `each`.
    fn ask(&mut self, request: Request, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.write_all(&request.finish(self.sequence))?;
        let mut reply = vec![0; 1 << 16];
        loop {
            let len = self.socket.read(&mut reply)?;
            for (kind, body) in messages(reply.get(..len).unwrap_or_default()) {
                match i32::from(kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return outcome(body),
                    _ => each(body),
                }
            }
        }
    }
}

/// Iterates over the messages in `reply`: the kind and body of each.
fn messages(mut reply: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*reply.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*reply.get(4..)?.first_chunk()?);
        let body = reply.get(HEADER_LEN..len)?;
        reply = reply.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Returns the result in a `struct nlmsgerr`: a negative errno, or zero for success.
fn outcome(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map_or(-libc::EPROTO, |bytes| i32::from_ne_bytes(*bytes)) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
    }
}

/// Returns the result for `request` in `reply`; `None` if the reply is about another request.
fn acknowledgment(reply: &[u8], request: &[u8]) -> Option<io::Result<()>> {
    let kind = u16::from_ne_bytes(*reply.get(4..)?.first_chunk()?);
    if i32::from(kind) != libc::NLMSG_ERROR || reply.get(8..12) != request.get(8..12) {
        return None;
    }
    Some(outcome(reply.get(HEADER_LEN..)?.first_chunk::<4>()?))
}

/// A request under construction: struct nlmsghdr, a fixed part, attributes.
struct Request {
    bytes: Vec<u8>,
}

impl Request {
    fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut request = Self { bytes: Vec::with_capacity(128) };
        request.put(&0u32.to_ne_bytes()); // the length, known at the end
        request.put(&kind.to_ne_bytes());
        request.put(&flags.to_ne_bytes());
        request.put(&[0; 8]); // the sequence number, given at the end; the port, ours
        request
    }

    /// Begins a request about a link with `struct ifinfomsg`: family, type, index, flags, mask of
    /// the flags to change.
    fn link(index: u32, flags: u32) -> Self {
        let mut request = Self::new(libc::RTM_NEWLINK, 0);
        request.put(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
        request.put(&index.to_ne_bytes());
        request.put(&flags.to_ne_bytes());
        request.put(&flags.to_ne_bytes());
        request
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an attribute: length, kind, value, and zeros up to a multiple of four bytes.
    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |request| request.put(value));
    }

    fn address(&mut self, kind: u16, address: Address) {
        match address.family() {
            Family::V4 => self.attribute(kind, &address.v4_bytes()),
            Family::V6 => self.attribute(kind, address.as_bytes()),
        }
    }

    /// Appends an attribute whose value `write` appends.
    fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.put(&[0; 2]);
        self.put(&kind.to_ne_bytes());
        write(self);
        let len = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

fn family(address: Address) -> u8 {
    match address.family() {
        Family::V4 => libc::AF_INET as u8,
        Family::V6 => libc::AF_INET6 as u8,
    }
}

/// Length of `struct nlmsghdr`, with which each message begins, in bytes.
const HEADER_LEN: usize = 16;
/// Offset of the route type in `struct rtmsg`.
const ROUTE_TYPE: usize = 7;
/// Pause between checks while the kernel makes the route to an address.
const DELIVERY_PAUSE: Duration = Duration::from_millis(1);
/// Longest wait for the route. The kernel needs some hundred microseconds, or more on a busy
/// machine.
const DELIVERY_LIMIT: Duration = Duration::from_secs(5);

// From linux/if_link.h, as far as `libc` does not have them.
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

#[cfg(test)]
mod tests;
