//! Changes of a link's configuration while frames are on it.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use whimbrel_base::Instant;

use super::{Link, Travelling};
use crate::ack_batch::AckBatch;
use crate::config::LinkConfig;
use crate::middlebox::Middlebox;
use crate::policer::Policer;
use crate::pure_ack::AckFilter;
use crate::schedule::Schedule;
use crate::targets::Targets;

impl Link {
    /// Replaces the configuration at `now`. Waiting frames, and the rest of the frame that is being
    /// sent, leave at the new rate and travel with the new delay. Frames that were sent arrive as
    /// before. A frame keeps its fate and its jitter, and a shorter queue drops none that wait.
    ///
    /// Policer, middlebox, `drop=` and `ack-filter` begin anew. Waiting acknowledgments leave at once. The times of
    /// steps count from the link's start; steps whose time has passed apply at once.
    pub fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        let before = mem::replace(&mut self.schedule, Schedule::new(&config));
        self.queue_bounds = config.queue_bounds();
        self.targets = Targets::new(config.drop.clone(), config.mtu);
        self.policer = config.police.map(Policer::new);
        self.middlebox = Middlebox::of(&config);
        self.ack_filter = config.ack_filter.then(AckFilter::default);
        self.step_mtu = u16::MAX;
        let former = mem::replace(&mut self.config, config);
        let moved = self.reschedule_queue(now, &before);
        let delays = |sent: Instant| before.delay(sent) + former.host_delay;
        self.reschedule_arrivals(&moved, delays);
        self.release(now);
        let batch = self.config.ack_batch;
        self.ack_batch = (!batch.is_zero()).then(|| AckBatch::new(batch));
        self.step(now);
    }

    /// Computes when queued frames are sent. Returns their former and new times, in order.
    fn reschedule_queue(&mut self, now: Instant, before: &Schedule) -> Vec<(Instant, Instant)> {
        while let Some((_, sent)) = self.queue.pop_front_if(|(until, _)| *until <= now) {
            self.queued_bytes -= sent;
        }
        let (mut former_start, mut start) = (now, now);
        let mut moved = Vec::with_capacity(self.queue.len());
        for (ends, bytes) in &mut self.queue {
            // Part of the first frame may have been sent.
            let left = (before.bits(former_start, *ends) / 8.0 + 0.5) as u64;
            former_start = *ends;
            start = self.schedule.sent(start, left.min(*bytes));
            moved.push((*ends, start));
            *ends = start;
        }
        moved
    }

    /// Computes when frames arrive whose transmission has moved.
    fn reschedule_arrivals(
        &mut self,
        moved: &[(Instant, Instant)],
        former_delay: impl Fn(Instant) -> core::time::Duration,
    ) {
        let (schedule, host_delay) = (&self.schedule, self.config.host_delay);
        let reschedule = |frame: &mut Travelling| {
            let Ok(place) = moved.binary_search_by_key(&frame.sent, |(former, _)| *former) else {
                return;
            };
            let Some((_, sent)) = moved.get(place) else { return };
            let extra = frame.arrives.since(frame.sent + former_delay(frame.sent));
            frame.sent = *sent;
            frame.arrives = *sent + schedule.delay(*sent) + host_delay + extra;
        };
        self.latest = Instant::ZERO;
        for frame in &mut self.in_order {
            reschedule(frame);
            frame.arrives = frame.arrives.max(self.latest);
            self.latest = frame.arrives;
        }
        let mut overtaken = mem::take(&mut self.out_of_order).into_vec();
        overtaken.iter_mut().for_each(|Reverse(frame)| reschedule(frame));
        self.out_of_order = overtaken.into();
    }
}

#[cfg(test)]
mod tests;
