//! Rate and delay of a link over time: the steps of its configuration.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::config::{Change, LinkConfig, Step};

/// Rate and delay of a link over time. Both are known beforehand, so the arrival of a frame is
/// computed when it is sent.
#[derive(Debug)]
pub(crate) struct Schedule {
    rate: Timeline<Option<u64>>,
    delay: Timeline<Duration>,
    /// The other changes, the next one last.
    others: Vec<Step>,
}

/// A value that changes at known times.
#[derive(Debug)]
struct Timeline<T> {
    first: T,
    /// Changes in order of time, with the new values.
    later: Vec<(Instant, T)>,
}

impl Schedule {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        let mut rate = Timeline { first: config.rate, later: Vec::new() };
        let mut delay = Timeline { first: config.delay, later: Vec::new() };
        let mut others = Vec::new();
        for step in &config.steps {
            let at = Instant::ZERO + step.at;
            match step.change {
                Change::Rate(bits) => rate.later.push((at, Some(bits))),
                Change::Delay(time) => delay.later.push((at, time)),
                Change::Mtu(_) | Change::Down | Change::Up => others.push(*step),
            }
        }
        others.reverse();
        Self { rate, delay, others }
    }

    /// Bits per second at `at`; `None` if frames take no time to send.
    pub(crate) fn rate(&self, at: Instant) -> Option<u64> {
        self.rate.at(at)
    }

    /// Travel time of a frame sent at `sent`.
    pub(crate) fn delay(&self, sent: Instant) -> Duration {
        self.delay.at(sent)
    }

    /// End of transmission of a frame of `bytes` whose first bit is sent at `from`.
    pub(crate) fn sent(&self, mut from: Instant, bytes: u64) -> Instant {
        let mut left = bytes * 8 * NANOS_PER_SECOND;
        loop {
            let Some(rate) = self.rate.at(from) else { return from };
            let sent = from + Duration::from_nanos(left.div_ceil(rate));
            let Some(next) = self.rate.next(from).filter(|next| *next < sent) else { return sent };
            left -= next.since(from).as_nanos() as u64 * rate;
            from = next;
        }
    }

    /// Bits sent between these times, while there are frames.
    pub(crate) fn bits(&self, mut from: Instant, until: Instant) -> f64 {
        let mut bits = 0.0;
        loop {
            let end = self.rate.next(from).map_or(until, |next| next.min(until));
            bits += end.since(from).as_secs_f64() * self.rate.at(from).unwrap_or(0) as f64;
            if end >= until {
                return bits;
            }
            from = end;
        }
    }

    /// The next change of the MTU or of the state, if it is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Step> {
        self.others.pop_if(|step| Instant::ZERO + step.at <= now)
    }
}

impl<T: Copy> Timeline<T> {
    fn at(&self, at: Instant) -> T {
        let place = self.begun(at).checked_sub(1).and_then(|last| self.later.get(last));
        place.map_or(self.first, |(_, value)| *value)
    }

    /// Time of the next change after `at`.
    fn next(&self, at: Instant) -> Option<Instant> {
        self.later.get(self.begun(at)).map(|(next, _)| *next)
    }

    /// Number of changes until `at`.
    fn begun(&self, at: Instant) -> usize {
        self.later.partition_point(|(since, _)| *since <= at)
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
