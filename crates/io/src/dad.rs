//! Duplicate address detection before a stack begins (RFC 5227, RFC 4862 5.4).
//!
//! The shard implements the protocol ([`Shard::check_addresses`]). Here a temporary shard runs it over
//! all devices of a stack.

use std::io;

use whimbrel_base::Secrets;
use whimbrel_stack::link::{AddressCheck, AddressConflict};
use whimbrel_stack::{InterfaceAddress, Medium, Shard, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, MacAddress};

#[cfg(target_os = "linux")]
use crate::sys::{Interest, PollFd, ppoll};
use crate::{AnyDevice, Clock};

/// Duplicate address detection before the stack uses its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DuplicateAddressDetection {
    /// Check for 0.9 s (default).
    #[default]
    On,
    /// No check: for tests, and for wires without other hosts.
    Off,
}

/// Reason why the stack may not use its addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressCheckError {
    /// Another station has one of them.
    #[error(
        "{addr} is in use by the station {station}: give another address, or take it from that \
         station (dad=off skips the check)"
    )]
    Conflict {
        /// The checked address.
        addr: Address,
        /// Station that has it.
        station: MacAddress,
    },
    /// The addresses are not valid for a host.
    #[error(transparent)]
    Config(#[from] whimbrel_stack::shard::ConfigError),
    /// The device is lost, or waiting for it failed.
    #[error("cannot ask whether the stack's addresses are free: {0}")]
    Device(#[from] io::Error),
}

impl DuplicateAddressDetection {
    /// Checks over these devices, the queues of one wire, that `addresses` are free. This takes 0.9 s.
    /// Without Ethernet there is no check.
    pub fn check(
        self,
        devices: &mut [AnyDevice],
        addresses: &[InterfaceAddress],
    ) -> Result<(), AddressCheckError> {
        let Some(capabilities) = devices.first().map(|first| first.capabilities()) else {
            return Ok(());
        };
        if self == Self::Off || capabilities.medium == Medium::Ip {
            return Ok(());
        }
        let mut shard = Shard::new(ShardConfig {
            tunables: Tunables::default(),
            // It sends nothing that needs a secret.
            secrets: Secrets::from_seed(0),
            capabilities,
            addresses: addresses.to_vec(),
            routes: Vec::new(),
        })?;
        shard.check_addresses();
        let (clock, mut batch) = (Clock::start(), TxBatch::new(BATCH));
        loop {
            let now = clock.now();
            for device in &mut *devices {
                device.rx_burst(&mut |burst| shard.rx(now, burst))?;
            }
            shard.advance(now, BATCH);
            match shard.address_check() {
                AddressCheck::Done => return Ok(()),
                AddressCheck::Conflict(AddressConflict { addr, station }) => {
                    return Err(AddressCheckError::Conflict { addr, station });
                }
                AddressCheck::UnderWay => {}
            }
            if let Some(first) = devices.first_mut() {
                while shard.tx(&mut batch) || !batch.is_empty() {
                    first.tx_burst(&mut batch)?;
                    // Requests that the device does not take now are repeated.
                    batch.consume(batch.pending().len());
                }
            }
            let timeout = shard.next_deadline().map(|deadline| clock.until(deadline));
            wait(devices, timeout)?;
        }
    }
}

/// Waits for a deadline. No device has Ethernet here, so that there is no check.
#[cfg(not(target_os = "linux"))]
fn wait(_: &[AnyDevice], timeout: Option<std::time::Duration>) -> io::Result<()> {
    std::thread::sleep(timeout.unwrap_or_default());
    Ok(())
}

/// Waits for a frame or a deadline.
#[cfg(target_os = "linux")]
fn wait(devices: &mut [AnyDevice], timeout: Option<std::time::Duration>) -> io::Result<()> {
    let mut fds: Vec<_> =
        devices.iter().map(|device| PollFd::new(device, Interest::Read)).collect();
    ppoll(&mut fds, timeout)?;
    let broken: Vec<_> = fds.iter().map(PollFd::is_broken).collect();
    for (device, _) in devices.iter_mut().zip(broken).filter(|(_, broken)| *broken) {
        device.on_poll_error()?;
    }
    Ok(())
}

/// Segments of a batch: the requests for 64 addresses that leave at once.
const BATCH: usize = 64;
