//! Calls that block, each on a thread of its own.

use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use rustix::thread::gettid;
use whimbrel_script::call::Returned;
use whimbrel_script::host::CallId;

use super::Machine;
use super::at_once::BlockedCall;

/// A call that ended, and when.
pub(super) type Ended = (CallId, Instant, Returned);

/// The thread of a call.
#[derive(Debug)]
pub(super) struct CallThread {
    /// Its number in `/proc`; 0 until it runs.
    id: Arc<AtomicI32>,
}

impl CallThread {
    /// Makes the call. Its end is told to `ends`, and the machine's alarm goes.
    pub(super) fn begin(
        machine: &Arc<Machine>,
        number: CallId,
        rest: BlockedCall,
        ends: Sender<Ended>,
    ) -> io::Result<Self> {
        let id = Arc::new(AtomicI32::new(0));
        let (machine, known) = (Arc::clone(machine), Arc::clone(&id));
        thread::Builder::new().name("script call".into()).spawn(move || {
            known.store(gettid().as_raw_nonzero().get(), Ordering::Release);
            let returned = rest.perform(&machine);
            // Nobody listens any more when the script is over.
            let _ = ends.send((number, Instant::now(), returned));
            // It fails only when its count is at the end, and then it can be read.
            let _ = (&machine.alarm).write(&1_u64.to_ne_bytes());
        })?;
        Ok(Self { id })
    }

    /// Whether it sleeps in the kernel until something happens: not when it merely waits for a
    /// processor, as on a busy machine, and not once it has ended.
    pub(super) fn is_asleep(&self) -> bool {
        let id = self.id.load(Ordering::Acquire);
        let Ok(stat) = fs::read_to_string(format!("/proc/self/task/{id}/stat")) else {
            return false;
        };
        // Behind the name, which stands in parentheses and may hold anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }
}
