//! One way to bring a stack up: a wire is opened, and a shard put at each of its queues. What runs them
//! is [`ShardThreads`](crate::ShardThreads).

use whimbrel_base::Secrets;
use whimbrel_stack::{InterfaceAddress, Route, Shard, ShardConfig};
use whimbrel_tcp::Tunables;

use crate::device::{AnyDevice, Device, boxed};
use crate::{
    Clock, DuplicateAddressDetection, GroupKey, MemEnd, MemWire, Port, Steered, Tap, Trace, Waker,
    WireError, Worker,
};
#[cfg(target_os = "linux")]
use crate::{Stop, WireSpec};

/// What a stack is to be.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// By which rules it goes.
    pub tunables: Tunables,
    /// Its keys; those of its cookies are the group's, if there is one.
    pub secrets: Secrets,
    /// The addresses of the stack, those of the wire among them.
    pub addresses: Vec<InterfaceAddress>,
    /// Its ways beyond their networks.
    pub routes: Vec<Route>,
    /// Whether others on the wire are asked for the addresses first.
    pub dad: DuplicateAddressDetection,
    /// The group whose handshakes it completes.
    pub group: Option<GroupKey>,
}

#[cfg(target_os = "linux")]
impl StackConfig {
    /// A stack with the addresses and routes of this wire, in no group.
    pub fn new(wire: &WireSpec, tunables: Tunables, secrets: Secrets) -> Self {
        let (addresses, routes) = (wire.addresses().to_vec(), wire.routes());
        Self { tunables, secrets, addresses, routes, dad: wire.dad(), group: None }
    }
}

/// A shard of a stack with its queue of the wire: all but the application.
#[derive(Debug)]
pub struct StackShard {
    /// Its number, from 0 on: that of its queue.
    pub number: usize,
    /// The host of this queue.
    pub shard: Shard,
    /// The queue of the wire, with the way to the other shards.
    pub device: Steered,
    /// What wakes its worker.
    pub waker: Waker,
    /// The clock that all shards of the stack have.
    pub clock: Clock,
    /// A capture of what passes between the two.
    pub tap: Option<Tap>,
    /// A trace of what becomes of its connections.
    pub trace: Option<Trace>,
}

/// What drives a [`StackShard`] for an application.
pub type StackWorker<P> = Worker<Steered, P>;

impl StackShard {
    /// A worker for this application.
    pub fn worker<P: Port>(self, port: P) -> StackWorker<P> {
        let Self { shard, device, waker, clock, tap, trace, .. } = self;
        Worker::new(device, shard, port, clock, waker).with_tap(tap).with_trace(trace)
    }
}

/// Opens the wire, with a shard at each of its queues. `clock` is their time; `done` is set when a wire
/// that ends, a capture, has ended.
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

/// The same over devices of whatever kind: the queues of one wire, in the order in which they are
/// [computed](crate::steering), each with what wakes its worker.
pub fn open_devices(
    mut devices: Vec<AnyDevice>,
    wakers: Vec<Waker>,
    clock: Clock,
    config: StackConfig,
) -> Result<Vec<StackShard>, WireError> {
    config.dad.check(&mut devices, &config.addresses)?;
    assemble(devices, wakers, clock, config)
}

/// The same at one end of a wire inside the process, with so many shards (1 ..= 256).
pub fn open_mem(
    end: MemEnd,
    shards: u16,
    config: StackConfig,
) -> Result<Vec<StackShard>, WireError> {
    let devices = end.open(shards)?;
    let clock = devices.first().map_or_else(Clock::start, MemWire::clock);
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
        Ok(StackShard { number, shard, device, waker, clock, tap: None, trace: None })
    };
    devices.enumerate().map(shard).collect()
}
