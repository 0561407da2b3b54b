//! The thread that drives one shard: device and application in, device and application out, sleep.

use std::io;
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
use crate::{Clock, Stop, Tap, Trace, Waker};
use spin::Spin;

pub use polled::{PollInterest, Polled};

mod polled;
mod spin;

/// The application's side of a shard, called on the shard's own thread.
///
/// Every call does a bounded amount of work and never blocks: while it runs, nothing arrives.
pub trait Port {
    /// Carries commands inward: what other threads asked for since; by default nobody asks. Called at the start of each
    /// turn, and once more after the worker announced its sleep, so that nothing put into a queue
    /// before [`Waker::wake`] is slept upon.
    fn drain(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    /// Carries events outward, and acts upon them. Called after frames and timers of a turn were
    /// dealt with, before its segments go to the device.
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity;

    /// Another station was found to have one of the shard's addresses: whoever runs the stack wants to
    /// know ([`Shard::take_conflict`]).
    fn on_conflict(&mut self, _conflict: AddressConflict) {}

    /// When [`Port::drain`] is to be called at the latest, if nothing else happens.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Whether a step did anything: a worker sleeps only after a turn that was idle throughout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Activity {
    /// There was nothing to do, and nothing is left.
    Idle,
    /// Something was done, or its budget ended before the work: another turn is due.
    Busy,
}

impl Activity {
    /// `Busy` if there is more to do, else `Idle`.
    pub const fn busy_if(busy: bool) -> Self {
        if busy { Self::Busy } else { Self::Idle }
    }

    /// `Busy` if one of both is.
    pub const fn or(self, other: Self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Idle => other,
        }
    }
}

/// Drives one shard over one device for one port.
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
    tap: Option<Box<Tap>>,
    trace: Option<Box<Trace>>,
}

/// Why segments wait in the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BatchBlock {
    /// Until the device is writable.
    UntilWritable,
    /// Until then: no descriptor tells.
    StopCondition(Instant),
    /// Until somebody makes room, and wakes it.
    UntilWoken,
}

/// Why a worker ended before it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The device is lost.
    #[error("{name}: the device is lost: {error}{}", remedy(error))]
    Device {
        /// Which, as in `tun:whim0`.
        name: String,
        /// What the system said of it.
        error: io::Error,
    },
    /// The system would not let it wait.
    #[error("cannot wait for the device: {0}")]
    Wait(io::Error),
}

/// What there is to do about a lost device; nothing more, if its error says why.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionAborted | io::ErrorKind::InvalidData => "",
        _ => ". Was its interface removed? Bring it back and start again",
    }
}

/// What a worker's thread ends with: the worker, for its counters, and how it ended.
pub type Ended<D, P> = (Worker<D, P>, Result<(), WorkerError>);

