//! Runs a client, and in this process its server where it has no other, over whatever wire.
//!
//! The applications are the same on every wire; what differs is who moves their octets: a stack in
//! memory, a stack over a device, or the kernel.

use std::time::Duration;

use whimbrel_apps::{Model, Transport};
use whimbrel_io::signals::Signals;
use whimbrel_io::sys::{CpuTime, cpu_time};
use whimbrel_io::{Clock, Stop, WireSpec};
use whimbrel_link::LinkCounters;
use whimbrel_stack::shard::{Census, StateCounts};
use whimbrel_stack::{Capabilities, Shard};
use whimbrel_tcp::{Counters, Instant};
use whimbrel_wire::Endpoint;

use crate::failure::Failure;
use crate::options::Ground;

mod device;
pub(crate) mod kernel;
pub(crate) mod mem;
mod net;
mod port;

pub(crate) use net::KernelNet;

/// A client to run, and the server that it needs if nobody else is there.
pub(crate) trait Job {
    /// The client.
    type Client<T: Transport>: Model<T>;
    /// The server.
    type Server<T: Transport>: Model<T>;
    /// What is left of the client at the end.
    type Outcome;

    /// A client of the server at `target`.
    fn client<T: Transport>(&self, target: Endpoint) -> Self::Client<T>;

    /// A server for it.
    fn server<T: Transport>(&self) -> Self::Server<T>;

    /// Called every now and then while the client runs.
    fn watch<T: Transport>(&mut self, client: &Self::Client<T>, now: Instant);

    /// The run is over, by itself or because somebody interrupted it.
    fn end<T: Transport>(&mut self, client: &mut Self::Client<T>, net: &mut T, now: Instant);

    /// What is left of the client.
    fn outcome<T: Transport>(&self, client: Self::Client<T>) -> Self::Outcome;
}

/// A run that is over.
pub(crate) struct Ran<O> {
    /// What is left of the client.
    pub(crate) outcome: O,
    /// Its stack, unless it was the kernel's.
    pub(crate) client: Option<StackState>,
    /// The stack of its server, if that was in this process and not the kernel's.
    pub(crate) server: Option<StackState>,
    /// The links between them, there and back, if they were in memory.
    pub(crate) links: Option<[LinkCounters; 2]>,
    /// The server.
    pub(crate) target: Endpoint,
    /// What keys and chance came from, if not from the system.
    pub(crate) seed: Option<u64>,
    /// What the client's device did for it, unless its stack was the kernel's.
    pub(crate) offloads: Option<Capabilities>,
    /// What processors did for this process meanwhile, if the system tells.
    pub(crate) effort: Option<Effort>,
}

impl<O> Ran<O> {
    /// A run over the kernel's sockets, of whose stack nothing is known here.
    pub(crate) fn over_the_kernel(outcome: O, target: Endpoint) -> Self {
        Self {
            outcome,
            client: None,
            server: None,
            links: None,
            target,
            seed: None,
            offloads: None,
            effort: None,
        }
    }
}

/// What processors did for this process, both sides of a connection if both are in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// What they did.
    pub(crate) cpu: CpuTime,
    /// In how long, by the machine's clock.
    pub(crate) elapsed: Duration,
}

/// What a stack counted, and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct StackState {
    /// What it counted.
    pub(crate) counters: Counters,
    /// What it holds at the end of the run, when the client has let go of what was open.
    pub(crate) census: Census,
    /// In which states that is.
    pub(crate) states: StateCounts,
    /// The ports that it draws from, the last one included.
    pub(crate) ports: (u16, u16),
}

impl StackState {
    fn of(shard: &Shard) -> Self {
        let tunables = shard.tunables();
        Self {
            counters: shard.counters().clone(),
            census: shard.census(),
            states: shard.states(),
            ports: (tunables.port_first, tunables.port_last),
        }
    }
}

/// Runs `job` against `target`, or against its own server if there is none.
pub(crate) fn run<J: Job>(
    job: &mut J,
    ground: &Ground,
    target: Option<Endpoint>,
) -> Result<Ran<J::Outcome>, Failure> {
    target.map_or(Ok(()), |target| ground.check_target(target))?;
    measure(|stop| match (&ground.wire, target) {
        (WireSpec::Mem(link), _) => mem::run(job, ground, link, stop),
        (WireSpec::Kernel, target) => kernel::run(job, target, stop),
        (wire, Some(target)) => device::run(job, ground, wire, target, stop),
        (_, None) => Err(Failure::usage("--wire", "give the address of the other side")),
    })
}

/// Runs what is ended by signals, too, and says what processors did meanwhile.
pub(crate) fn measure<O>(
    run: impl FnOnce(&Stop) -> Result<Ran<O>, Failure>,
) -> Result<Ran<O>, Failure> {
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let (began, before) = (Clock::start(), cpu_time());
    let mut ran = run(&stop)?;
    ran.effort = before.and_then(|before| Ok((before, cpu_time()?))).ok().map(|(before, after)| {
        let cpu = CpuTime { user: after.user - before.user, system: after.system - before.system };
        Effort { cpu, elapsed: began.now().since(Instant::ZERO) }
    });
    Ok(ran)
}

/// Events dealt with in one turn, before frames have their turn again.
const BUDGET: usize = 256;
