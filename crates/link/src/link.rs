//! One direction of a link.
//!
//! ```text
//! push -> up? short enough? -> forgotten? policed? -> bleached? stripped? -> acknowledgments: batched? in a place that waits?
//!      -> queue -> marked? sending (rate) -> lost? corrupted? twice?
//!      -> travelling (delay, jitter, reordering) -> pop
//! ```
//!
//! A frame that is lost behind the queue has used its share of the rate, as on a real line. What keeps
//! its place travels in a queue, and what is put out of order in a heap by arrival: a frame costs O(1), or
//! O(log n), and nothing is ever searched.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;

use whimbrel_wire::ip::{bleach_ecn, mark_congestion};
use whimbrel_wire::tcp::strip_accurate_ecn;
use whimbrel_wire::{IpHeader, Protocol};

use crate::ack_batch::AckBatch;
use crate::config::{BurstLoss, Change, LinkConfig, Probability, QueueBounds};
use crate::middlebox::Middlebox;
use crate::policer::Policer;
use crate::pure_ack::{AckFilter, is_pure_ack};
use crate::schedule::Schedule;
use crate::targets::Targets;
use crate::{LinkCounters, LinkOutcome, Loss, Waits, cut};

mod reconfigure;

/// One direction of a link. Times passed to it must not run backwards.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    state: LinkState,
    schedule: Schedule,
    /// Longest frame since a step of the configuration, without a router's error.
    step_mtu: u16,
    policer: Option<Policer>,
    middlebox: Option<Box<Middlebox>>,
    ack_batch: Option<AckBatch>,
    ack_filter: Option<AckFilter>,
    /// Waiting times of frames, if measured.
    waits: Option<Box<Waits>>,
    /// Random numbers of this link only: its draws change no other link's.
    chance: Rng,
    /// True in the bad state of burst losses.
    in_burst: bool,
    /// End of transmission of each frame in the queue, and its bytes.
    queue: VecDeque<(Instant, u64)>,
    queued_bytes: u64,
    queue_bounds: QueueBounds,
    targets: Targets,
    /// Arrival of the latest frame in order: no later one arrives before it.
    latest: Instant,
    /// Frames in order, the next to arrive in front.
    in_order: VecDeque<Travelling>,
    /// Frames that others may overtake.
    out_of_order: BinaryHeap<Reverse<Travelling>>,
    /// Their size, bytes: their own, and [`FRAME_BYTES`] each.
    held: u64,
    /// Numbers frames, so that those of one instant arrive in the order sent.
    next_number: u64,
    counters: LinkCounters,
}

/// State of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// The link carries frames.
    Up,
    /// Frames on it are lost, and those pushed too.
    Down,
}

/// A frame between sending and arrival, ordered by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Travelling {
    arrives: Instant,
    number: u64,
    /// End of its transmission.
    sent: Instant,
    frame: Bytes,
}

/// Times of a frame's first and last bit.
struct Sending {
    starts: Instant,
    ends: Instant,
}

/// Getters.
impl Link {
    /// Most memory of the frames on one direction of a link, bytes, with the record of each: 1 GiB,
    /// a second of 8 Gb/s. A real path holds delay times rate; frames beyond the limit are lost
    /// ([`Loss::Crowded`]).
    pub const MAX_BYTES: u64 = 1 << 30;

