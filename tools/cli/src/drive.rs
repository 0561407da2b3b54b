//! Runs a client, and in this process its server where it has no other, over whatever wire.
//!
//! The applications are the same on every wire. Their bytes are moved by a stack in memory, a stack
//! over a device, or the kernel.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use whimbrel_apps::{Model, Part, Transport};
use whimbrel_base::Instant;
use whimbrel_io::process::{CpuTime, cpu_time};
use whimbrel_io::signals::Signals;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Clock, Stop};
use whimbrel_link::{LinkCounters, Waits};
use whimbrel_stack::shard::{Census, StateCounts};
use whimbrel_stack::{Capabilities, Shard};
use whimbrel_tcp::Counters;
use whimbrel_wire::Endpoint;

use crate::failure::Failure;
use crate::options::StackSetup;
use crate::proc;

mod device;
mod kernel;
pub(crate) mod mem;
mod net;
mod port;

pub(crate) use net::{KernelNet, conn_error};

/// A client to run, and the server that it needs in this process, if any. On a stack of several shards
/// each has its own client, which does its share.
pub(crate) trait Job {
    type Client<T: Transport>: Model<T>;
    type Server<T: Transport>: Model<T>;
    /// Progress of a client.
    type Progress: Send;
    /// The result of one client, or of all.
    type Outcome: Send;

    /// A client of the server at `target`, which does this part.
    fn client<T: Transport>(&self, target: Endpoint, part: Part) -> Self::Client<T>;

    /// A server for it.
    fn server<T: Transport>(&self) -> Self::Server<T>;

    /// Number of Fast Open handshakes that the server in this process admits at a time.
    fn fast_opens(&self) -> u32 {
        0
    }

    /// Number of threads that share the work over the kernel's sockets.
    fn kernel_threads(&self) -> u32 {
        1
    }

    /// True if the progress of the clients is reported.
    fn is_followed(&self) -> bool;

    /// Returns the time after which the waits for links in memory are measured; `None`: they are not.
    fn measures_waits(&self) -> Option<Duration> {
        None
    }

    /// Progress of a client, and its transport's memory, if the transport exists yet.
    fn progress<T: Transport>(
        client: &Self::Client<T>,
        net: Option<&T>,
        now: Instant,
    ) -> Self::Progress;

    /// Regularly gets the progress of all clients. Returns the next command.
    fn watch(&mut self, courses: &[Self::Progress]) -> Watch;

    /// Ends the run, by itself or after an interruption.
    fn end<T: Transport>(client: Self::Client<T>, net: &mut T, now: Instant) -> Self::Outcome;

    /// Adds up the results of all clients; `None` if there was none.
    fn conclude(&mut self, parts: Vec<Self::Outcome>) -> Option<Self::Outcome>;
}

/// Commands of a run's watcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watch {
    /// Continue the run.
    GoOn,
    /// It ends now, as if a signal had interrupted it.
    End,
}

/// A run that is over.
pub(crate) struct FinishedRun<O> {
    /// The client's result.
    pub(crate) outcome: O,
    /// Its stack, unless it was the kernel's.
    pub(crate) client: Option<StackState>,
    /// The stack of its server, if that was in this process and not the kernel's.
    pub(crate) server: Option<StackState>,
    /// The links between them, there and back, if they were in memory.
    pub(crate) links: Option<[LinkCounters; 2]>,
    /// Times that frames waited for each of them, if these were measured.
    pub(crate) waits: [Option<Waits>; 2],
    /// Packets that came in by the wrong queue, of both sides.
    pub(crate) steering: SteeringCounters,
    pub(crate) target: Endpoint,
    /// Seed of keys and chance, unless the system gave them.
    pub(crate) seed: Option<u64>,
    /// Offloads of the client's device, unless its stack was the kernel's.
    pub(crate) offloads: Option<Capabilities>,
    /// Processor time of this process during the run, if the system reports it.
    pub(crate) effort: Option<ResourceUsage>,
    /// True if a signal ended it.
    pub(crate) is_interrupted: bool,
}

impl<O> FinishedRun<O> {
    /// True if this side's stack was the kernel's.
    pub(crate) const fn is_over_the_kernel(&self) -> bool {
        self.client.is_none() && self.server.is_none()
    }

    /// A run over the kernel's sockets, without data on the stack.
    pub(crate) fn over_the_kernel(outcome: O, target: Endpoint) -> Self {
        Self {
            outcome,
            client: None,
            server: None,
            links: None,
            waits: [const { None }; 2],
            steering: SteeringCounters::default(),
            target,
            seed: None,
            offloads: None,
            effort: None,
            is_interrupted: false,
        }
    }
}

