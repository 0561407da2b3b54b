//! Datagrams by a stack on a wire: one of its sockets for each endpoint inside.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::{
    Bind, DatagramError, Fragmenting, Local, Received, SendOptions, SocketError,
};
use whimbrel_stack::{SendTo, UdpError, UdpHandle};
use whimbrel_wire::{Endpoint, Family, Ipv4Header, Ipv6Header, UdpHeader};

use super::super::far::{EXPIRED, FarDatagrams, ReadySocket, Refusal, SentError, TOO_LONG};
use super::WireNet;
use crate::failure::Failure;

/// Sockets of the stack, by their place in it.
pub(in crate::run) struct WireDatagrams {
    numbers: BTreeMap<u32, u32>,
    /// Sockets that were reported last.
    again: Vec<UdpHandle>,
}

impl FarDatagrams<WireNet> for WireDatagrams {
    type Socket = UdpHandle;

    fn new() -> Result<Self, Failure> {
        Ok(Self { numbers: BTreeMap::new(), again: Vec::new() })
    }

    fn bind(&mut self, net: &mut WireNet, at: Endpoint) -> io::Result<UdpHandle> {
        let local = match at.addr.is_unspecified() {
            true => Local::Every(at.addr.family()),
            false => Local::Address(at.addr),
        };
        let shard = net.shard_mut();
        let socket = shard.udp_bind(&Bind::new(local, at.port)).map_err(io::Error::other)?;
        shard.udp_keep_errors(socket);
        Ok(socket)
    }

    fn watch(&mut self, socket: &UdpHandle, number: u32) -> io::Result<()> {
        self.numbers.insert(socket.index(), number);
        Ok(())
    }

    fn close(&mut self, net: &mut WireNet, socket: UdpHandle) {
        self.numbers.remove(&socket.index());
        net.shard_mut().udp_close(socket);
    }

    fn send(
        &mut self,
        net: &mut WireNet,
        socket: &mut UdpHandle,
        datagram: &Received,
        to: Endpoint,
        hops: Option<u8>,
    ) -> Result<(), Refusal> {
        // What the program does not let others cut is not cut behind the gateway either.
        let is_whole = to.addr.is_v4() && datagram.dont_fragment;
        let fragmenting = if is_whole { Fragmenting::Refused } else { Fragmenting::Allowed };
        let options = SendOptions::new().with_class(datagram.class).with_fragmenting(fragmenting);
        let options = hops.map_or(options, |hops| options.with_hop_limit(hops));
        let send = SendTo::peer(to).with_options(options);
        let sent = net.shard_mut().udp_send(*socket, datagram.data.clone(), &send);
        sent.map_err(|error| refusal_of(&error, to.addr.family()))
    }

    fn ready(&mut self, net: &mut WireNet) -> Vec<ReadySocket> {
        net.look();
        // An event comes once, but what was read of a socket may be a part.
        self.again.retain(|socket| net.worker.shard().udp_peek(*socket).is_some());
        self.again.extend(net.datagrams.drain(..));
        let number = |socket: &UdpHandle| self.numbers.get(&socket.index()).copied();
        let numbers = self.again.iter().filter_map(number);
        numbers.map(|number| ReadySocket { number, has_errors: true }).collect()
    }

    fn receive(&mut self, net: &mut WireNet, socket: &UdpHandle) -> Option<(Bytes, Endpoint)> {
        let Received { data, from, .. } = net.shard_mut().udp_recv(*socket)?;
        Some((data, from))
    }

    fn take_error(&mut self, net: &mut WireNet, socket: &UdpHandle) -> Option<SentError> {
        let report = net.shard_mut().udp_take_report(*socket)?;
        let DatagramError { to, reporter, error, .. } = report;
        // What did not leave, the gateway itself reports.
        let reporter = Some(reporter).filter(|it| !net.is_own(*it));
        Some(SentError { to, meaning: meaning(error), reporter, data: Bytes::new() })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Answer to the program for a datagram that the stack refused.
fn refusal_of(error: &UdpError, family: Family) -> Refusal {
    match *error {
        UdpError::NoRoute(_) | UdpError::NoSource(_) => {
            (Some(Unreachable::Network), "network unreachable")
        }
        UdpError::TooLong { most, .. } => (Some(too_big(most + UdpHeader::LEN, family)), TOO_LONG),
        UdpError::Broadcast(_) | UdpError::Multicast(_) => {
            (Some(Unreachable::Prohibited), "denied")
        }
        UdpError::Queue(_) => (None, "no room for a datagram"),
        _ => (Some(Unreachable::Host), "host unreachable"),
    }
}

/// The answer where the path carries this many bytes behind the IP header.
pub(super) fn too_big(most: usize, family: Family) -> Unreachable {
    let header = match family {
        Family::V4 => Ipv4Header::LEN,
        Family::V6 => Ipv6Header::LEN,
    };
    Unreachable::TooBig { mtu: u16::try_from(most + header).unwrap_or(u16::MAX) }
}

/// Answer to the program for an ICMP error.
pub(super) fn meaning(error: SocketError) -> Option<(Unreachable, &'static str)> {
    Some(match error {
        SocketError::PortUnreachable => (Unreachable::Port, "port unreachable"),
        SocketError::HostUnreachable => (Unreachable::Host, "host unreachable"),
        SocketError::NetworkUnreachable => (Unreachable::Network, "network unreachable"),
        SocketError::TimeExceeded => (Unreachable::HopLimit, EXPIRED),
        SocketError::Prohibited => (Unreachable::Prohibited, "forbidden on the way"),
        SocketError::TooBig { mtu } => (Unreachable::TooBig { mtu }, TOO_LONG),
        _ => return None,
    })
}