    /// A link, up and empty. The same seed makes the same choices.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            queue_bounds: config.queue_bounds(),
            targets: Targets::new(config.drop.clone(), config.mtu),
            schedule: Schedule::new(&config),
            step_mtu: u16::MAX,
            policer: config.police.map(Policer::new),
            middlebox: Middlebox::of(&config),
            ack_batch: (!config.ack_batch.is_zero()).then(|| AckBatch::new(config.ack_batch)),
            ack_filter: config.ack_filter.then(AckFilter::default),
            waits: None,
            config,
            state: LinkState::Up,
            chance: Rng::with_seed(seed),
            in_burst: false,
            queue: VecDeque::new(),
            queued_bytes: 0,
            latest: Instant::ZERO,
            in_order: VecDeque::new(),
            out_of_order: BinaryHeap::new(),
            held: 0,
            next_number: 0,
            counters: LinkCounters::default(),
        }
    }

    /// Its configuration.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Its state.
    pub const fn state(&self) -> LinkState {
        self.state
    }

    /// Its counters.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// True if no frame is on it.
    pub fn is_empty(&self) -> bool {
        self.in_flight() == 0
    }

    /// Bytes that wait for the line or are being sent; 0 for a line without a rate.
    pub fn backlog(&self, now: Instant) -> u64 {
        let free = self.queue.back().map_or(now, |(until, _)| *until);
        (self.schedule.bits(now, free) / 8.0) as u64
    }

    /// Times from a frame's arrival at the queue until its first bit was sent, if measured
    /// ([`Link::measure_waits`]).
    pub fn waits(&self) -> Option<&Waits> {
        self.waits.as_deref()
    }

    /// Frames between sending and arrival, with waiting ones.
    pub fn in_flight(&self) -> usize {
        let batched = self.ack_batch.as_ref().map_or(0, AckBatch::len);
        self.in_order.len() + self.out_of_order.len() + batched
    }
}

/// Input and output.
impl Link {
    /// Puts a segment on the link as the packets that a network card makes from it ([`cut()`]).
    pub fn push(&mut self, now: Instant, segment: &TxSegment) {
        cut(segment, |frame| {
            self.push_frame(now, frame);
        });
    }

    /// Puts one frame on the link, and returns its outcome.
    pub fn push_frame(&mut self, now: Instant, frame: Bytes) -> LinkOutcome {
        self.advance(now);
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.len() as u64;
        let is_target = self.targets.take(&frame);
        let fate = match self.admit(now, &frame) {
            Ok(()) => self.carry(now, frame, is_target),
            Err(loss) => LinkOutcome::lost(loss),
        };
        self.counters.count(fate);
        fate
    }

    /// Counts a frame as sent and lost, without putting it on the link, and returns its outcome. For
    /// users that lose frames by rules of their own.
    pub fn lose(&mut self, frame: &[u8], loss: Loss) -> LinkOutcome {
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.len() as u64;
        let fate = LinkOutcome::lost(loss);
        self.counters.count(fate);
        fate
    }

    /// Time of the next arrival, or of the next batch of acknowledgments.
    pub fn next_arrival(&self) -> Option<Instant> {
        let leaves = self.ack_batch.as_ref().and_then(AckBatch::leaves);
        let arrives = self.next_travelling().map(|next| next.arrives);
        let resets = self.middlebox.as_ref().and_then(|it| it.next_reset());
        arrives.into_iter().chain(leaves).chain(resets).min()
    }

    /// Takes the next frame that has arrived.
    pub fn pop(&mut self, now: Instant) -> Option<Bytes> {
        self.pop_arrival(now).map(|(_, frame)| frame)
    }

    /// Takes the next frame that has arrived, with the time of its arrival.
    pub fn pop_arrival(&mut self, now: Instant) -> Option<(Instant, Bytes)> {
        self.advance(now);
        let (next, first) = (self.next_travelling()?, self.in_order.front());
        if next.arrives > now {
            return None;
        }
        let next = match first.is_some_and(|first| first.number == next.number) {
            true => self.in_order.pop_front(),
            false => self.out_of_order.pop().map(|Reverse(next)| next),
        };
        let Travelling { arrives, frame, .. } = next?;
        self.counters.delivered += 1;
        self.held -= held(&frame);
        Some((arrives, frame))
    }

    /// Measures the waits of frames that come from `from` on.
    pub fn measure_waits(&mut self, from: Instant) {
        self.waits = Some(Box::new(Waits::new(from)));
    }

    /// Sets the MTU to `mtu` bytes; longer frames that are on the link arrive.
    pub const fn set_mtu(&mut self, mtu: u16) {
        self.config.mtu = mtu;
    }

