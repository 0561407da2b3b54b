//! The course of a transfer: all streams open, octets flow, time is over, the ends come.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_tcp::Instant;

use super::Until;
use super::{Bulk, Happening, Life, Reading, Series, Stream, Totals, Transport, Trouble, Unopened};

impl<T: Transport> Bulk<T> {
    pub(super) fn open(&mut self, net: &mut T, now: Instant) {
        self.life = Life::Opening;
        self.began = now;
        self.until = now;
        for _ in 0..self.plan.streams.max(1) {
            match net.connect(self.plan.target, &self.plan.opening, &mut Bytes::new()) {
                Ok(id) => self.streams.push(Stream {
                    id: Some(id),
                    open: false,
                    local: None,
                    pending: Bytes::new(),
                    totals: Totals::default(),
                    answer: Vec::new(),
                    shut: false,
                    idle: Duration::ZERO,
                    idle_since: None,
                    series: Series::default(),
                }),
                Err(unopened) => {
                    if let Unopened::Ports(shortage) = unopened {
                        self.shortage = Some(shortage);
                    }
                    return self.break_off(net, unopened.into(), now);
                }
            }
        }
    }

    /// Something went wrong: a transfer with a stream less would measure something else.
    fn break_off(&mut self, net: &mut T, trouble: Trouble, now: Instant) {
        self.trouble.get_or_insert(trouble);
        self.end(net, now);
    }

    pub(super) fn on_happening(&mut self, net: &mut T, happening: Happening<T>, now: Instant) {
        match happening {
            Happening::Connected(id) => {
                let stream = self.streams.iter_mut().find(|stream| stream.id == Some(id));
                let Some(stream) = stream else { return };
                stream.open = true;
                stream.local = net.local(id);
                if self.life == Life::Opening && self.streams.iter().all(|stream| stream.open) {
                    self.life = Life::Running;
                    self.began = now;
                    self.until = now;
                    self.next_sample = now + self.first_interval();
                }
            }
            Happening::Closed(id, Some(trouble)) if self.is_opening(id) => {
                self.break_off(net, trouble, now);
            }
            // `pump` looks at every stream: there are few.
            _ => {}
        }
    }

    fn is_opening(&self, id: T::Id) -> bool {
        self.life == Life::Opening && self.streams.iter().any(|stream| stream.id == Some(id))
    }

    /// The omitted part is intervals of its own.
    fn first_interval(&self) -> Duration {
        if self.plan.omit.is_zero() {
            self.plan.interval
        } else {
            self.plan.interval.min(self.plan.omit)
        }
    }

    /// What is due by the clock.
    pub(super) fn on_time(&mut self, net: &mut T, now: Instant) {
        match self.life {
            Life::Opening if now >= self.began + self.plan.timeout => {
                self.break_off(net, Trouble::ConnectTimeout, now);
            }
            Life::Ending { since } if now >= since + self.plan.timeout => {
                self.trouble.get_or_insert(Trouble::ResponseTimeout);
                self.end(net, now);
            }
            Life::Running => {
                while self.life == Life::Running && now >= self.next_sample {
                    let at = self.next_sample;
                    self.sample(net, at);
                    let omitted = self.began + self.plan.omit;
                    self.next_sample = at + self.plan.interval;
                    if at < omitted {
                        self.next_sample = self.next_sample.min(omitted);
                    }
                }
                if self.end_time().is_some_and(|end| now >= end) {
                    self.stop(net, now);
                }
            }
            _ => {}
        }
    }

    /// When time is over, if that ends it.
    pub(super) fn end_time(&self) -> Option<Instant> {
        match self.plan.until {
            Until::Elapsed(time) => Some(self.began + self.plan.omit + time),
            Until::Octets(_) => None,
        }
    }

    fn sample(&mut self, net: &T, at: Instant) {
        let until = at.since(self.began);
        let alone = self.streams.len() == 1;
        let together = net.retransmits();
        for stream in &mut self.streams {
            let mut gauge = stream.id.and_then(|id| net.gauge(id));
            if let Some(gauge) = &mut gauge {
                // What all connections sent again is what the only one did.
                gauge.retransmits = gauge.retransmits.or(together.filter(|_| alone));
            }
            let omitted = until <= self.plan.omit;
            let idle = stream.idle(at);
            stream.series.close_interval(until, stream.totals, (gauge, idle), omitted);
        }
    }

    /// Octets flow no more. Those who sent say so, and wait for what the peer says to it.
    pub(super) fn stop(&mut self, net: &mut T, now: Instant) {
        // Nothing was given since time was over, whenever that was noticed.
        self.until = self.end_time().map_or(now, |end| end.min(now));
        let whole = self.until.since(self.began);
        let last = self.streams.iter().filter_map(|stream| stream.series.samples().last());
        if last.map(|sample| sample.until).max().is_none_or(|last| last < whole) {
            self.sample(net, self.until);
        }
        self.life = Life::Ending { since: now };
        for stream in &mut self.streams {
            stream.pending.clear();
            stream.shut = true;
            if let Some(id) = stream.id {
                net.shutdown(id);
            }
        }
    }

