//! Streams of datagrams: to closed ports, to sockets that do not read, errors about unsent segments,
//! and unknown protocols.

use bytes::Bytes;
use whimbrel_stack::udp::{Bind, Local, Sharing};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Endpoint, Family, IcmpMessage, Ipv4Header, Protocol, UdpHeader};

use super::{Victim, message, numbers, packet};
use crate::Failure;
use crate::churn::{CLIENTS, SERVER, address};

impl Victim {
    /// A host with a socket without a reader.
    pub(super) fn receiving() -> Result<Self, Failure> {
        let (mut victim, _) = Self::listening(Tunables::default(), 1)?;
        victim.shard.udp_bind(&Bind::new(Local::Both, OPEN))?;
        Ok(victim)
    }

    /// A host whose socket is read after each burst.
    pub(super) fn reading() -> Result<Self, Failure> {
        let (mut victim, _) = Self::listening(Tunables::default(), 1)?;
        let socket = victim.shard.udp_bind(&Bind::new(Local::Both, OPEN))?;
        victim.application = Some(Box::new(move |shard, _| {
            while shard.poll_event().is_some() {}
            while let Some(received) = shard.udp_recv(socket) {
                drop(std::hint::black_box(received));
            }
        }));
        Ok(victim)
    }

    /// A host with a thousand sockets at one port, none of which takes what strangers send.
    pub(super) fn sharing() -> Result<Self, Failure> {
        let (mut victim, _) = Self::listening(Tunables::default(), 1)?;
        for peer in 0..1_000 {
            let own = Local::Every(Family::V4);
            let bind = Bind { sharing: Sharing::Shared, ..Bind::new(own, OPEN) };
            let socket = victim.shard.udp_bind(&bind)?;
            let peer = Endpoint::new(address(CLIENTS + 100_000 + peer), OPEN);
            victim.shard.udp_connect(socket, peer)?;
        }
        Ok(victim)
    }

    /// A host whose application takes unclaimed packets after each burst.
    pub(super) fn observed() -> Result<Self, Failure> {
        let mut victim = Self::unobserved()?;
        victim.application = Some(Box::new(|shard, _| {
            while let Some(packet) = shard.poll_unclaimed() {
                drop(std::hint::black_box::<Bytes>(packet));
            }
        }));
        Ok(victim)
    }

    /// A host whose application never takes unclaimed packets.
    pub(super) fn unobserved() -> Result<Self, Failure> {
        let (mut victim, _) = Self::listening(Tunables::default(), 1)?;
        victim.shard.keep_unclaimed(128);
        Ok(victim)
    }
}

/// For a port that no socket has.
pub(super) fn strays(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| datagram(it, OPEN + 1)).collect()
}

pub(super) fn to_socket(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| datagram(it, OPEN)).collect()
}

/// About echo replies that the host never sent, to ever other hosts.
pub(super) fn reply_errors(_: &Victim) -> Vec<Vec<u8>> {
    let error = |it: u32| {
        let [own, other] = [SERVER, CLIENTS + it].map(|host| address(host).v4_bytes().into());
        let mut quoted = vec![0; Ipv4Header::LEN + 8];
        Ipv4Header::new(own, other, Protocol::ICMP, 1_408).emit(&mut quoted);
        let reply = IcmpMessage::EchoReply { identifier: it as u16, sequence: 1, data: &[] };
        reply.emit(&mut quoted[Ipv4Header::LEN..]);
        let next_hop_mtu = 1_400 - (it % 800) as u16;
        message(&IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted: &quoted })
    };
    numbers().map(error).collect()
}

/// About datagrams that the socket never sent, to ever other hosts.
pub(super) fn errors(_: &Victim) -> Vec<Vec<u8>> {
    let error = |it: u32| {
        let [own, other] = [SERVER, CLIENTS + it].map(|host| address(host).v4_bytes().into());
        let mut quoted = vec![0; Ipv4Header::LEN + UdpHeader::LEN];
        Ipv4Header::new(own, other, Protocol::UDP, UdpHeader::LEN + 1_400).emit(&mut quoted);
        let header = UdpHeader { src_port: OPEN, dst_port: 4_000 };
        header.emit(1_400, &mut quoted[Ipv4Header::LEN..]);
        let next_hop_mtu = 1_400 - (it % 800) as u16;
        message(&IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted: &quoted })
    };
    numbers().map(error).collect()
}

pub(super) fn of_no_protocol(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| packet(1 + it, Protocol(253), None, &[7; 64])).collect()
}

/// From the client of this number.
fn datagram(client: u32, dst_port: u16) -> Vec<u8> {
    let data = [7; 64];
    let mut bytes = vec![0; UdpHeader::LEN + data.len()];
    let header = UdpHeader { src_port: 4_000, dst_port };
    header.emit_datagram(address(CLIENTS + client), address(SERVER), &data, &mut bytes);
    packet(client, Protocol::UDP, None, &bytes)
}

/// The port of the sockets.
const OPEN: u16 = 53;