    /// Takes the link down, with the loss of all frames on it, or up again.
    pub fn set_state(&mut self, state: LinkState) {
        self.state = state;
        if state == LinkState::Down {
            self.lose_after(None);
        }
    }
}

/// Changes over time.
impl Link {
    /// Does all that was due until now: steps, and batches, in order of time.
    fn advance(&mut self, now: Instant) {
        while let Some(leaves) = self.ack_batch.as_ref().and_then(AckBatch::leaves)
            && leaves <= now
        {
            self.step(leaves);
            self.release(leaves);
        }
        self.step(now);
        while let Some(reset) = self.middlebox.as_mut().and_then(|it| it.pop_reset(now)) {
            self.forge(now, reset);
        }
    }

    /// Makes the changes that were due until now.
    fn step(&mut self, now: Instant) {
        while let Some(step) = self.schedule.pop(now) {
            match step.change {
                Change::Mtu(mtu) => self.step_mtu = mtu,
                Change::Up => self.state = LinkState::Up,
                Change::Down => {
                    self.state = LinkState::Down;
                    self.lose_after(Some(Instant::ZERO + step.at));
                }
                Change::Rate(_) | Change::Delay(_) => {}
            }
        }
    }

    /// Sends the batch of acknowledgments.
    fn release(&mut self, now: Instant) {
        while let Some(frame) = self.ack_batch.as_mut().and_then(AckBatch::pop) {
            self.held -= held(&frame);
            let fate = self.transmit(now, frame, false);
            self.counters.count(fate);
        }
    }

    /// Sends a reset of the middlebox's own.
    fn forge(&mut self, now: Instant, reset: Bytes) {
        self.counters.sent += 1;
        self.counters.sent_bytes += reset.len() as u64;
        self.counters.resets_forged += 1;
        let fate = match self.state {
            LinkState::Up => self.transmit(now, reset, false),
            LinkState::Down => LinkOutcome::lost(Loss::Down),
        };
        self.counters.count(fate);
    }

    /// Loses the frames on the link, except those that have arrived at `at`.
    fn lose_after(&mut self, at: Option<Instant>) {
        let before = self.in_flight();
        let has_arrived = |frame: &Travelling| at.is_some_and(|at| frame.arrives <= at);
        self.in_order.retain(has_arrived);
        self.out_of_order.retain(|Reverse(frame)| has_arrived(frame));
        while self.ack_batch.as_mut().and_then(AckBatch::pop).is_some() {}
        self.counters.count_lost(Loss::Down, (before - self.in_flight()) as u64);
        let out_of_order = self.out_of_order.iter().map(|Reverse(frame)| frame);
        self.held = self.in_order.iter().chain(out_of_order).map(|it| held(&it.frame)).sum();
        self.queue.clear();
        self.queued_bytes = 0;
        self.latest = Instant::ZERO;
        if let Some(filter) = &mut self.ack_filter {
            filter.clear();
        }
    }
}

