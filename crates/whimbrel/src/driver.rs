//! What drives the shards of a stack: threads, or tasks.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use whimbrel_io::{ShardThreads, StackWorker};

use crate::shutdown::Shutdown;
use crate::stack_port::StackPort;
use task::ShardTask;

mod task;

/// What drives the shards of a stack.
///
/// By default it is [`Driver::Runtime`] where [`build`](crate::StackBuilder::build) is called within a
/// runtime of tokio's, and [`Driver::Thread`] elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// A thread for each shard, which sleeps while there is nothing to do.
    ///
    /// For executors other than tokio's, for tasks that block or compute for long, and for a stack that is
    /// to outlive the runtime: segments are answered and sent again whatever tasks do.
    Thread,
    /// A task for each shard, on the runtime that the stack is built in, whose `enable_all` was called.
    ///
    /// No thread stands between a task and its shard, so that one echo takes a tenth of the time that it
    /// takes with threads; with hundreds at a time threads are faster by a quarter. But nothing is answered,
    /// and no timer runs out, while no thread of the runtime comes to run tasks: who blocks its only thread
    /// blocks the stack. When the runtime is shut down, the stack ends with it. Timers are late by up to a
    /// millisecond, as tokio's are.
    Runtime,
}

impl Driver {
    /// What was asked for, or the default where this is called; none if that cannot be here.
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
    ) -> io::Result<()> {
        match self {
            Self::Thread => {
                let stop = shutdown.stop().clone();
                let threads = ShardThreads { stop: &stop, processors: &[] };
                threads.spawn(workers, move |worker| run(worker, &shutdown))
            }
            Self::Runtime => ShardTask::spawn_all(workers, &shutdown),
        }
    }
}

/// The life of a worker thread. If it panics, its port is dropped, and tells everybody.
fn run(mut worker: StackWorker<StackPort>, shutdown: &Shutdown) {
    if let Err(error) = worker.run(shutdown.stop()) {
        shutdown.fail(error.to_string());
    }
    let (_, _, mut stack_port) = worker.into_parts();
    stack_port.end(shutdown.why());
}
