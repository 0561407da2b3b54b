//! One direction of a link.
//!
//! ```text
//! push -> up? short enough? -> queue -> marked? sending (rate) -> lost? corrupted? twice?
//!      -> travelling (delay, jitter, reordering) -> pop
//! ```
//!
//! A frame that is lost behind the queue has used its share of the rate, as on a real line. What keeps
//! its place travels in a queue, and what is put out of order in a heap by arrival: a frame costs O(1), or
//! O(log n), and nothing is ever searched.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_wire::ip::mark_congestion;

use crate::config::{BurstLoss, LinkConfig, Probability, QueueBounds};
use crate::targets::Targets;
use crate::{Fate, LinkCounters, Loss, cut};

/// One direction of a link. Times told must not run backwards.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    state: LinkState,
    /// All chance of this link comes from here: its draws shift no other link's.
    chance: Rng,
    /// The state of burst losses is the bad one.
    in_burst: bool,
    /// When each frame in the queue will have been sent, and its bytes.
    queue: VecDeque<(Instant, u64)>,
    queued_bytes: u64,
    queue_bounds: QueueBounds,
    targets: Targets,
    /// The arrival of the latest frame that kept its place: none of those comes before it.
    latest: Instant,
    /// Frames that kept their place, the next to arrive in front.
    in_order: VecDeque<Travelling>,
    /// Frames that others may overtake.
    out_of_order: BinaryHeap<Reverse<Travelling>>,
    /// What all of those take, bytes: their own, and [`FRAME_BYTES`] each.
    held: u64,
    /// Numbers frames, so that those of one instant arrive in the order in which they were sent.
    next_number: u64,
    counters: LinkCounters,
}

/// Whether a link carries anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// The link carries frames.
    Up,
    /// What is on it is lost, and so is what is pushed.
    Down,
}

/// A frame between its sending and its arrival, ordered by the latter.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Travelling {
    arrives: Instant,
    number: u64,
    frame: Bytes,
}

/// Getters.
impl Link {
    /// The most memory that frames on one direction of a link take, bytes, the record of each included:
    /// 1 GiB, a second of 8 Gb/s. Delay times what is sent is what there would be; what comes beyond is
    /// lost ([`Loss::Crowded`]).
    pub const MOST_OCTETS: u64 = 1 << 30;

    /// A link, up and empty. The same seed makes the same choices.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            queue_bounds: config.queue_bounds(),
            targets: Targets::new(config.drop.clone(), config.mtu),
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

    /// What it is like.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Whether it carries anything.
    pub const fn state(&self) -> LinkState {
        self.state
    }

    /// What happened on it.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// True if nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.in_flight() == 0
    }

    /// Bytes that wait for the line, or are on their way into it; 0 of a line without a rate.
    pub fn backlog(&self, now: Instant) -> u64 {
        let free = self.queue.back().map_or(now, |(until, _)| *until);
        let bits = free.since(now).as_secs_f64() * self.config.rate.unwrap_or(0) as f64;
        (bits / 8.0) as u64
    }

    /// Frames between their sending and their arrival, waiting ones included.
    pub fn in_flight(&self) -> usize {
        self.in_order.len() + self.out_of_order.len()
    }
}

/// What goes in and comes out.
impl Link {
    /// Puts a segment on the link as the packets that a network card makes of it ([`cut()`]).
    pub fn push(&mut self, now: Instant, segment: &TxSegment) {
        cut(segment, |frame| {
            self.push_frame(now, frame);
        });
    }

    /// Puts one frame on the link, and says what becomes of it.
    pub fn push_frame(&mut self, now: Instant, frame: Bytes) -> Fate {
        self.counters.sent += 1;
        self.counters.sent_octets += frame.len() as u64;
        let is_target = self.targets.take(&frame);
        let fate = match self.enqueue(now, &frame) {
            Ok(_) if is_target => Fate::lost(Loss::Targeted),
            Ok(sent) => self.send(sent, frame),
            Err(loss) => Fate::lost(loss),
        };
        self.counters.count(fate);
        fate
    }

    /// When the next frame arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.next_travelling().map(|next| next.arrives)
    }

    /// The next frame that has arrived.
    pub fn pop(&mut self, now: Instant) -> Option<Bytes> {
        let (next, first) = (self.next_travelling()?, self.in_order.front());
        if next.arrives > now {
            return None;
        }
        let next = match first.is_some_and(|first| first.number == next.number) {
            true => self.in_order.pop_front(),
            false => self.out_of_order.pop().map(|Reverse(next)| next),
        };
        let frame = next.map(|next| next.frame)?;
        self.counters.delivered += 1;
        self.held -= held(&frame);
        Some(frame)
    }

    /// From now on it takes packets of at most `mtu` bytes; longer ones that are on it arrive.
    pub const fn set_mtu(&mut self, mtu: u16) {
        self.config.mtu = mtu;
    }

    /// Takes the link down, with the loss of all that is on it, or up again.
    pub fn set_state(&mut self, state: LinkState) {
        self.state = state;
        if state == LinkState::Down {
            self.counters.count_lost(Loss::Down, self.in_flight() as u64);
            self.in_order.clear();
            self.out_of_order.clear();
            self.held = 0;
            self.queue.clear();
            self.queued_bytes = 0;
            self.latest = Instant::ZERO;
        }
    }
}