/// Course of a frame.
impl Link {
    /// The frame that arrives next; of two at one instant, the one sent first.
    fn next_travelling(&self) -> Option<&Travelling> {
        let placed = self.out_of_order.peek().map(|Reverse(next)| next);
        match (self.in_order.front(), placed) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        }
    }

    /// Returns the reason if a frame may not enter.
    fn admit(&mut self, now: Instant, frame: &Bytes) -> Result<(), Loss> {
        let bytes = frame.len() as u64;
        if self.state == LinkState::Down {
            return Err(Loss::Down);
        }
        if bytes > u64::from(self.config.mtu.min(self.step_mtu)) {
            return Err(Loss::TooLong);
        }
        if self.middlebox.as_mut().is_some_and(|it| !it.admits(now, frame)) {
            return Err(Loss::Forgotten);
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(now, bytes)) {
            return Err(Loss::Policed);
        }
        // It may arrive twice.
        if self.held + 2 * held(frame) > Self::MAX_BYTES {
            return Err(Loss::Crowded);
        }
        Ok(())
    }

    /// Takes a frame through the stages in front of the queue.
    fn carry(&mut self, now: Instant, mut frame: Bytes, is_target: bool) -> LinkOutcome {
        let bleached = self.config.ecn_bleach && change(&mut frame, bleach_ecn);
        let stripped = self.config.accecn_strip && change(&mut frame, strip_accecn);
        let options = self.config.strip;
        let options_stripped = !options.is_empty()
            && change(&mut frame, |packet| change_segment(packet, |it| options.strip(it)));
        let reset = self.middlebox.as_mut().and_then(|it| it.inject(&frame));
        let bytes = held(&frame);
        let leaving = match &mut self.ack_batch {
            Some(batch) if is_pure_ack(&frame) => batch.push(now, frame),
            _ => Some(frame),
        };
        let fate = match leaving {
            Some(frame) => self.transmit(now, frame, is_target),
            None => {
                self.held += bytes;
                LinkOutcome { batched: true, ..LinkOutcome::default() }
            }
        };
        let reset_follows = reset.is_some();
        if let Some(reset) = reset {
            self.forge(now, reset);
        }
        LinkOutcome { bleached, stripped, options_stripped, reset_follows, ..fate }
    }

    /// Takes a frame through the queue and onto the line.
    fn transmit(&mut self, now: Instant, frame: Bytes, is_target: bool) -> LinkOutcome {
        if let Some(number) = self.ack_filter.as_mut().and_then(|it| it.replace(now, &frame))
            && let Ok(place) = self.in_order.binary_search_by_key(&number, |it| it.number)
            && let Some(older) = self.in_order.get_mut(place)
        {
            older.frame = frame;
            self.counters.count_lost(Loss::Replaced, 1);
            return LinkOutcome { replaces: true, ..LinkOutcome::default() };
        }
        let Sending { starts, ends } = match self.enqueue(now, frame.len() as u64) {
            Ok(sending) => sending,
            Err(loss) => return LinkOutcome::lost(loss),
        };
        if is_target {
            return LinkOutcome::lost(Loss::Targeted);
        }
        let (number, copy) = (self.next_number, self.ack_filter.is_some().then(|| frame.clone()));
        let fate = self.send(ends, frame);
        if let Some((filter, frame)) = self.ack_filter.as_mut().zip(copy)
            && fate.is_unharmed()
        {
            filter.note(now, starts, number, &frame);
        }
        fate
    }

    /// Puts a frame at the end of the queue.
    fn enqueue(&mut self, now: Instant, bytes: u64) -> Result<Sending, Loss> {
        if self.schedule.rate(now).is_none() {
            return Ok(Sending { starts: now, ends: now });
        }
        while let Some((_, sent)) = self.queue.pop_front_if(|(until, _)| *until <= now) {
            self.queued_bytes -= sent;
        }
        let QueueBounds { frames: most_frames, bytes: most_bytes } = self.queue_bounds;
        let is_full =
            self.queue.len() as u64 >= most_frames || self.queued_bytes + bytes > most_bytes;
        if is_full {
            return Err(Loss::Queue);
        }
        let starts = self.queue.back().map_or(now, |(until, _)| *until);
        let ends = self.schedule.sent(starts, bytes);
        self.queue.push_back((ends, bytes));
        self.queued_bytes += bytes;
        if let Some(waits) = &mut self.waits {
            waits.count(now, starts.since(now));
        }
        Ok(Sending { starts, ends })
    }

    /// Sends a frame from the queue over the line.
    fn send(&mut self, sent: Instant, mut frame: Bytes) -> LinkOutcome {
        if self.draw(self.config.loss) {
            return LinkOutcome::lost(Loss::Random);
        }
        if self.config.burst_loss.is_some_and(|burst| self.is_hit_by(burst)) {
            return LinkOutcome::lost(Loss::Burst);
        }
        let marked = self.mark(&mut frame);
        let corrupted = self.draw(self.config.corrupt);
        let duplicated = self.draw(self.config.duplicate);
        let frame = if corrupted { self.corrupt(frame) } else { frame };
        let mut fate = LinkOutcome { marked, corrupted, duplicated, ..LinkOutcome::default() };
        if duplicated {
            fate.reordered |= self.travel(sent, frame.clone());
        }
        fate.reordered |= self.travel(sent, frame);
        fate
    }

    /// Sends a frame on its way. Returns true if it lost its place.
    fn travel(&mut self, sent: Instant, frame: Bytes) -> bool {
        let jitter = match self.config.jitter.as_nanos() as u64 {
            0 => 0,
            most => self.chance.u64(0..=most),
        };
        let delay = self.schedule.delay(sent) + self.config.host_delay;
        let mut arrives = sent + delay + Duration::from_nanos(jitter);
        arrives = arrives.max(self.latest);
        self.held += held(&frame);
        let number = self.next_number;
        self.next_number += 1;
        let reorder = self.config.reorder.filter(|reorder| self.draw(reorder.chance));
        if let Some(reorder) = reorder {
            arrives = arrives + reorder.extra;
            self.out_of_order.push(Reverse(Travelling { arrives, number, sent, frame }));
        } else {
            self.latest = arrives;
            self.in_order.push_back(Travelling { arrives, number, sent, frame });
        }
        reorder.is_some()
    }

    /// Advances the chain of Gilbert and Elliott. Returns true if the frame is lost in it.
    fn is_hit_by(&mut self, burst: BurstLoss) -> bool {
        let turn = if self.in_burst { burst.leave } else { burst.enter };
        self.in_burst ^= self.draw(turn);
        self.in_burst && self.draw(burst.loss)
    }

    /// Marks the frame if the queue up to it is long enough, and its sender is ECN-capable.
    fn mark(&self, frame: &mut Bytes) -> bool {
        let is_long = self.config.ecn.is_some_and(|from| self.queued_bytes >= from);
        is_long && change(frame, mark_congestion)
    }

    fn corrupt(&mut self, frame: Bytes) -> Bytes {
        let mut bytes = Vec::from(frame);
        if !bytes.is_empty() {
            let place = self.chance.usize(..bytes.len());
            bytes[place] ^= 1 << self.chance.u32(..8);
        }
        Bytes::from(bytes)
    }

    /// Draws; a probability of 0 or 1 takes no random number.
    fn draw(&mut self, probability: Probability) -> bool {
        match probability {
            Probability::ZERO => false,
            Probability::ONE => true,
            _ => self.chance.u32(..Probability::SCALE) < probability.millionths(),
        }
    }
}

