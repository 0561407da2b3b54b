//! Calls under way, each on a thread of its own, and what comes of them and of the wire.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use whimbrel_sim::script::call::{Call, Returned};
use whimbrel_sim::script::host::CallId;

use super::Machine;
use super::perform::{Context, failed, perform};
use crate::sys::namespace;

/// What happened, and when.
#[derive(Debug)]
pub(super) enum Event {
    /// A packet left.
    Packet(Instant, Vec<u8>),
    /// A call ended.
    Ended(CallId, Instant, Returned),
}

/// The thread of a call.
#[derive(Debug)]
pub(super) struct CallThread {
    /// Its number in `/proc`; 0 until it runs.
    id: Arc<AtomicI32>,
}

impl CallThread {
    /// Makes the call. Its end is told to `events`.
    pub(super) fn begin(
        machine: &Arc<Machine>,
        (number, call): (CallId, Call),
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let id = Arc::new(AtomicI32::new(0));
        let (machine, known) = (Arc::clone(machine), Arc::clone(&id));
        thread::Builder::new().name("script call".into()).spawn(move || {
            let entered = machine.namespace.enter();
            known.store(namespace::thread_id(), Ordering::Release);
            let context = Context { descriptors: &machine.descriptors, stop: &machine.stop };
            let returned = match entered {
                Ok(()) => perform(call, &context),
                Err(error) => failed(&error),
            };
            // Nobody listens any more when the script is over.
            let _ = events.send(Event::Ended(number, Instant::now(), returned));
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
