//! Whether somebody else on a wire has the stack's addresses, asked before they are used (RFC 5227,
//! RFC 4862 5.4).
//!
//! What is asked and what an answer means is the shard's ([`Shard::check_addresses`]); here a shard of
//! its own does that over all devices of a stack, before the stack begins.

use std::io;

use whimbrel_base::Secrets;
use whimbrel_stack::link::{AddressCheck, AddressConflict};
use whimbrel_stack::{InterfaceAddress, Medium, Shard, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, MacAddress};

#[cfg(target_os = "linux")]
use crate::sys::{Interest, PollFd, ppoll};
use crate::{AnyDevice, Clock};

/// Whether others are asked for the stack's addresses before it uses them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DuplicateAddressDetection {
    /// They are, for 0.9 s (default).
    #[default]
    On,
    /// They are not: for tests, and where nobody else can be.
    Off,
}

/// Why the stack may not use its addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressCheckError {
    /// Another station has one of them.
    #[error(
        "{addr} is in use by the station {station}: give another address, or take it from that \
         station (dad=off asks nobody)"
    )]
    Conflict {
        /// The address that was asked about.
        addr: Address,
        /// The station that answered for it.
        station: MacAddress,
    },
    /// The addresses make no host.
    #[error(transparent)]
    Config(#[from] whimbrel_stack::shard::ConfigError),
    /// The device is lost, or cannot be waited for.
    #[error("cannot ask whether the stack's addresses are free: {0}")]
    Device(#[from] io::Error),
}

impl DuplicateAddressDetection {
    /// Asks over these devices, the queues of one wire, whether `addresses` are free, and waits for the
    /// answer: 0.9 s. Without Ethernet there is nobody to ask.
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
            // It says nothing that needs a secret.
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
                    // What the device does not take now is asked again.
                    batch.consume(batch.pending().len());
                }
            }
            let timeout = shard.next_deadline().map(|deadline| clock.until(deadline));
            wait(devices, timeout)?;
        }
    }
}

/// Waits until something is due. No device there has Ethernet, so that nobody is asked yet.
#[cfg(not(target_os = "linux"))]
fn wait(_: &[AnyDevice], timeout: Option<std::time::Duration>) -> io::Result<()> {
    std::thread::sleep(timeout.unwrap_or_default());
    Ok(())
}

/// Waits until a frame is there, or something is due.
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

/// As many questions as leave at once, of 64 addresses.
const BATCH: usize = 64;
