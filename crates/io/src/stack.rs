//! Opens a wire and creates a shard for each of its queues. [`ShardThreads`](crate::ShardThreads) runs
//! them.

use whimbrel_base::Secrets;
use whimbrel_stack::{InterfaceAddress, Route, Shard, ShardConfig};
use whimbrel_tcp::Tunables;

use crate::device::{AnyDevice, Device, boxed};
use crate::{
    Clock, DuplicateAddressDetection, GroupKey, Inspections, Inspector, MemEnd, MemWire, Port,
    Steered, Tap, Trace, Waker, WireError, Worker,
};
#[cfg(target_os = "linux")]
use crate::{Stop, WireSpec};

/// Configuration of a stack.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Tunables.
    pub tunables: Tunables,
    /// Keys; a group's cookie key replaces that for cookies.
    pub secrets: Secrets,
    /// Addresses of the stack, including those of the wire.
    pub addresses: Vec<InterfaceAddress>,
    /// Routes in addition to those to its networks.
    pub routes: Vec<Route>,
    /// Duplicate address detection before the start.
    pub dad: DuplicateAddressDetection,
    /// Key of the group whose handshakes it completes.
    pub group: Option<GroupKey>,
}

#[cfg(target_os = "linux")]
impl StackConfig {
    /// Creates a configuration with the addresses and routes of this wire, without a group.
    pub fn new(wire: &WireSpec, tunables: Tunables, secrets: Secrets) -> Self {
        let (addresses, routes) = (wire.addresses().to_vec(), wire.routes());
        Self { tunables, secrets, addresses, routes, dad: wire.dad(), group: None }
    }
}

/// A shard of a stack with its queue of the wire, without the application.
#[derive(Debug)]
pub struct StackShard {
    /// Number of the shard and its queue, from 0.
    pub number: usize,
    /// Host of this queue.
    pub shard: Shard,
    /// Queue of the wire, with forwarding to the other shards.
    pub device: Steered,
    /// Waker of its worker.
    pub waker: Waker,
    /// Clock of all shards of the stack.
    pub clock: Clock,
    /// Capture of the frames between device and shard.
    pub tap: Option<Tap>,
    /// Trace of its connections.
    pub trace: Option<Trace>,
    /// Calls of other threads on it.
    pub inspections: Option<Inspections>,
}

/// Worker of a [`StackShard`] with an application's port.
pub type StackWorker<P> = Worker<Steered, P>;

impl StackShard {
    /// Returns a worker with this port.
    pub fn worker<P: Port>(self, port: P) -> StackWorker<P> {
        let Self { shard, device, waker, clock, tap, trace, inspections, .. } = self;
        let worker = Worker::new(device, shard, port, clock, waker);
        worker.with_tap(tap).with_trace(trace).with_inspections(inspections)
    }

    /// Lets other threads make calls on the shard.
    pub fn inspector(&mut self) -> Inspector {
        let (inspector, inspections) = Inspector::new(self.waker.clone());
        self.inspections = Some(inspections);
        inspector
    }
}

/// Opens the wire and creates a shard for each of its queues, with time from `clock`. `done` is set
/// when a finite wire, such as a capture, has ended.
#[cfg(target_os = "linux")]
pub fn open(
    wire: &WireSpec,
    config: StackConfig,
    clock: Clock,
    done: &Stop,
) -> Result<Vec<StackShard>, WireError> {
    let devices = wire.open(clock, done)?;
    let wakers = devices.iter().map(|_| Waker::new()).collect::<std::io::Result<_>>()?;
    open_devices(devices, wakers, clock, config)
}

/// Creates shards over devices of any kind: the queues of one wire, in the order of
/// [`steering`](crate::steering), each with its worker's waker.
pub fn open_devices(
    mut devices: Vec<AnyDevice>,
    wakers: Vec<Waker>,
    clock: Clock,
    config: StackConfig,
) -> Result<Vec<StackShard>, WireError> {
    config.dad.check(&mut devices, &config.addresses)?;
    assemble(devices, wakers, clock, config)
}

/// Creates `shards` shards (1 to 256) at one end of a wire inside the process. They follow `clock`, or
/// the clock of the other end if that is open.
pub fn open_mem(
    end: MemEnd,
    shards: u16,
    clock: Clock,
    config: StackConfig,
) -> Result<Vec<StackShard>, WireError> {
    let devices = end.open(shards, clock)?;
    let clock = devices.first().map_or(clock, MemWire::clock);
    let wakers = devices.iter().map(MemWire::waker).collect();
    assemble(boxed(devices), wakers, clock, config)
}

fn assemble(
    devices: Vec<AnyDevice>,
    wakers: Vec<Waker>,
    clock: Clock,
    config: StackConfig,
) -> Result<Vec<StackShard>, WireError> {
    let StackConfig { tunables, mut secrets, addresses, routes, group, .. } = config;
    if let Some(key) = group {
        key.share(&mut secrets);
    }
    let devices = Steered::join(devices, &wakers).into_iter().zip(wakers);
    let shard = |(number, (device, waker)): (usize, (Steered, Waker))| {
        let mut shard = Shard::new(ShardConfig {
            tunables: tunables.clone(),
            secrets,
            capabilities: device.capabilities(),
            addresses: addresses.clone(),
            routes: routes.clone(),
        })?;
        if let Some(key) = group {
            key.join(&mut shard);
        }
        let (tap, trace, inspections) = (None, None, None);
        Ok(StackShard { number, shard, device, waker, clock, tap, trace, inspections })
    };
    devices.enumerate().map(shard).collect()
}
