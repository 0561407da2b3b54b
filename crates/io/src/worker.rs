//! The worker that drives one shard: it moves frames and commands in, and segments and events out, then
//! sleeps.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::{Shard, TxBatch};

use crate::device::{Device, TxOutcome};
use crate::stop::StopOnDrop;
use crate::sys::allocator;
#[cfg(target_os = "linux")]
use crate::sys::{Interest, PollFd, ppoll};
use crate::tap::{TapSlot, Taps};
use crate::{Clock, Inspections, Stop, Tap, Trace, Waker};
use spin::Spin;

pub use polled::{PollInterest, PollResult};

mod polled;
mod spin;

/// The application's side of a shard, called on the shard's thread.
///
/// Calls must do a bounded amount of work and never block, because no packet is processed meanwhile.
pub trait Port {
    /// Applies commands of other threads; none by default. Called at the start of each turn, and once
    /// more after the worker has announced its sleep, so that no command queued before [`Waker::wake`]
    /// is missed.
    fn drain(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    /// Passes events on and reacts to them. Called after the frames and timers of a turn, before its
    /// segments go to the device.
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity;

    /// Reports that another host has one of the shard's addresses ([`Shard::take_conflict`]).
    fn on_conflict(&mut self, _conflict: AddressConflict) {}

    /// Returns a descriptor for [`Worker::run`] to wait for, too: when it is readable, a turn begins.
    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the latest time for the next call of [`Port::drain`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Result of a step; a worker sleeps only after a turn of idle steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Activity {
    /// Nothing was done, and nothing is left.
    Idle,
    /// Something was done, or the budget ran out: another turn is due.
    Busy,
}

impl Activity {
    /// Returns `Busy` if `busy`, else `Idle`.
    pub const fn busy_if(busy: bool) -> Self {
        if busy { Self::Busy } else { Self::Idle }
    }

    /// Returns `Busy` if one of the two is.
    pub const fn or(self, other: Self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Idle => other,
        }
    }
}

/// Drives one shard with one device and one port.
#[derive(Debug)]
pub struct Worker<D, P> {
    device: D,
    shard: Shard,
    port: P,
    clock: Clock,
    waker: Waker,
    batch: TxBatch,
    stuck: Option<BatchBlock>,
    spin: Spin,
    tap: Option<Box<Taps>>,
    trace: Option<Box<Trace>>,
    inspections: Inspections,
}

/// Reason why segments wait in the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BatchBlock {
    /// The device's queue is full, until its descriptor is writable.
    DeviceFull,
    /// The system is short of memory, which no descriptor reports: the next attempt is at this time.
    MemoryShort(Instant),
    /// The queue in this process is full, until its reader makes room and wakes the worker.
    ReaderBusy,
}

/// Reason of a premature end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The device is lost.
    #[error("{name}: the device is lost: {error}{}", remedy(error))]
    Device {
        /// Its name, as in `tun:whim0`.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for the device: {0}")]
    Wait(io::Error),
}

/// Returns advice for a lost device, unless its error contains it.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionAborted | io::ErrorKind::InvalidData => "",
        _ => ". Was its interface removed? Bring it back and start again",
    }
}

/// Result of a worker's thread: the worker, for its counters, and the reason of its end.
pub type Ended<D, P> = (Worker<D, P>, Result<(), WorkerError>);

impl<D: Device, P: Port> Worker<D, P> {
    /// Creates a worker. `clock` is the time of the shard, the device and the port; `waker` is the one
    /// that the port's other half wakes.
    pub fn new(device: D, shard: Shard, port: P, clock: Clock, waker: Waker) -> Self {
        let batch = TxBatch::new(BATCH);
        Self {
            device,
            shard,
            port,
            clock,
            waker,
            batch,
            stuck: None,
            spin: Spin::default(),
            tap: None,
            trace: None,
            inspections: Inspections::default(),
        }
    }

    /// Adds a capture of all frames between device and shard; without one it costs nothing.
    pub fn with_tap(mut self, tap: Option<Tap>) -> Self {
        self.tap = tap.map(Taps::own);
        self
    }

    /// Adds a trace of connections; without one it costs nothing.
    pub fn with_trace(mut self, trace: Option<Trace>) -> Self {
        self.trace = trace.map(Box::new);
        self
    }

    /// Adds calls of other threads on its shard; while there are none, they cost nothing.
    pub fn with_inspections(mut self, inspections: Option<Inspections>) -> Self {
        self.inspections = inspections.unwrap_or_default();
        self
    }

