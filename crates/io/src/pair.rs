//! Two hosts in this process, and impaired links between them: in real time, or in virtual time
//! that jumps to whatever is due next.

use std::time::Duration;

use whimbrel_link::{Link, LinkConfig};
use whimbrel_stack::{Capabilities, Medium, RxFrame, Shard, Steering, TxBatch};
use whimbrel_tcp::{Instant, SegMeta};

use crate::device::MAX_BURST;
use crate::sys::{Interest, PollFd, ppoll};
use crate::worker::WorkerError;
use crate::{Activity, Clock, Port, Stop, Tap};

/// Two hosts, each with its application, and a link in each direction.
#[derive(Debug)]
pub struct MemPair<A, B> {
    near: Host<A>,
    far: Host<B>,
    /// From the near host to the far one.
    there: Link,
    back: Link,
    time: MemTime,
    batch: TxBatch,
}

/// Which time a pair lives in.
#[derive(Clone, Copy, Debug)]
pub enum MemTime {
    /// The machine's: it sleeps until something is due.
    Real(Clock),
    /// Its own, now at this instant: it never sleeps, and the same seed gives the same run.
    Virtual(Instant),
}

#[derive(Debug)]
struct Host<P> {
    shard: Shard,
    port: P,
    tap: Option<Box<Tap>>,
}

impl MemTime {
    /// What it is.
    pub fn now(&self) -> Instant {
        match self {
            Self::Real(clock) => clock.now(),
            Self::Virtual(now) => *now,
        }
    }
}

/// What the interface of a host on such a link can do: nothing for the host, so that it does all
/// the work that it would on a plain wire, checksums included.
pub const fn mem_capabilities(link: &LinkConfig) -> Capabilities {
    Capabilities {
        medium: Medium::Ip,
        mtu: link.mtu,
        max_super: link.mtu as u32,
        tx_checksum: false,
        steering: Steering::None,
    }
}

impl<A: Port, B: Port> MemPair<A, B> {
    /// A pair; chance on the links comes from `seed`.
    pub fn new(
        link: &LinkConfig,
        seed: u64,
        (near, far): ((Shard, A), (Shard, B)),
        time: MemTime,
    ) -> Self {
        Self {
            near: Host { shard: near.0, port: near.1, tap: None },
            far: Host { shard: far.0, port: far.1, tap: None },
            there: Link::new(link.clone(), seed ^ THERE),
            back: Link::new(link.clone(), seed ^ BACK),
            time,
            batch: TxBatch::new(MAX_BURST),
        }
    }

    /// The same with a capture of what the near host receives and sends.
    pub fn with_tap(mut self, tap: Option<Tap>) -> Self {
        self.near.tap = tap.map(Box::new);
        self
    }

    /// The capture, to end it.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.near.tap.take().map(|tap| *tap)
    }

    /// Runs until `until` is set. In virtual time it also ends when nothing is due any more.
    pub fn run(&mut self, until: &Stop) -> Result<(), WorkerError> {
        while !until.is_set() {
            if self.turn() == Activity::Idle && !self.pass_time(until)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.time.now()
    }

    /// The near host and its application.
    pub fn near(&mut self) -> (&mut Shard, &mut A) {
        (&mut self.near.shard, &mut self.near.port)
    }

    /// The far host and its application.
    pub fn far(&mut self) -> (&mut Shard, &mut B) {
        (&mut self.far.shard, &mut self.far.port)
    }

    /// The links: from the near host to the far one, and back.
    pub const fn links(&self) -> [&Link; 2] {
        [&self.there, &self.back]
    }

    /// The near host and its application, to keep.
    pub fn into_near(self) -> (Shard, A) {
        (self.near.shard, self.near.port)
    }

    fn turn(&mut self) -> Activity {
        let Self { near, far, there, back, time, batch } = self;
        let first = near.turn(time.now(), back, there, batch);
        let second = far.turn(time.now(), there, back, batch);
        first.or(second)
    }

    /// Waits for what is due next, or goes there. Returns whether there is anything.
    fn pass_time(&mut self, until: &Stop) -> Result<bool, WorkerError> {
        let deadlines = [
            self.near.next_deadline(),
            self.far.next_deadline(),
            self.there.next_arrival(),
            self.back.next_arrival(),
        ];
        let next = deadlines.into_iter().flatten().min();
        match &mut self.time {
            MemTime::Virtual(now) => {
                if let Some(next) = next {
                    // What is due at once and left nothing to do is no reason to stand still.
                    *now = next.max(*now + Duration::from_nanos(1));
                }
                Ok(next.is_some())
            }
            MemTime::Real(clock) => {
                let timeout = next.map(|next| clock.until(next));
                let mut fds = [PollFd::new(until, Interest::Read)];
                ppoll(&mut fds, timeout).map_err(WorkerError::Wait)?;
                Ok(true)
            }
        }
    }
}

impl<P: Port> Host<P> {
    /// Once round, as a worker goes: commands, frames, timers, events, segments.
    fn turn(
        &mut self,
        now: Instant,
        inward: &mut Link,
        outward: &mut Link,
        batch: &mut TxBatch,
    ) -> Activity {
        let Self { shard, port, tap } = self;
        shard.tell_time(now);
        let commands = port.drain(now, shard);
        let arrived = receive(now, shard, tap.as_deref_mut(), inward);
        let timers = shard.advance(now, ADVANCE_BUDGET);
        let events = port.flush(now, shard);
        let mut sent = false;
        for _ in 0..TX_ROUNDS {
            let more = shard.tx(batch);
            if let Some(tap) = tap {
                tap.tx(now, shard, batch);
            }
            let pending = batch.pending();
            pending.iter().for_each(|segment| outward.push(now, segment));
            sent |= !pending.is_empty();
            let count = pending.len();
            batch.consume(count);
            if let Some(tap) = tap {
                tap.keep(batch);
            }
            if !more {
                break;
            }
        }
        commands.or(Activity::busy_if(arrived || timers || sent)).or(events)
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.shard.next_deadline(), self.port.next_deadline()].into_iter().flatten().min()
    }
}

/// One burst of what has arrived.
fn receive(now: Instant, shard: &mut Shard, tap: Option<&mut Tap>, inward: &mut Link) -> bool {
    let mut frames = Vec::with_capacity(MAX_BURST);
    while frames.len() < MAX_BURST
        && let Some(frame) = inward.pop(now)
    {
        frames.push(frame);
    }
    if frames.is_empty() {
        return false;
    }
    let burst: Vec<_> = frames.iter().map(|frame| RxFrame::new(frame, SegMeta::SINGLE)).collect();
    match tap {
        None => shard.rx(now, &burst),
        Some(tap) => tap.rx(now, shard, &burst),
    }
    true
}

/// Timers that expire in one turn.
const ADVANCE_BUDGET: usize = 256;
/// Batches sent in one turn, before the other host has its own.
const TX_ROUNDS: usize = 4;
/// Tells the chance of the two directions apart.
const THERE: u64 = 0x5555_5555_5555_5555;
const BACK: u64 = 0xaaaa_aaaa_aaaa_aaaa;

#[cfg(test)]
mod tests;