/// Changes a frame by `act`, and returns the result.
fn change(frame: &mut Bytes, act: impl FnOnce(&mut [u8]) -> bool) -> bool {
    let mut bytes = Vec::from(core::mem::take(frame));
    let is_changed = act(&mut bytes);
    *frame = Bytes::from(bytes);
    is_changed
}

/// Overwrites the Accurate ECN option of a packet. Returns true if it has one.
fn strip_accecn(packet: &mut [u8]) -> bool {
    change_segment(packet, strip_accurate_ecn)
}

/// Changes the TCP segment of a packet. Returns true if `act` changed it.
fn change_segment(packet: &mut [u8], act: impl FnOnce(&mut [u8]) -> bool) -> bool {
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return false };
    let is_segment = ip.protocol == Protocol::TCP && ip.fragment.is_none();
    let begin = usize::from(ip.header_len);
    // Bytes behind the packet's end are no part of the segment.
    let segment = begin..begin + payload.len();
    packet.get_mut(segment).filter(|_| is_segment).is_some_and(act)
}

/// Memory of a frame under way, bytes.
fn held(frame: &Bytes) -> u64 {
    frame.len() as u64 + FRAME_BYTES
}

/// Memory of a frame's record, bytes.
const FRAME_BYTES: u64 = size_of::<Travelling>() as u64;

#[cfg(test)]
mod tests;
