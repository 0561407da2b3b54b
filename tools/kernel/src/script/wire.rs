//! The cable of a kernel under test: a TUN device whose other end is the script.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use whimbrel_base::packet::TxSegment;
use whimbrel_io::netlink::{Netlink, interface_index};
use whimbrel_io::{Device, Offload, Tun, TunConfig};
use whimbrel_script::host::Network;
use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Family};

use super::KernelHostError;

/// The device and the routes, in the calling thread's network namespace.
pub(super) fn open(network: &Network) -> Result<Tun, KernelHostError> {
    let beyond = InterfaceAddress { addr: network.gateway, prefix_len: network.prefix_len };
    let config = TunConfig::new(NAME, vec![beyond])
        .and_then(|config| config.with_hosts(&[network.local]))
        .and_then(|config| config.with_mtu(network.mtu))?
        // Packets as they would stand on a cable.
        .with_offload(Offload::Off);
    let tun = Tun::open(&config)?;
    let refused = |error| KernelHostError::system("route packets to the peer", error);
    let index = interface_index(config.name()).map_err(refused)?;
    let everywhere = InterfaceAddress { addr: any(network.gateway.family()), prefix_len: 0 };
    Netlink::open()
        .and_then(|mut netlink| netlink.add_route_by(index, everywhere, network.gateway))
        .map_err(refused)?;
    await_local_route(network.local).map_err(refused)?;
    Ok(tun)
}

/// The kernel takes an IPv6 address at once and packets to it a little later, when a worker of its
/// own has entered the route.
fn await_local_route(local: Address) -> io::Result<()> {
    if local.is_v4() {
        return Ok(());
    }
    let digits: String = local.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    let route = format!("{digits} 80 ");
    let begun = Instant::now();
    while !fs::read_to_string("/proc/thread-self/net/ipv6_route")?.contains(&route) {
        if begun.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// A packet from the peer.
pub(super) fn send(tun: &mut Tun, packet: &[u8]) -> io::Result<()> {
    let mut segment = TxSegment::new();
    // The first of its slices always has room.
    let _ = segment.payload.push(Bytes::copy_from_slice(packet));
    tun.send(&segment).map(|_| ())
}

/// Tells `sink` of every packet that has left. Whether there may be more.
pub(super) fn receive(tun: &mut Tun, mut sink: impl FnMut(&[u8])) -> io::Result<bool> {
    let taken = tun.rx_burst(&mut |burst| {
        for frame in burst.iter().filter(|frame| !is_noise(frame.octets)) {
            sink(frame.octets);
        }
    })?;
    Ok(taken > 0)
}

/// Whether the kernel sent it of its own accord: router solicitations, reports of groups. All of
/// that is multicast, and nothing that a script expects is.
fn is_noise(packet: &[u8]) -> bool {
    let at = |at: usize| packet.get(at..).unwrap_or_default();
    let destination = match packet.first().map(|octet| octet >> 4) {
        Some(4) => at(16).first_chunk().copied().map(Address::from_v4_octets),
        _ => at(24).first_chunk().copied().map(Address::from_octets),
    };
    destination.is_none_or(|destination| destination.is_multicast_or_broadcast())
}

fn any(family: Family) -> Address {
    match family {
        Family::V4 => Address::from_v4_octets([0; 4]),
        Family::V6 => Address::from_octets([0; 16]),
    }
}

/// Every host has a namespace of its own, so all may have the same.
const NAME: &str = "tun0";
const PATIENCE: Duration = Duration::from_secs(2);
