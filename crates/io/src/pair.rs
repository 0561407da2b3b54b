//! Two hosts in this process joined by impaired links, in real time or in virtual time that jumps
//! to the next event.
//!
//! Hosts with several shards are several pairs, one for each shard of both. The queue of a segment
//! follows from its ports, in both directions alike, so shards of the same number communicate with
//! each other. In real time each pair has its own thread; in virtual time all take turns on one.

use std::io;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_link::{LinkConfig, LinkCounters, Waits};
use whimbrel_stack::{Capabilities, Medium, RxFrame, Shard, TxBatch};

use crate::device::MAX_BURST;
use crate::mem::Line;
use crate::steering::{MisroutedFrames, SteeringCounters};
use crate::sys::{Interest, PollFd, ppoll};
use crate::tap::{TapSlot, Taps};
use crate::worker::WorkerError;
use crate::{Activity, Clock, Inspections, Inspector, Port, Stop, Tap, Trace, Waker};
use link::PairLink;

mod link;

/// Two hosts, or a shard of each, with their applications, and a link in each direction.
#[derive(Debug)]
pub struct MemPair<A, B> {
    near: Host<A>,
    far: Host<B>,
    /// From the near host to the far one.
    there: PairLink,
    back: PairLink,
    time: MemTime,
    /// Waker of this pair, if there are others that may wake it.
    waker: Option<Waker>,
    batch: TxBatch,
}

/// Kind of time of a pair.
#[derive(Clone, Copy, Debug)]
pub enum MemTime {
    /// The machine's time: the pair sleeps until the next event.
    Real(Clock),
    /// Virtual time, now at this instant. It never sleeps, and the same seed gives the same run.
    Virtual(Instant),
}

#[derive(Debug)]
struct Host<P> {
    shard: Shard,
    port: P,
    tap: Option<Box<Taps>>,
    trace: Option<Box<Trace>>,
    inspections: Option<Inspections>,
    /// Frames that arrived by the wrong queue, if there are several queues.
    misrouted: Option<MisroutedFrames>,
}

/// Shards and applications of the near host and of the far one.
pub type Hosts<A, B> = ((Shard, A), (Shard, B));

impl MemTime {
    /// Returns the current time.
    pub fn now(&self) -> Instant {
        match self {
            Self::Real(clock) => clock.now(),
            Self::Virtual(now) => *now,
        }
    }
}

/// Returns the capabilities of a host's interface on such a link: no offloads, so the host does all
/// the work that it would on a plain wire, checksums included.
pub const fn mem_capabilities(link: &LinkConfig) -> Capabilities {
    Capabilities::plain(Medium::Ip, link.mtu)
}

impl<A: Port, B: Port> MemPair<A, B> {
    /// Creates a pair; the links' random choices come from `seed`.
    pub fn new(link: &LinkConfig, seed: u64, hosts: Hosts<A, B>, time: MemTime) -> Self {
        Self::between(hosts, ways(link).map(|(way, link)| PairLink::own(link, seed ^ way)), time)
    }

    /// Creates a pair for each shard of two hosts, in the order of their queues. `hosts` must have
    /// the steering of their shards. With a rate, a policer or correlated losses all pairs share
    /// the links; otherwise frames of different flows do not affect each other, and each pair has
    /// its own links.
    pub fn shards(
        link: &LinkConfig,
        seed: u64,
        hosts: Vec<Hosts<A, B>>,
        time: MemTime,
    ) -> io::Result<Vec<Self>> {
        let wakers = hosts.iter().map(|_| Waker::new()).collect::<io::Result<Vec<_>>>()?;
        let shared = |link, seed| {
            let line = Line::new(link, seed);
            line.open(&wakers);
            Arc::new(line)
        };
        let is_shared = ways(link).iter().any(|(_, link)| link.is_shared());
        let lines = is_shared.then(|| ways(link).map(|(way, link)| shared(link, seed ^ way)));
        let misrouted =
            MisroutedFrames::join(&wakers).into_iter().zip(MisroutedFrames::join(&wakers));
        let pairs = (0..).zip(hosts).zip(misrouted).zip(&wakers);
        let pair = |(((queue, hosts), misrouted), waker): (
            ((u16, _), (MisroutedFrames, MisroutedFrames)),
            &Waker,
        )| {
            let own = seed ^ u64::from(queue) << 32;
            let both = match &lines {
                Some(lines) => lines.each_ref().map(|line| PairLink::shared(line, queue)),
                None => ways(link).map(|(way, link)| PairLink::own(link, own ^ way)),
            };
            let mut pair = Self::between(hosts, both, time);
            (pair.near.misrouted, pair.far.misrouted) = (Some(misrouted.0), Some(misrouted.1));
            Self { waker: Some(waker.clone()), ..pair }
        };
        Ok(pairs.map(pair).collect())
    }

