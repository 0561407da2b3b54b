//! Queues between the shards of a host, for frames that arrived by the wrong queue.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Medium, RxFrame, Steering, queue_between};

use super::{FrameOwner, SteeringCounters, frame_owner};
use crate::Waker;
use crate::device::MAX_BURST;

/// One shard's part: it forwards what belongs to other shards, and takes what they forward. A
/// forwarded frame is not forwarded again.
#[derive(Debug)]
pub(crate) struct MisroutedFrames {
    queue: u16,
    queues: Arc<[ShardQueue]>,
    counters: SteeringCounters,
}

/// The queue to one shard, and its waker.
#[derive(Debug)]
struct ShardQueue {
    frames: ArrayQueue<(Box<[u8]>, SegMeta)>,
    waker: Waker,
}

impl MisroutedFrames {
    /// Creates the queues between the shards of a host, in the order of their wakers.
    pub(crate) fn join(wakers: &[Waker]) -> Vec<Self> {
        let queue =
            |waker: &Waker| ShardQueue { frames: ArrayQueue::new(CAPACITY), waker: waker.clone() };
        let queues: Arc<[ShardQueue]> = wakers.iter().map(queue).collect();
        let misrouted = |queue| {
            let counters = SteeringCounters::default();
            Self { queue, queues: Arc::clone(&queues), counters }
        };
        (0..queues.len() as u16).map(misrouted).collect()
    }

    /// Returns the steering of this shard: the ports whose segments it receives.
    pub(crate) fn steering(&self) -> Steering {
        Steering::Computable { queue: self.queue, queues: self.queues.len() as u16 }
    }

    /// Returns the counters.
    pub(crate) const fn counters(&self) -> &SteeringCounters {
        &self.counters
    }

    /// True if frames of other shards wait.
    pub(crate) fn are_waiting(&self) -> bool {
        self.queues.get(usize::from(self.queue)).is_some_and(|queue| !queue.frames.is_empty())
    }

    /// Delivers the frames that other shards forwarded. Returns their number.
    pub(crate) fn deliver_forwarded(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> usize {
        let Some(queue) = self.queues.get(usize::from(self.queue)) else { return 0 };
        let mut kept = Vec::new();
        while kept.len() < MAX_BURST
            && let Some(frame) = queue.frames.pop()
        {
            kept.push(frame);
        }
        if kept.is_empty() {
            return 0;
        }
        let frames: Vec<_> = kept.iter().map(|(bytes, meta)| RxFrame::new(bytes, *meta)).collect();
        deliver(&frames);
        self.counters.adopted += frames.len() as u64;
        frames.len()
    }

    /// Delivers the frames of a burst that are for this shard, and forwards the rest.
    pub(crate) fn sort(
        &mut self,
        medium: Medium,
        burst: &[RxFrame<'_>],
        deliver: &mut dyn FnMut(&[RxFrame<'_>]),
    ) {
        // With the kernel's program the whole burst is usually for this shard: it is delivered
        // without a copy.
        if burst.iter().all(|frame| self.maps_to_this_queue(medium, frame)) {
            return deliver(burst);
        }
        let kept: Vec<_> =
            burst.iter().filter(|frame| self.keeps(medium, frame)).copied().collect();
        if !kept.is_empty() {
            deliver(&kept);
        }
    }

    /// True if the frame is for this shard, and for no other.
    fn maps_to_this_queue(&self, medium: Medium, frame: &RxFrame<'_>) -> bool {
        match frame_owner(medium, frame.bytes) {
            FrameOwner::AnyShard => true,
            FrameOwner::Between(one, other) => self.queue_between(one, other) == self.queue,
            FrameOwner::FirstShard => self.queue == 0,
            FrameOwner::EveryShard => false,
        }
    }

    fn queue_between(&self, one: u16, other: u16) -> u16 {
        queue_between(one, other, self.queues.len() as u16)
    }

    /// Forwards the frame to the other shards that need it. Returns whether it is for this one.
    fn keeps(&mut self, medium: Medium, frame: &RxFrame<'_>) -> bool {
        let own = self.queue;
        match frame_owner(medium, frame.bytes) {
            FrameOwner::AnyShard => true,
            FrameOwner::Between(one, other) => {
                self.keeps_for(self.queue_between(one, other), frame)
            }
            FrameOwner::FirstShard => self.keeps_for(0, frame),
            FrameOwner::EveryShard => {
                for queue in (0..self.queues.len() as u16).filter(|queue| *queue != own) {
                    self.forward(queue, frame);
                }
                true
            }
        }
    }

    /// Forwards the frame to the shard of `queue`, unless that is this one. Returns whether it is.
    fn keeps_for(&mut self, queue: u16, frame: &RxFrame<'_>) -> bool {
        if queue != self.queue {
            self.forward(queue, frame);
        }
        queue == self.queue
    }

    fn forward(&mut self, queue: u16, frame: &RxFrame<'_>) {
        let Some(queue) = self.queues.get(usize::from(queue)) else { return };
        match queue.frames.push((frame.bytes.into(), frame.meta)) {
            Ok(()) => self.counters.forwarded += 1,
            Err(_full) => self.counters.dropped += 1,
        }
        queue.waker.wake();
    }
}

/// Limit of frames that wait for a shard, each a copy: about ten bursts.
const CAPACITY: usize = 1024;