    /// Moves every stream on. Returns whether one has more to do at once.
    pub(super) fn pump(&mut self, net: &mut T, now: Instant) -> bool {
        let mut more = false;
        for index in 0..self.streams.len() {
            if !matches!(self.life, Life::Running | Life::Ending { .. }) {
                return false;
            }
            more |= self.feed(net, index, now);
            match self.drain(net, index) {
                Ok(drained) => more |= drained,
                Err(trouble) => {
                    self.break_off(net, trouble, now);
                    return false;
                }
            }
        }
        if self.life == Life::Running && self.moved_all() {
            self.stop(net, now);
            return true;
        }
        if matches!(self.life, Life::Ending { .. }) && self.streams.iter().all(|s| s.id.is_none()) {
            self.life = Life::Over;
        }
        more
    }

    /// Gives a stream what it may send. Returns whether it would take more.
    fn feed(&mut self, net: &mut T, index: usize, now: Instant) -> bool {
        let sends = self.plan.direction.sends() && self.life == Life::Running;
        for _ in 0..STEPS {
            let allowance = self.allowance(index, now);
            let Some(stream) = self.streams.get_mut(index).filter(|_| sends) else { return false };
            let Some(id) = stream.id else { return false };
            if stream.pending.is_empty() {
                let most = usize::try_from(allowance).unwrap_or(usize::MAX);
                stream.pending = self.block.slice(..self.block.len().min(most));
                stream.note_idle(now);
            }
            if stream.pending.is_empty() {
                return false;
            }
            // Why it sends no more, reading tells.
            let Ok(taken) = net.send(id, &mut stream.pending) else { return false };
            stream.totals.sent += taken as u64;
            if !stream.pending.is_empty() {
                return false;
            }
        }
        true
    }

    /// Octets that a stream may still be given now: by its rate, and by the end.
    fn allowance(&self, index: usize, now: Instant) -> u64 {
        let sent = self.streams.get(index).map_or(0, |stream| stream.totals.sent);
        let by_end = match self.plan.until {
            Until::Octets(all) => all.saturating_sub(sent),
            Until::Elapsed(_) => u64::MAX,
        };
        let by_rate = self.plan.rate.map_or(u64::MAX, |rate| {
            let bits = now.since(self.began).as_secs_f64() * rate as f64;
            ((bits / 8.0) as u64).saturating_sub(sent)
        });
        // Less than a block would be sent in crumbs.
        let crumb = (self.block.len() as u64).min(by_end);
        if by_rate < crumb { 0 } else { by_end.min(by_rate) }
    }

    /// When the rate next allows a block.
    pub(super) fn next_token(&self) -> Option<Instant> {
        let rate = self.plan.rate.filter(|_| self.plan.direction.sends())?;
        let due = |stream: &Stream<T::Id>| {
            let octets = stream.totals.sent + self.block.len() as u64;
            let nanos = (octets as f64 * 8e9 / rate.max(1) as f64).ceil();
            self.began + Duration::from_nanos(nanos as u64 + 1)
        };
        // A stream that could not send what it was allowed waits for room, not for time.
        self.streams.iter().filter(|stream| stream.pending.is_empty()).map(due).min()
    }

    /// Reads what came. Returns whether there may be more.
    fn drain(&mut self, net: &mut T, index: usize) -> Result<bool, Trouble> {
        let receives = self.plan.direction.receives();
        for _ in 0..STEPS {
            let Some(stream) = self.streams.get_mut(index) else { return Ok(false) };
            let Some(id) = stream.id else { return Ok(false) };
            match net.recv(id) {
                Reading::Pending => return Ok(false),
                Reading::Data(octets) if receives => {
                    if !stream.shut {
                        stream.totals.received += octets.len() as u64;
                    }
                }
                Reading::Data(octets) => {
                    let room = LONGEST_ANSWER.saturating_sub(stream.answer.len());
                    stream.answer.extend(octets.iter().take(room));
                }
                Reading::End if stream.shut => {
                    net.close(id);
                    stream.id = None;
                }
                Reading::End => return Err(Trouble::EndedEarly),
                Reading::Failed(_) if stream.shut && receives => {
                    net.abort(id);
                    stream.id = None;
                }
                Reading::Failed(trouble) => return Err(trouble),
            }
        }
        Ok(true)
    }

    fn moved_all(&self) -> bool {
        let Until::Octets(all) = self.plan.until else { return false };
        self.streams.iter().all(|stream| {
            let Totals { sent, received } = stream.totals;
            (!self.plan.direction.sends() || sent >= all)
                && (!self.plan.direction.receives() || received >= all)
        })
    }
}

/// Blocks given, and pieces read, for one stream in one go.
const STEPS: usize = 16;
/// The longest line that a sink answers with, octets.
const LONGEST_ANSWER: usize = 64;
