//! The lanes between the shards of a host: frames that came in by the wrong queue.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Medium, RxFrame, Steering, queue_between};

use super::{Home, SteeringCounters, home};
use crate::Waker;
use crate::device::MAX_BURST;

/// What one shard does about them: it passes on what belongs to others, and takes what others pass
/// on. A frame that was passed on is not looked at again.
#[derive(Debug)]
pub(crate) struct MisroutedFrames {
    queue: u16,
    lanes: Arc<[ShardQueue]>,
    counters: SteeringCounters,
}

/// The way to the shard of a queue.
#[derive(Debug)]
struct ShardQueue {
    frames: ArrayQueue<(Box<[u8]>, SegMeta)>,
    waker: Waker,
}

impl MisroutedFrames {
    /// Of the shards of one host, in the order of their queues, each with what wakes its worker.
    pub(crate) fn join(wakers: &[Waker]) -> Vec<Self> {
        let lane =
            |waker: &Waker| ShardQueue { frames: ArrayQueue::new(LANE), waker: waker.clone() };
        let lanes: Arc<[ShardQueue]> = wakers.iter().map(lane).collect();
        let misrouted = |queue| {
            let counters = SteeringCounters::default();
            Self { queue, lanes: Arc::clone(&lanes), counters }
        };
        (0..lanes.len() as u16).map(misrouted).collect()
    }

    /// Which ports come home to this shard.
    pub(crate) fn steering(&self) -> Steering {
        Steering::Computable { queue: self.queue, queues: self.lanes.len() as u16 }
    }

    /// What was passed on so far.
    pub(crate) const fn counters(&self) -> &SteeringCounters {
        &self.counters
    }

    /// Whether others passed something on that was not taken yet.
    pub(crate) fn are_waiting(&self) -> bool {
        self.lanes.get(usize::from(self.queue)).is_some_and(|lane| !lane.frames.is_empty())
    }

    /// Delivers what others passed on. Returns how many frames.
    pub(crate) fn adopt(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> usize {
        let Some(lane) = self.lanes.get(usize::from(self.queue)) else { return 0 };
        let mut kept = Vec::new();
        while kept.len() < MAX_BURST
            && let Some(frame) = lane.frames.pop()
        {
            kept.push(frame);
        }
        if kept.is_empty() {
            return 0;
        }
        let frames: Vec<_> =
            kept.iter().map(|(octets, meta)| RxFrame::new(octets, *meta)).collect();
        deliver(&frames);
        self.counters.adopted += frames.len() as u64;
        frames.len()
    }

    /// Delivers what of a burst is for this shard, and passes on the rest.
    pub(crate) fn sort(
        &mut self,
        medium: Medium,
        burst: &[RxFrame<'_>],
        deliver: &mut dyn FnMut(&[RxFrame<'_>]),
    ) {
        // The kernel's program mostly leaves nothing to do: the burst goes on as it is, uncopied.
        if burst.iter().all(|frame| self.comes_home(medium, frame)) {
            return deliver(burst);
        }
        let kept: Vec<_> =
            burst.iter().filter(|frame| self.keeps(medium, frame)).copied().collect();
        if !kept.is_empty() {
            deliver(&kept);
        }
    }

    /// Whether the frame is for this shard, and for no other.
    fn comes_home(&self, medium: Medium, frame: &RxFrame<'_>) -> bool {
        match home(medium, frame.octets) {
            Home::Anybody => true,
            Home::Between(one, other) => self.queue_between(one, other) == self.queue,
            Home::First => self.queue == 0,
            Home::Everybody => false,
        }
    }

    fn queue_between(&self, one: u16, other: u16) -> u16 {
        queue_between(one, other, self.lanes.len() as u16)
    }

    /// Passes the frame on, if others are to have it. Returns whether it is for this shard.
    fn keeps(&mut self, medium: Medium, frame: &RxFrame<'_>) -> bool {
        let own = self.queue;
        match home(medium, frame.octets) {
            Home::Anybody => true,
            Home::Between(one, other) => self.keeps_for(self.queue_between(one, other), frame),
            Home::First => self.keeps_for(0, frame),
            Home::Everybody => {
                for queue in (0..self.lanes.len() as u16).filter(|queue| *queue != own) {
                    self.forward(queue, frame);
                }
                true
            }
        }
    }

    /// Passes the frame on to the shard of `queue`, unless that is this one.
    fn keeps_for(&mut self, queue: u16, frame: &RxFrame<'_>) -> bool {
        if queue != self.queue {
            self.forward(queue, frame);
        }
        queue == self.queue
    }

    fn forward(&mut self, queue: u16, frame: &RxFrame<'_>) {
        let Some(lane) = self.lanes.get(usize::from(queue)) else { return };
        match lane.frames.push((frame.octets.into(), frame.meta)) {
            Ok(()) => self.counters.forwarded += 1,
            Err(_full) => self.counters.dropped += 1,
        }
        lane.waker.wake();
    }
}

/// Frames that may wait for a shard, each a copy: what a busy one takes in some ten bursts.
const LANE: usize = 1024;
