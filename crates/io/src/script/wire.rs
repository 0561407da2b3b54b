//! The cable of a kernel under test: a TUN device whose other end is the script.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use whimbrel_sim::script::host::Network;
use whimbrel_stack::InterfaceAddress;
use whimbrel_tcp::TxSegment;
use whimbrel_wire::{Address, Family};

use super::KernelHostError;
use crate::netlink::Netlink;
use crate::sys::{self, Interest, PollFd};
use crate::{Device, Offload, Stop, Tun, TunConfig};

/// A TUN device that one thread reads while another writes.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    tun: Arc<Mutex<Tun>>,
}

impl Wire {
    /// Makes the device and the routes in the calling thread's network namespace.
    pub(super) fn open(network: &Network) -> Result<Self, KernelHostError> {
        let beyond = InterfaceAddress { addr: network.gateway, prefix_len: network.prefix_len };
        let config = TunConfig::new(NAME, vec![beyond])
            .and_then(|config| config.with_hosts(&[network.local]))
            .and_then(|config| config.with_mtu(network.mtu))?
            // Packets as they would stand on a cable.
            .with_offload(Offload::Off);
        let tun = Tun::open(&config)?;
        let refused = |error| KernelHostError::system("route packets to the peer", error);
        let index = sys::interface_index(config.name()).map_err(refused)?;
        let everywhere = InterfaceAddress { addr: any(network.gateway.family()), prefix_len: 0 };
        Netlink::open()
            .and_then(|mut netlink| netlink.add_route_by(index, everywhere, network.gateway))
            .map_err(refused)?;
        Ok(Self { tun: Arc::new(Mutex::new(tun)) })
    }

    /// A packet from the peer.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        let mut segment = TxSegment::new();
        // The first of its slices always has room.
        let _ = segment.payload.push(Bytes::copy_from_slice(packet));
        self.lock().send(&segment).map(|_| ())
    }

    /// Tells `sink` of every packet that leaves and when, until `stop` or the device's end.
    pub(super) fn read(&self, stop: &Stop, mut sink: impl FnMut(Instant, &[u8])) -> io::Result<()> {
        let ready = self.duplicate()?;
        while !stop.is_set() {
            let mut fds = [PollFd::new(&ready, Interest::Read), PollFd::new(stop, Interest::Read)];
            sys::ppoll(&mut fds, None)?;
            let now = Instant::now();
            self.lock().rx_burst(&mut |burst| {
                for frame in burst.iter().filter(|frame| !is_noise(frame.octets)) {
                    sink(now, frame.octets);
                }
            })?;
        }
        Ok(())
    }

    /// A descriptor to wait on without keeping the writer out.
    fn duplicate(&self) -> io::Result<OwnedFd> {
        self.lock().as_fd().try_clone_to_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Tun> {
        self.tun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the kernel sent it of its own accord: router solicitations, reports of groups. All of
/// that is multicast, and nothing that a script expects is.
fn is_noise(packet: &[u8]) -> bool {
    let destination = match packet.first().map(|octet| octet >> 4) {
        Some(4) => {
            packet.get(16..).and_then(<[u8]>::first_chunk).copied().map(Address::from_v4_octets)
        }
        _ => packet.get(24..).and_then(<[u8]>::first_chunk).copied().map(Address::from_octets),
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