impl<D: Device, P: Port> Worker<D, P> {
    /// A worker that runs when told to. `clock` is the shard's time, and the one that device and
    /// port were given, if they were; `waker` is the one that the port's other half wakes.
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
        }
    }

    /// The same with a capture of every frame between device and shard; without one it costs
    /// nothing.
    pub fn with_tap(mut self, tap: Option<Tap>) -> Self {
        self.tap = tap.map(Box::new);
        self
    }

    /// The same with a trace of what becomes of connections; without one it costs nothing.
    pub fn with_trace(mut self, trace: Option<Trace>) -> Self {
        self.trace = trace.map(Box::new);
        self
    }

    /// Ends the trace, if there is one; what went wrong its witness was told.
    pub fn end_trace(&mut self) {
        let trace = self.trace.take();
        let _told_already = trace.map(|trace| trace.finish(self.clock.now(), &self.shard));
    }

    /// The same for another port, which is made of this one.
    pub fn with_port<Q: Port>(self, make: impl FnOnce(&mut Shard, P) -> Q) -> Worker<D, Q> {
        let Self { device, mut shard, port, clock, waker, batch, stuck, spin, tap, trace } = self;
        let port = make(&mut shard, port);
        Worker { device, shard, port, clock, waker, batch, stuck, spin, tap, trace }
    }

    /// The capture, to end it, or to go on with it in another worker.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take().map(|tap| *tap)
    }

    /// Runs on this thread until `until` is set or the device is lost. Uses no CPU while there is
    /// nothing to do. May be called again.
    pub fn run(&mut self, until: &Stop) -> Result<(), WorkerError> {
        while !until.is_set() {
            if self.turn()? == Activity::Idle && !self.spins() {
                self.sleep(until)?;
            }
        }
        Ok(())
    }

    /// Whether there may be more to do so soon that it is not worth to sleep.
    fn spins(&mut self) -> bool {
        self.spin.goes_on(self.clock.now(), self.device.counters())
    }

    fn lost(device: &D, error: io::Error) -> WorkerError {
        WorkerError::Device { name: device.name(), error }
    }

    /// Runs on a thread of its own called `name` (the system shows 15 octets of it).
    ///
    /// If it ends for any other reason than `until`, by an error or a panic, it sets `until`: the
    /// other shards of the stack end too, and whoever waits for them learns of it by joining,
    /// instead of waiting for a shard that is no more.
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

    /// The shard that it drives.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The device that it takes frames from.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// What calls the shard between bursts.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// The same, to be told something.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// Device, shard and port.
    pub fn into_parts(self) -> (D, Shard, P) {
        (self.device, self.shard, self.port)
    }

    /// Once round: commands in, frames in, timers, events out, segments out.
    fn turn(&mut self) -> Result<Activity, WorkerError> {
        let now = self.clock.now();
        self.shard.tell_time(now);
        let mut commands = self.port.drain(now, &mut self.shard);
        self.device.take_room(self.shard.chunk_pool());
        let (shard, tap, trace) = (&mut self.shard, &mut self.tap, &mut self.trace);
        let port = &mut self.port;
        let frames = self
            .device
            .rx_burst(&mut |burst| {
                // Commands from before a frame was sent come before it: a listener that was just opened hears
                // the SYN of who was told of it.
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

    /// Moves segments from the shard to the device. Idle once nothing waits, or the device takes
    /// no more; unless the shard sent something to itself.
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
                TxOutcome::Blocked => Some(BatchBlock::UntilWritable),
                TxOutcome::Congested => {
                    Some(BatchBlock::StopCondition(self.clock.now() + CONGESTION_PAUSE))
                }
                TxOutcome::Full => Some(BatchBlock::UntilWoken),
            };
            if self.stuck.is_some() || !more {
                return Ok(Activity::busy_if(self.shard.has_looped()));
            }
        }
        Ok(Activity::Busy)
    }

    /// Waits until there may be something to do.
    fn sleep(&mut self, until: &Stop) -> Result<(), WorkerError> {
        self.waker.announce();
        // What was put into the port's queue before the announcement woke nobody.
        let now = self.clock.now();
        self.shard.tell_time(now);
        let late = self.port.drain(now, &mut self.shard);
        let result = match late {
            Activity::Busy => self.finish_turn(now),
            Activity::Idle => self.wait(until),
        };
        self.waker.retract();
        result
    }

    /// The rest of a turn whose commands came late. The next one takes the frames.
    fn finish_turn(&mut self, now: Instant) -> Result<(), WorkerError> {
        let _ = self.port.flush(now, &mut self.shard);
        self.transmit().map(|_| ())
    }

    /// Where no descriptor tells of anything. What a device may block for, its waker tells.
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
            Some(BatchBlock::UntilWritable) => Interest::ReadWrite,
            _ => Interest::Read,
        };
        let timeout = self.next_deadline().map(|deadline| self.clock.until(deadline));
        let mut fds = [
            PollFd::new(&self.device, interest),
            PollFd::new(&self.waker, Interest::Read),
            PollFd::new(until, Interest::Read),
        ];
        ppoll(&mut fds, timeout).map_err(WorkerError::Wait)?;
        let [device, waker, _] = fds;
        let (broken, woken) = (device.is_broken(), waker.is_readable());
        if woken {
            self.waker.clear();
        }
        if broken {
            let goes_on = self.device.on_poll_error();
            goes_on.map_err(|error| Self::lost(&self.device, error))?;
        }
        Ok(())
    }

    /// When something is due without any descriptor telling.
    fn next_deadline(&self) -> Option<Instant> {
        let retry = match self.stuck {
            Some(BatchBlock::StopCondition(retry)) => Some(retry),
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

/// Segments on their way to the device (730 octets each): as many as one burst inward can cause.
const BATCH: usize = 64;
/// Batches sent in one turn, before frames and commands have their turn again.
const TX_ROUNDS: usize = 4;
/// Timers that expire in one turn: 16,000 that are due at once do not delay a handshake by more
/// than these.
const ADVANCE_BUDGET: usize = 256;
/// How long to wait for memory: sooner would only spin, later adds to round trips.
const CONGESTION_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