/// Resources of the machine that this process used, for both sides if both are in it.
#[derive(Clone, Debug)]
pub(crate) struct ResourceUsage {
    /// Processor time that the run took, of the program and of the kernel for it.
    pub(crate) cpu: CpuTime,
    /// Counts of the kernel's TCP, over all processes.
    pub(crate) kernel: BTreeMap<String, u64>,
    /// In how long, by the machine's clock.
    pub(crate) elapsed: Duration,
}

/// The counters and the memory of a stack.
#[derive(Clone, Debug)]
pub(crate) struct StackState {
    /// The counters of its shards, added up.
    pub(crate) counters: Counters,
    /// Memory at the end of the run, after the client released its connections.
    pub(crate) census: Census,
    /// In which states that is.
    pub(crate) states: StateCounts,
    /// The ports that it draws from, the last one included.
    pub(crate) ports: (u16, u16),
}

impl StackState {
    pub(crate) fn of(shard: &Shard) -> Self {
        let tunables = shard.tunables();
        Self {
            counters: shard.counters().clone(),
            census: shard.census(),
            states: shard.states(),
            ports: (tunables.port_first, tunables.port_last),
        }
    }

    /// Of several shards of one stack.
    pub(crate) fn sum(shards: impl IntoIterator<Item = Self>) -> Option<Self> {
        shards.into_iter().reduce(|mut sum, shard| {
            sum.counters += &shard.counters;
            sum.census += shard.census;
            sum.states += shard.states;
            sum
        })
    }
}

/// Runs `job` against `target`, or against its own server if there is none.
pub(crate) fn run<J: Job>(
    job: &mut J,
    setup: &StackSetup,
    target: Option<Endpoint>,
) -> Result<FinishedRun<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
    J::Server<Shard>: Send,
    J::Client<KernelNet>: Send,
    J::Server<KernelNet>: Send,
{
    target.map_or(Ok(()), |target| setup.check_target(target))?;
    measure(|stop| match (setup.wire.mem_link(), target) {
        (Some(link), _) => mem::run(job, setup, link, stop),
        (None, target) if setup.wire.is_kernel() => kernel::run(job, target, stop),
        (None, Some(target)) => device::run(job, setup, target, stop),
        (None, None) => Err(Failure::usage("--wire", "give the address of the other side")),
    })
}

/// Returns `of` clients, each with its part.
fn clients<J: Job, T: Transport>(job: &J, of: u32, target: Endpoint) -> Vec<J::Client<T>> {
    (0..of).map(|number| job.client(target, Part { number, of })).collect()
}

/// Runs work that signals end, and measures the processor time.
pub(crate) fn measure<O>(
    run: impl FnOnce(&Stop) -> Result<FinishedRun<O>, Failure>,
) -> Result<FinishedRun<O>, Failure> {
    measure_until(Signals::install, |stop, _| run(stop))
}

/// Runs work that the signals of `install` end, and measures the processor time.
pub(crate) fn measure_until<O>(
    install: impl FnOnce(&Stop) -> io::Result<Signals>,
    run: impl FnOnce(&Stop, &Signals) -> Result<FinishedRun<O>, Failure>,
) -> Result<FinishedRun<O>, Failure> {
    let stop = Stop::new().map_err(Failure::run)?;
    let signals = install(&stop).map_err(Failure::run)?;
    let (began, before, counters) = (Clock::start(), cpu_time(), proc::counters());
    let mut ran = run(&stop, &signals)?;
    ran.is_interrupted = signals.have_come();
    ran.effort = before.and_then(|before| Ok((before, cpu_time()?))).ok().map(|(before, after)| {
        let cpu = CpuTime { user: after.user - before.user, system: after.system - before.system };
        let kernel = proc::counted_since(&counters);
        ResourceUsage { cpu, kernel, elapsed: began.now().since(Instant::ZERO) }
    });
    Ok(ran)
}

/// Processor time of this process so far: in user space, and in the kernel.
pub(crate) fn effort() -> Option<[Duration; 2]> {
    cpu_time().ok().map(|CpuTime { user, system }| [user, system])
}

/// Nothing ran, which no plan asks for.
pub(crate) fn no_client() -> Failure {
    Failure::run("there was no client to run")
}

/// Events dealt with in one turn, before frames have their turn again.
const BUDGET: usize = 256;