    /// Ends the trace, if there is one. Its handler has been informed of errors.
    pub fn end_trace(&mut self) {
        let trace = self.trace.take();
        let _told_already = trace.map(|trace| trace.finish(self.clock.now(), &self.shard));
    }

    /// Replaces the port by one made of it.
    pub fn with_port<Q: Port>(self, make: impl FnOnce(&mut Shard, P) -> Q) -> Worker<D, Q> {
        let Self { device, mut shard, port, clock, waker, batch, stuck, spin, tap, trace, .. } =
            self;
        let (port, inspections) = (make(&mut shard, port), self.inspections);
        Worker { device, shard, port, clock, waker, batch, stuck, spin, tap, trace, inspections }
    }

    /// Takes the capture out, to end it or to continue it in another worker.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take().and_then(|taps| taps.into_own())
    }

    /// Runs on this thread until `until` is set or the device is lost. Uses no CPU while idle. May be
    /// called again.
    pub fn run(&mut self, until: &Stop) -> Result<(), WorkerError> {
        while !until.is_set() {
            if self.turn()? == Activity::Idle && !self.spins() {
                self.sleep(until)?;
            }
        }
        Ok(())
    }

    /// True if more work may arrive so soon that a sleep does not pay.
    fn spins(&mut self) -> bool {
        self.spin.polls_again(self.clock.now(), self.device.counters())
    }

    fn lost(device: &D, error: io::Error) -> WorkerError {
        WorkerError::Device { name: device.name(), error }
    }

    /// Runs on a new thread called `name` (the system shows 15 bytes).
    ///
    /// If it ends before `until` is set, by an error or a panic, it sets `until`. The other shards of
    /// the stack then end too, so that a join returns instead of waiting for a lost shard.
    pub fn spawn(mut self, name: &str, until: Stop) -> io::Result<JoinHandle<Ended<D, P>>>
    where
        D: Send + 'static,
        P: Send + 'static,
    {
        thread::Builder::new().name(name.into()).spawn(move || {
            let _whatever_happens = StopOnDrop(&until);
            let result = self.run(&until);
            (self, result)
        })
    }

    /// Returns the shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Returns the shard, mutably. What is changed there leaves with the worker's next turn.
    pub fn shard_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the port.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// Returns the port, mutably.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// Returns device, shard and port.
    pub fn into_parts(self) -> (D, Shard, P) {
        (self.device, self.shard, self.port)
    }

    /// Runs one turn: commands in, frames in, timers, events out, segments out.
    fn turn(&mut self) -> Result<Activity, WorkerError> {
        let now = self.clock.now();
        self.shard.set_now(now);
        let mut commands = self.drain(now);
        self.device.take_room(self.shard.chunk_pool());
        let (shard, tap, trace) = (&mut self.shard, &mut self.tap, &mut self.trace);
        let port = &mut self.port;
        let frames = self
            .device
            .rx_burst(&mut |burst| {
                // Commands from before a frame was sent precede it, so that a listener that was just
                // opened receives the SYN of a peer that knows of it.
                commands = commands.or(port.drain(now, shard));
                match tap {
                    None => shard.rx(now, burst),
                    Some(tap) => tap.rx(now, shard, burst),
                }
                if let Some(trace) = trace {
                    trace.rx(now, shard, burst);
                }
            })
            .map_err(|error| Self::lost(&self.device, error))?;
        if frames > 0
            && let Some(conflict) = self.shard.take_conflict()
        {
            self.port.on_conflict(conflict);
        }
        let timers = self.shard.advance(now, ADVANCE_BUDGET);
        if self.shard.take_release() {
            allocator::release();
        }
        let events = self.port.flush(now, &mut self.shard);
        let segments = self.transmit()?;
        let arrived = Activity::busy_if(frames > 0 || timers);
        Ok(commands.or(arrived).or(events).or(segments))
    }

    /// Applies the commands of other threads, and makes one of their calls on the shard.
    fn drain(&mut self, now: Instant) -> Activity {
        let commands = self.port.drain(now, &mut self.shard);
        match self.inspections.next() {
            None => commands,
            Some(call) => {
                let medium = self.device.capabilities().medium;
                let slot = TapSlot::new(&mut self.tap, medium, Some(self.clock));
                call.make(&mut self.shard, slot);
                Activity::Busy
            }
        }
    }

    /// Moves segments from the shard to the device. Idle if nothing waits or the device is blocked,
    /// unless the shard sent something to itself.
    fn transmit(&mut self) -> Result<Activity, WorkerError> {
        for _ in 0..TX_ROUNDS {
            let more = self.shard.tx(&mut self.batch);
            if self.batch.is_empty() {
                self.stuck = None;
                return Ok(Activity::busy_if(self.shard.has_looped()));
            }
            if let Some(tap) = &mut self.tap {
                tap.tx(self.clock.now(), &self.shard, &self.batch);
            }
            if let Some(trace) = &mut self.trace {
                trace.tx(self.clock.now(), &self.shard, &self.batch);
            }
            let outcome = self.device.tx_burst(&mut self.batch);
            let outcome = outcome.map_err(|error| Self::lost(&self.device, error))?;
            if let Some(tap) = &mut self.tap {
                tap.keep(&self.batch);
            }
            self.stuck = match outcome {
                TxOutcome::Drained => None,
                TxOutcome::Blocked => Some(BatchBlock::DeviceFull),
                TxOutcome::Congested => {
                    Some(BatchBlock::MemoryShort(self.clock.now() + CONGESTION_PAUSE))
                }
                TxOutcome::Full => Some(BatchBlock::ReaderBusy),
            };
            if self.stuck.is_some() || !more {
                return Ok(Activity::busy_if(self.shard.has_looped()));
            }
        }
        Ok(Activity::Busy)
    }

    /// Waits for work.
    fn sleep(&mut self, until: &Stop) -> Result<(), WorkerError> {
        self.waker.announce();
        // Commands queued before the announcement have not woken the worker.
        let now = self.clock.now();
        self.shard.set_now(now);
        let late = self.drain(now);
        let result = match late {
            Activity::Busy => self.finish_turn(now),
            Activity::Idle => self.wait(until),
        };
        self.waker.retract();
        result
    }

    /// Finishes a turn whose commands came late. The next turn takes the frames.
    fn finish_turn(&mut self, now: Instant) -> Result<(), WorkerError> {
        let _ = self.port.flush(now, &mut self.shard);
        self.transmit().map(|_| ())
    }

    /// Waits on systems without descriptors; wakers report everything there.
    #[cfg(not(target_os = "linux"))]
    fn wait(&mut self, until: &Stop) -> Result<(), WorkerError> {
        let timeout = self.next_deadline().map(|deadline| self.clock.until(deadline));
        if until.wakes(&self.waker) {
            self.waker.wait(timeout);
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn wait(&mut self, until: &Stop) -> Result<(), WorkerError> {
        let interest = match self.stuck {
            Some(BatchBlock::DeviceFull) => Interest::ReadWrite,
            _ => Interest::Read,
        };
        let timeout = self.next_deadline().map(|deadline| self.clock.until(deadline));
        let port = self.port.descriptor();
        let last = port.unwrap_or_else(|| until.as_fd());
        let mut fds = [
            PollFd::new(&self.device, interest),
            PollFd::new(&self.waker, Interest::Read),
            PollFd::new(until, Interest::Read),
            PollFd::new(&last, Interest::Read),
        ];
        let waited = if port.is_some() { &mut fds[..] } else { &mut fds[..3] };
        ppoll(waited, timeout).map_err(WorkerError::Wait)?;
        let [device, waker, ..] = fds;
        let (broken, woken) = (device.is_broken(), waker.is_readable());
        if woken {
            self.waker.clear();
        }
        if broken {
            let result = self.device.on_poll_error();
            result.map_err(|error| Self::lost(&self.device, error))?;
        }
        Ok(())
    }

    /// Returns the next deadline that no descriptor reports.
    fn next_deadline(&self) -> Option<Instant> {
        let retry = match self.stuck {
            Some(BatchBlock::MemoryShort(retry)) => Some(retry),
            _ => None,
        };
        Instant::earliest([
            self.shard.next_deadline(),
            self.port.next_deadline(),
            self.device.next_deadline(),
            retry,
        ])
    }
}

/// Segments on their way to the device (730 bytes each): few enough that those which the shard wrote are in L1 when the
/// device reads them.
const BATCH: usize = 16;
/// Batches sent in one turn, before the next frames and commands.
const TX_ROUNDS: usize = 16;
/// Timers that expire in one turn: 16,000 due at once delay a handshake by no more than these.
const ADVANCE_BUDGET: usize = 256;
/// Wait for memory: a shorter one only spins, a longer one adds to round trips.
const CONGESTION_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
