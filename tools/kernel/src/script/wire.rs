//! The wire of a kernel under test: a TUN device whose other end is the script.

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

/// Opens the device and sets the routes, in the calling thread's network namespace.
pub(super) fn open(network: &Network) -> Result<Tun, KernelHostError> {
    let beyond = InterfaceAddress { addr: network.gateway, prefix_len: network.prefix_len };
    let config = TunConfig::new(NAME, vec![beyond])
        .and_then(|config| config.with_hosts(&[network.local]))
        .and_then(|config| config.with_mtu(network.mtu))?
        // Single packets, as on a cable.
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

/// Waits for the route to an IPv6 address. The kernel accepts the address at once, and packets to
/// it when a work item has added the route.
fn await_local_route(local: Address) -> io::Result<()> {
    if local.is_v4() {
        return Ok(());
    }
    let digits: String = local.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
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

/// Sends a packet from the peer.
pub(super) fn send(tun: &mut Tun, packet: &[u8]) -> io::Result<()> {
    let mut segment = TxSegment::new();
    // The first of its slices always has room.
    let _ = segment.payload.push(Bytes::copy_from_slice(packet));
    tun.send(&segment).map(|_| ())
}

/// Passes every packet that has left to `sink`. Returns whether there may be more.
pub(super) fn receive(tun: &mut Tun, mut sink: impl FnMut(&[u8])) -> io::Result<bool> {
    let taken = tun.rx_burst(&mut |burst| {
        for frame in burst.iter().filter(|frame| !is_noise(frame.bytes)) {
            sink(frame.bytes);
        }
    })?;
    Ok(taken > 0)
}

/// True if the kernel sent it on its own: router solicitations and group reports. These are
/// multicast, which scripts never expect.
fn is_noise(packet: &[u8]) -> bool {
    let at = |at: usize| packet.get(at..).unwrap_or_default();
    let destination = match packet.first().map(|byte| byte >> 4) {
        Some(4) => at(16).first_chunk().copied().map(Address::from_v4_bytes),
        _ => at(24).first_chunk().copied().map(Address::from_bytes),
    };
    destination.is_none_or(|destination| destination.is_multicast_or_broadcast())
}

fn any(family: Family) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([0; 4]),
        Family::V6 => Address::from_bytes([0; 16]),
    }
}

/// Name of the interface. Every host has its own namespace, so all share the name.
const NAME: &str = "tun0";
const PATIENCE: Duration = Duration::from_secs(2);