    fn between(hosts: Hosts<A, B>, ways: [PairLink; 2], time: MemTime) -> Self {
        let (((near, near_port), (far, far_port)), [there, back]) = (hosts, ways);
        Self {
            near: Host::new(near, near_port),
            far: Host::new(far, far_port),
            there,
            back,
            time,
            waker: None,
            batch: TxBatch::new(MAX_BURST),
        }
    }

    /// Sets a capture of what the near host receives and sends.
    pub fn with_tap(mut self, tap: Option<Tap>) -> Self {
        self.near.tap = tap.map(Taps::own);
        self
    }

    /// Takes the capture, to finish it.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.near.tap.take().and_then(|taps| taps.into_own())
    }

    /// Sets a trace of the near host's connections.
    pub fn with_trace(mut self, trace: Option<Trace>) -> Self {
        self.near.trace = trace.map(Box::new);
        self
    }

    /// Ends the trace, if there is one. Its handler has received any error.
    pub fn end_trace(&mut self) {
        let (trace, now) = (self.near.trace.take(), self.now());
        let _told_already = trace.map(|trace| trace.finish(now, &self.near.shard));
    }

    /// Lets other threads make calls on the near shard, and on the far one. Fails if the system has no
    /// descriptor.
    pub fn inspectors(&mut self) -> io::Result<[Inspector; 2]> {
        let waker = match &self.waker {
            Some(waker) => waker.clone(),
            None => self.waker.insert(Waker::new()?).clone(),
        };
        let (near, to_near) = Inspector::new(waker.clone());
        let (far, to_far) = Inspector::new(waker);
        (self.near.inspections, self.far.inspections) = (Some(to_near), Some(to_far));
        Ok([near, far])
    }

    /// Runs until `until` is set. In virtual time it also ends when no event is left.
    pub fn run(&mut self, until: &Stop) -> Result<(), WorkerError> {
        match self.time {
            MemTime::Virtual(_) => {
                Self::run_in_turn(slice::from_mut(self), until, |_| ());
                Ok(())
            }
            MemTime::Real(clock) => {
                while !until.is_set() {
                    if self.turn() == Activity::Idle {
                        self.sleep(clock, until)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Runs pairs in virtual time, in turn, until `until` is set or no event is left. Calls `each`
    /// after each round.
    pub fn run_in_turn(pairs: &mut [Self], until: &Stop, mut each: impl FnMut(Instant)) {
        while !until.is_set() {
            let turns = pairs.iter_mut().map(Self::turn);
            let round = turns.fold(Activity::Idle, Activity::or);
            let now = pairs.first().map_or(Instant::ZERO, Self::now);
            each(now);
            if round == Activity::Busy {
                continue;
            }
            let Some(next) = pairs.iter().filter_map(Self::next_deadline).min() else { return };
            for pair in &mut *pairs {
                // An event that is due now but left nothing to do must not stop the time.
                pair.time = MemTime::Virtual(next.max(now + Duration::from_nanos(1)));
            }
        }
    }

    /// Returns the time of both hosts.
    pub fn now(&self) -> Instant {
        self.time.now()
    }

    /// Returns the near host and its application.
    pub fn near(&mut self) -> (&mut Shard, &mut A) {
        (&mut self.near.shard, &mut self.near.port)
    }

    /// Returns the far host and its application.
    pub fn far(&mut self) -> (&mut Shard, &mut B) {
        (&mut self.far.shard, &mut self.far.port)
    }

    /// Returns the counters of the links: from the near host to the far one, and back. Of shared
    /// links, the first pair returns them.
    pub fn links(&self) -> [LinkCounters; 2] {
        [self.there.counters(), self.back.counters()]
    }

    /// Measures how long frames that are sent from `from` on wait for the links.
    pub fn measure_waits(&mut self, from: Instant) {
        self.there.measure_waits(from);
        self.back.measure_waits(from);
    }

    /// Returns the measured waits, from the near host to the far one, and back; `None` if they are
    /// not measured, or another pair has them.
    pub fn waits(&self) -> [Option<Waits>; 2] {
        [self.there.waits(), self.back.waits()]
    }

    /// Returns the counters of misrouted frames of the near host, and of the far one.
    pub fn steering(&self) -> [SteeringCounters; 2] {
        [&self.near.misrouted, &self.far.misrouted].map(|misrouted| {
            misrouted.as_ref().map_or_else(Default::default, |own| *own.counters())
        })
    }

    /// Returns the near host and its application.
    pub fn into_near(self) -> (Shard, A) {
        (self.near.shard, self.near.port)
    }

    fn turn(&mut self) -> Activity {
        let Self { near, far, there, back, time, batch, .. } = self;
        let first = near.turn(*time, back, there, batch);
        let second = far.turn(*time, there, back, batch);
        first.or(second)
    }

    /// Returns the time of the next event.
    fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([
            self.near.next_deadline(),
            self.far.next_deadline(),
            self.there.next_arrival(),
            self.back.next_arrival(),
        ])
    }

    /// Waits for the next event, or for frames of other pairs.
    fn sleep(&self, clock: Clock, until: &Stop) -> Result<(), WorkerError> {
        let Some(waker) = &self.waker else {
            let timeout = self.next_deadline().map(|next| clock.until(next));
            let mut fds = [PollFd::new(until, Interest::Read)];
            return ppoll(&mut fds, timeout).map(|_| ()).map_err(WorkerError::Wait);
        };
        // Frames and calls from here on wake this pair; those from before are due at once.
        waker.announce();
        let timeout = self.next_deadline().map(|next| clock.until(next));
        let mut fds = [PollFd::new(until, Interest::Read), PollFd::new(waker, Interest::Read)];
        let waited = ppoll(&mut fds, timeout).map_err(WorkerError::Wait);
        waker.retract();
        if fds[1].is_readable() {
            waker.clear();
        }
        waited.map(|_| ())
    }
}

impl<P: Port> Host<P> {
    fn new(shard: Shard, port: P) -> Self {
        Self { shard, port, tap: None, trace: None, inspections: None, misrouted: None }
    }

    /// Runs one turn, as a worker does: commands, frames, timers, events, segments.
    fn turn(
        &mut self,
        time: MemTime,
        inward: &mut PairLink,
        outward: &mut PairLink,
        batch: &mut TxBatch,
    ) -> Activity {
        let now = time.now();
        self.shard.set_now(now);
        let commands = self.port.drain(now, &mut self.shard).or(self.inspect(time));
        let arrived = self.receive(now, inward);
        let Self { shard, port, tap, trace, .. } = self;
        let timers = shard.advance(now, ADVANCE_BUDGET);
        let events = port.flush(now, shard);
        let mut sent = false;
        for _ in 0..TX_ROUNDS {
            let more = shard.tx(batch);
            if let Some(tap) = tap {
                tap.tx(now, shard, batch);
            }
            if let Some(trace) = trace {
                trace.tx(now, shard, batch);
            }
            let pending = batch.pending();
            outward.push(now, pending);
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

    /// Makes one call of other threads on the shard.
    fn inspect(&mut self, time: MemTime) -> Activity {
        let call = self.inspections.as_ref().and_then(Inspections::next);
        let Some(call) = call else { return Activity::Idle };
        let clock = match time {
            MemTime::Real(clock) => Some(clock),
            MemTime::Virtual(_) => None,
        };
        call.make(&mut self.shard, TapSlot::new(&mut self.tap, Medium::Ip, clock));
        Activity::Busy
    }

    /// Receives forwarded frames, and one burst of arrived ones.
    fn receive(&mut self, now: Instant, inward: &mut PairLink) -> bool {
        let Self { shard, tap, trace, misrouted, .. } = self;
        let mut deliver = |burst: &[RxFrame<'_>]| {
            match tap {
                None => shard.rx(now, burst),
                Some(tap) => tap.rx(now, shard, burst),
            }
            if let Some(trace) = trace {
                trace.rx(now, shard, burst);
            }
        };
        let adopted =
            misrouted.as_mut().map_or(0, |misrouted| misrouted.deliver_forwarded(&mut deliver));
        let frames = inward.pop(now);
        if !frames.is_empty() {
            let frame = |bytes| RxFrame::new(bytes, SegMeta::SINGLE);
            let burst: Vec<_> = frames.iter().map(|bytes| frame(bytes)).collect();
            match misrouted {
                None => deliver(&burst),
                Some(misrouted) => misrouted.sort(Medium::Ip, &burst, &mut deliver),
            }
        }
        adopted > 0 || !frames.is_empty()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let has_calls = self.inspections.as_ref().is_some_and(Inspections::are_waiting);
        if has_calls || self.misrouted.as_ref().is_some_and(MisroutedFrames::are_waiting) {
            return Some(Instant::ZERO);
        }
        Instant::earliest([self.shard.next_deadline(), self.port.next_deadline()])
    }
}

/// Returns the seed and configuration of each direction: there, and back. The slow host, if there
/// is one, is the far one.
fn ways(link: &LinkConfig) -> [(u64, LinkConfig); 2] {
    [(THERE, link.clone()), (BACK, link.back())]
}

/// Limit of timers that expire in one turn.
const ADVANCE_BUDGET: usize = 256;
/// Limit of batches sent in one turn, before the other host has its turn.
const TX_ROUNDS: usize = 4;
/// Separates the random choices of the two directions.
const THERE: u64 = 0x5555_5555_5555_5555;
const BACK: u64 = 0xaaaa_aaaa_aaaa_aaaa;

#[cfg(test)]
mod tests;
