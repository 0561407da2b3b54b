//! Calls that block, each on its own thread.

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
use super::attempt::BlockedCall;

/// A finished call, its end and its result.
pub(super) type Ended = (CallId, Instant, Returned);

/// The thread of a call.
#[derive(Debug)]
pub(super) struct CallThread {
    /// Thread id in `/proc`; 0 until it runs.
    id: Arc<AtomicI32>,
}

impl CallThread {
    /// Starts the call. Its result goes to `ends`, and the machine's alarm is raised.
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
            // The receiver is gone when the script is over.
            let _ = ends.send((number, Instant::now(), returned));
            // This fails only at the counter's maximum, where it is readable already.
            let _ = (&machine.alarm).write(&1_u64.to_ne_bytes());
        })?;
        Ok(Self { id })
    }

    /// True if it sleeps in the kernel until an event. False while it waits for a processor, and
    /// after its end.
    pub(super) fn is_asleep(&self) -> bool {
        let id = self.id.load(Ordering::Acquire);
        let Ok(stat) = fs::read_to_string(format!("/proc/self/task/{id}/stat")) else {
            return false;
        };
        // The state follows the name, which is in parentheses and may contain any character.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }
}