/// The way of a frame.
impl Link {
    /// The frame that arrives next; of two at one instant, the one that was sent first.
    fn next_travelling(&self) -> Option<&Travelling> {
        let placed = self.out_of_order.peek().map(|Reverse(next)| next);
        match (self.in_order.front(), placed) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        }
    }

    /// The queue and the sender behind it: when the frame will have been sent.
    fn enqueue(&mut self, now: Instant, frame: &Bytes) -> Result<Instant, Loss> {
        let bytes = frame.len() as u64;
        if self.state == LinkState::Down {
            return Err(Loss::Down);
        }
        if bytes > u64::from(self.config.mtu) {
            return Err(Loss::TooLong);
        }
        // It may arrive twice.
        if self.held + 2 * held(frame) > Self::MOST_OCTETS {
            return Err(Loss::Crowded);
        }
        let Some(rate) = self.config.rate else { return Ok(now) };
        while let Some((_, sent)) = self.queue.pop_front_if(|(until, _)| *until <= now) {
            self.queued_bytes -= sent;
        }
        let QueueBounds { frames: most_frames, bytes: most_bytes } = self.queue_bounds;
        let is_full =
            self.queue.len() as u64 >= most_frames || self.queued_bytes + bytes > most_bytes;
        if is_full {
            return Err(Loss::Queue);
        }
        let free = self.queue.back().map_or(now, |(until, _)| *until);
        let sent = free + Duration::from_nanos((bytes * 8 * NANOS_PER_SECOND).div_ceil(rate));
        self.queue.push_back((sent, bytes));
        self.queued_bytes += bytes;
        Ok(sent)
    }

    /// What the line does to a frame behind the queue.
    fn send(&mut self, sent: Instant, frame: Bytes) -> Fate {
        if self.draw(self.config.loss) {
            return Fate::lost(Loss::Random);
        }
        if self.config.burst_loss.is_some_and(|burst| self.is_hit_by(burst)) {
            return Fate::lost(Loss::Burst);
        }
        let (frame, marked) = self.mark(frame);
        let corrupted = self.draw(self.config.corrupt);
        let duplicated = self.draw(self.config.duplicate);
        let frame = if corrupted { self.corrupt(frame) } else { frame };
        let mut fate = Fate { marked, corrupted, duplicated, ..Fate::default() };
        if duplicated {
            fate.reordered |= self.travel(sent, frame.clone());
        }
        fate.reordered |= self.travel(sent, frame);
        fate
    }

    /// Sends a frame on its way. Returns whether it lost its place.
    fn travel(&mut self, sent: Instant, frame: Bytes) -> bool {
        let jitter = match self.config.jitter.as_nanos() as u64 {
            0 => 0,
            most => self.chance.u64(0..=most),
        };
        let delay = self.config.delay + self.config.host_delay;
        let mut arrives = sent + delay + Duration::from_nanos(jitter);
        arrives = arrives.max(self.latest);
        self.held += held(&frame);
        let number = self.next_number;
        self.next_number += 1;
        let reorder = self.config.reorder.filter(|reorder| self.draw(reorder.chance));
        if let Some(reorder) = reorder {
            arrives = arrives + reorder.extra;
            self.out_of_order.push(Reverse(Travelling { arrives, number, frame }));
        } else {
            self.latest = arrives;
            self.in_order.push_back(Travelling { arrives, number, frame });
        }
        reorder.is_some()
    }

    /// A step of Gilbert's and Elliott's chain, and whether the frame is lost in it.
    fn is_hit_by(&mut self, burst: BurstLoss) -> bool {
        let turn = if self.in_burst { burst.leave } else { burst.enter };
        self.in_burst ^= self.draw(turn);
        self.in_burst && self.draw(burst.loss)
    }

    /// Marks the frame if the queue, in which it is the last, is long enough, and its sender wants marks.
    fn mark(&self, frame: Bytes) -> (Bytes, bool) {
        if self.config.ecn.is_none_or(|from| self.queued_bytes < from) {
            return (frame, false);
        }
        let mut bytes = Vec::from(frame);
        let marked = mark_congestion(&mut bytes);
        (Bytes::from(bytes), marked)
    }

    fn corrupt(&mut self, frame: Bytes) -> Bytes {
        let mut bytes = Vec::from(frame);
        if !bytes.is_empty() {
            let place = self.chance.usize(..bytes.len());
            bytes[place] ^= 1 << self.chance.u32(..8);
        }
        Bytes::from(bytes)
    }

    /// What cannot happen, or must, takes no draw.
    fn draw(&mut self, probability: Probability) -> bool {
        match probability {
            Probability::ZERO => false,
            Probability::ONE => true,
            _ => self.chance.u32(..Probability::SCALE) < probability.millionths(),
        }
    }
}

/// The memory that a frame on its way takes, bytes.
fn held(frame: &Bytes) -> u64 {
    frame.len() as u64 + FRAME_BYTES
}

/// The memory of a frame's record, bytes.
const FRAME_BYTES: u64 = size_of::<Travelling>() as u64;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
