//! Execution of a stack's shards by threads or tasks.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use whimbrel_io::{ShardThreads, StackWorker};

use crate::clock::TimeSource;
use crate::shutdown::Shutdown;
use crate::stack_port::StackPort;
use task::ShardTask;

mod task;

/// Selects what runs the shards of a stack.
///
/// The default is [`Driver::Runtime`] if [`build`](crate::StackBuilder::build) is called within a tokio
/// runtime, and [`Driver::Thread`] otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Driver {
    /// A thread for each shard, which sleeps while there is nothing to do.
    ///
    /// Use it with other executors than tokio's, with tasks that block or compute for long, and for a
    /// stack that is to outlive the runtime. Segments are acknowledged and retransmitted whatever the
    /// tasks do. The threads follow the machine's clock: [`build`](crate::StackBuilder::build) refuses
    /// tokio's paused one, but a later `tokio::time::pause` goes unnoticed.
    Thread,
    /// A task for each shard, on the runtime in which the stack is built. The runtime needs
    /// `enable_all`.
    ///
    /// Tasks and shards share threads, so that a single echo takes a tenth of its time with threads.
    /// With hundreds of parallel echoes, threads are a quarter faster. While no runtime thread is free,
    /// packets are not processed and timers do not run. A task that blocks the only thread therefore
    /// blocks the stack. The stack ends with its runtime. Timers are late by up to a millisecond, like
    /// tokio's.
    ///
    /// Over [`mem_wire`](crate::mem_wire) and [`StackBuilder::packets`](crate::StackBuilder::packets) the
    /// stack follows tokio's clock, so that tests with a paused clock (`#[tokio::test(start_paused =
    /// true)]`) wait for nothing. Build both ends of a wire in the same runtime then. Time advances to
    /// the next millisecond in which a timer or a packet is due: an echo over 100 us takes 2 ms.
    /// `tokio::time::advance` moves the clock at once, and what was due meanwhile happens at its end.
    ///
    /// Other wires follow the machine's clock: [`build`](crate::StackBuilder::build) refuses a paused
    /// one, and a stack ends with an error if the clock is paused later.
    Runtime,
}

impl Driver {
    /// Returns the requested driver or the default here; `None` if that is not possible here.
    pub(crate) fn here(asked: Option<Self>) -> Option<Self> {
        let has_runtime = Handle::try_current().is_ok();
        match asked {
            None if has_runtime => Some(Self::Runtime),
            None => Some(Self::Thread),
            Some(asked) => Some(asked).filter(|asked| has_runtime || *asked == Self::Thread),
        }
    }

    /// Starts the shards of a stack.
    pub(crate) fn start(
        self,
        workers: Vec<StackWorker<StackPort>>,
        shutdown: Arc<Shutdown>,
        time: TimeSource,
    ) -> io::Result<()> {
        match self {
            Self::Thread => {
                let stop = shutdown.stop().clone();
                let threads = ShardThreads { stop: &stop, processors: &[] };
                threads.spawn(workers, move |worker| run(worker, &shutdown))
            }
            Self::Runtime => ShardTask::spawn_all(workers, &shutdown, time),
        }
    }
}

/// Runs a worker thread. If it panics, dropping its port reports this to all tasks.
fn run(mut worker: StackWorker<StackPort>, shutdown: &Shutdown) {
    if let Err(error) = worker.run(shutdown.stop()) {
        shutdown.fail(error.to_string());
    }
    let (_, _, mut stack_port) = worker.into_parts();
    stack_port.end(shutdown.why());
}
