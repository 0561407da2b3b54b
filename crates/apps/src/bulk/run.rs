//! The course of a transfer: all streams open, bytes flow, time is over, the ends come.

use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;

use super::series::StreamState;
use super::{
    Bulk, ConnError, Direction, GRACE, OpenError, Peer, Reading, StopCondition, Stream, Totals,
    TransferState, Transport, TransportEvent,
};

impl<T: Transport> Bulk<T> {
    pub(super) fn open(&mut self, net: &mut T, now: Instant) {
        self.state = TransferState::Opening;
        self.began = now;
        self.until = now;
        if self.plan.destinations.len() > 1 {
            return self.begin_seeking(net, now);
        }
        if self.client.is_some() {
            return self.open_control(net, now);
        }
        self.open_streams(net, now);
    }

    /// Begins to open the streams that are not yet.
    pub(super) fn open_streams(&mut self, net: &mut T, now: Instant) {
        for _ in self.streams.len()..self.plan.streams.max(1) as usize {
            if !self.open_stream(net, self.plan.direction, Bytes::new(), now) {
                return;
            }
        }
    }

    /// Begins to open a stream, on which `prologue` goes first. Returns whether that could be done; if
    /// not, all is over.
    pub(crate) fn open_stream(
        &mut self,
        net: &mut T,
        direction: Direction,
        prologue: Bytes,
        now: Instant,
    ) -> bool {
        match net.connect(self.plan.target, &self.plan.options, &mut Bytes::new()) {
            Ok(id) => {
                self.join(Stream { prologue, ..Stream::new(id, direction, usize::MAX) });
                true
            }
            Err(unopened) => {
                if let OpenError::Ports(shortage) = unopened {
                    self.shortage = Some(shortage);
                }
                self.break_off(net, unopened.into(), now);
                false
            }
        }
    }

    /// A stream that was accepted, and of which so much was read.
    pub(crate) fn adopt(&mut self, net: &T, id: T::Id, direction: Direction, early: u64) {
        // A client may ask for many streams and a day.
        let keep = MOST_SAMPLES / (self.plan.streams.max(1) as usize);
        let (local, remote) = (net.local(id), net.remote(id));
        let mut stream = Stream { local, remote, open: true, ..Stream::new(id, direction, keep) };
        stream.totals.received = early;
        self.progress.received += early;
        self.join(stream);
    }

    pub(super) fn join(&mut self, stream: Stream<T::Id>) {
        if let Some(id) = stream.id {
            self.due.join(T::place(id), self.streams.len());
        }
        self.receivers += u64::from(stream.direction.receives());
        self.streams.push(stream);
    }

    /// Something happened on a connection: if it is one of the streams, that is to be moved on.
    pub(crate) fn note(&mut self, event: &TransportEvent<T>) {
        if let TransportEvent::Connected(id)
        | TransportEvent::Readable(id)
        | TransportEvent::Writable(id)
        | TransportEvent::Closed(id, _) = event
            && let Some(index) = self.index_of(*id)
        {
            self.due.mark(index);
        }
    }

    fn index_of(&self, id: T::Id) -> Option<usize> {
        let index = self.due.at_place(T::place(id))?;
        self.streams.get(index).filter(|stream| stream.id == Some(id)).map(|_| index)
    }

    /// Bytes flow from now on.
    pub(crate) fn start(&mut self, now: Instant) {
        self.state = TransferState::Running;
        self.began = now;
        self.until = now;
        self.next_sample = now + self.first_interval();
        self.due.mark_all();
        self.effort[0] = (self.plan.effort)();
    }

    /// What is due by the clock, and what came.
    pub(crate) fn go_on(&mut self, net: &mut T, now: Instant) -> bool {
        self.on_time(net, now);
        let said = self.talk(net, now);
        self.pump(net, now) | said
    }

    /// Something went wrong: a transfer with a stream less would measure something else.
    pub(crate) fn break_off(&mut self, net: &mut T, conn_error: ConnError, now: Instant) {
        self.conn_error.get_or_insert(conn_error);
        self.end(net, now);
    }

    pub(super) fn on_event(&mut self, net: &mut T, event: TransportEvent<T>, now: Instant) {
        if self.race.is_some() {
            return self.on_attempt(net, &event, now);
        }
        self.note(&event);
        match event {
            TransportEvent::Connected(id) => {
                self.on_control_open(id);
                let index = self.index_of(id);
                let Some(stream) = index.and_then(|index| self.streams.get_mut(index)) else {
                    return;
                };
                stream.open = true;
                (stream.local, stream.remote) = (net.local(id), net.remote(id));
                let all = self.streams.iter().all(|stream| stream.open);
                if all && self.state == TransferState::Opening && self.client.is_none() {
                    self.start(now);
                }
            }
            TransportEvent::Closed(id, Some(conn_error)) if self.is_opening(id) => {
                self.break_off(net, conn_error, now);
            }
            _ => {}
        }
    }

    fn is_opening(&self, id: T::Id) -> bool {
        let is_ours = || self.is_control(id) || self.index_of(id).is_some();
        self.state == TransferState::Opening && is_ours()
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
        match self.state {
            TransferState::Opening if self.race.is_some() => self.go_on_seeking(net, now),
            TransferState::Opening if now >= self.began + self.plan.timeout => {
                self.on_silence();
                self.break_off(net, ConnError::ConnectTimeout, now);
            }
            TransferState::Ending { since } if now >= since + self.plan.timeout => {
                self.on_silence();
                self.conn_error.get_or_insert(ConnError::ResponseTimeout);
                self.end(net, now);
            }
            TransferState::Running if self.lost.is_some_and(|(_, since)| now >= since + GRACE) => {
                let (conn_error, _) = self.lost.unwrap_or((ConnError::EndedEarly, now));
                self.break_off(net, conn_error, now);
            }
            TransferState::Running => {
                while self.state == TransferState::Running && now >= self.next_sample {
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
            StopCondition::Elapsed(time) => Some(self.began + self.plan.omit + time),
            StopCondition::Octets(_) | StopCondition::Told => None,
        }
    }

    fn sample(&mut self, net: &T, at: Instant) {
        let until = at.since(self.began);
        let alone = self.streams.len() == 1;
        let together = net.retransmits();
        for stream in &mut self.streams {
            let mut sender_stats = stream.id.and_then(|id| net.sender_stats(id));
            if let Some(sender_stats) = &mut sender_stats {
                stream.acknowledge(sender_stats);
                // What all connections sent again is what the only one did.
                sender_stats.retransmits = sender_stats.retransmits.or(together.filter(|_| alone));
            }
            let omitted = until <= self.plan.omit;
            let state = StreamState { totals: stream.totals, sender_stats, idle: stream.idle(at) };
            stream.series.close_interval(until, state, omitted);
        }
    }

    /// Bytes flow no more. Those who sent say so, and wait for what the peer says to it.
    pub(super) fn stop(&mut self, net: &mut T, now: Instant) {
        // Nothing was given since time was over, whenever that was noticed.
        self.stop_at(net, now, self.end_time().map_or(now, |end| end.min(now)));
    }

    /// The same where time was over at `until`.
    pub(crate) fn stop_at(&mut self, net: &mut T, now: Instant, until: Instant) {
        self.until = until;
        self.effort[1] = (self.plan.effort)();
        let whole = self.until.since(self.began);
        let last = self.streams.iter().map(|stream| stream.series.until()).max();
        if last.is_none_or(|last| last < whole) {
            self.sample(net, self.until);
        }
        self.state = TransferState::Ending { since: now };
        self.due.mark_all();
        for stream in &mut self.streams {
            stream.pending.clear();
            if let (Some(id), Peer::Plain, false) = (stream.id, &self.plan.peer, stream.shut) {
                net.shutdown(id);
            }
            stream.shut = true;
        }
        self.tell_end();
    }

    /// Moves each stream on that something happened on. Returns whether one has more to do at once.
    pub(super) fn pump(&mut self, net: &mut T, now: Instant) -> bool {
        if !matches!(self.state, TransferState::Running | TransferState::Ending { .. }) {
            return false;
        }
        let mut more = false;
        for index in self.due.take(now) {
            let fed = self.feed(net, index, now);
            match self.drain(net, index, now) {
                Ok(drained) if fed || drained => {
                    self.due.mark(index);
                    more = true;
                }
                Ok(_) => {}
                Err(conn_error) if matches!(self.plan.peer, Peer::Plain) => {
                    self.break_off(net, conn_error, now);
                    return false;
                }
                Err(conn_error) => self.lose(net, index, conn_error, now),
            }
        }
        if self.state == TransferState::Running && self.moved_all(net, now) {
            self.stop(net, now);
            return true;
        }
        let gone = || self.streams.iter().all(|stream| stream.id.is_none());
        if matches!(self.state, TransferState::Ending { .. }) && self.client.is_none() && gone() {
            self.state = TransferState::Over;
        }
        more
    }

    /// A stream is gone; why, the control connection may tell.
    fn lose(&mut self, net: &mut T, index: usize, conn_error: ConnError, now: Instant) {
        self.lost.get_or_insert((conn_error, now));
        let Some(stream) = self.streams.get_mut(index) else { return };
        if let Some(id) = stream.id.take() {
            net.sender_stats(id).inspect(|sender_stats| stream.acknowledge(sender_stats));
            net.abort(id);
        }
    }

    /// Gives a stream what it may send. Returns whether it would take more.
    fn feed(&mut self, net: &mut T, index: usize, now: Instant) -> bool {
        for _ in 0..STEPS {
            let allowance = self.allowance(index, now);
            let running = self.state == TransferState::Running;
            let Some(stream) = self.streams.get_mut(index) else { return false };
            let sends = stream.direction.sends() && !stream.shut && running;
            let Some(id) = stream.id.filter(|_| sends) else { return false };
            if stream.pending.is_empty() {
                let most = usize::try_from(allowance).unwrap_or(usize::MAX);
                stream.pending = self.block.slice(..self.block.len().min(most));
                stream.note_idle(now);
            }
            if stream.pending.is_empty() {
                self.await_token(index);
                return false;
            }
            // Why it sends no more, reading tells.
            let Ok(taken) = net.send(id, &mut stream.pending) else { return false };
            stream.given += taken as u64;
            self.progress.sent += taken as u64;
            // Where it ends by itself the FIN goes with the last of it, and has all acknowledged at once.
            if matches!(self.plan.until, StopCondition::Octets(all) if stream.given >= all)
                && matches!(self.plan.peer, Peer::Plain)
                && stream.direction == Direction::Send
            {
                stream.shut = true;
                net.shutdown(id);
                return false;
            }
            if !stream.pending.is_empty() {
                return false;
            }
        }
        true
    }

    /// Bytes that a stream may still be given now: by its rate, and by the end.
    fn allowance(&self, index: usize, now: Instant) -> u64 {
        let sent = self.streams.get(index).map_or(0, |stream| stream.given);
        let by_end = match self.plan.until {
            StopCondition::Octets(all) => all.saturating_sub(sent),
            StopCondition::Elapsed(_) | StopCondition::Told => u64::MAX,
        };
        let by_rate = self.plan.rate.map_or(u64::MAX, |rate| {
            let bits = now.since(self.began).as_secs_f64() * rate as f64;
            ((bits / 8.0) as u64).saturating_sub(sent)
        });
        // Less than a block would be sent in crumbs.
        let crumb = (self.block.len() as u64).min(by_end);
        if by_rate < crumb { 0 } else { by_end.min(by_rate) }
    }

    /// A stream is to be moved on when its rate next allows a block, if it has one. One that could not send
    /// what it was allowed waits for room, not for time.
    fn await_token(&mut self, index: usize) {
        let (Some(rate), Some(stream)) = (self.plan.rate, self.streams.get(index)) else { return };
        if matches!(self.plan.until, StopCondition::Octets(all) if stream.given >= all) {
            return;
        }
        let bytes = stream.given + self.block.len() as u64;
        let nanos = (bytes as f64 * 8e9 / rate.max(1) as f64).ceil();
        self.due.mark_later(index, self.began + Duration::from_nanos(nanos as u64 + 1));
    }

    /// Reads what came. Returns whether there may be more.
    fn drain(&mut self, net: &mut T, index: usize, now: Instant) -> Result<bool, ConnError> {
        let (running, plain) =
            (self.state == TransferState::Running, matches!(self.plan.peer, Peer::Plain));
        for _ in 0..STEPS {
            let Some(stream) = self.streams.get_mut(index) else { return Ok(false) };
            let Some(id) = stream.id else { return Ok(false) };
            let receives = stream.direction.receives();
            match net.recv(id) {
                Reading::Pending => return Ok(false),
                Reading::Data(bytes) if receives => {
                    if running {
                        stream.totals.received += bytes.len() as u64;
                        self.progress.received += bytes.len() as u64;
                    }
                }
                Reading::Data(bytes) => {
                    let room = LONGEST_ANSWER.saturating_sub(stream.answer.len());
                    stream.answer.extend(bytes.iter().take(room));
                }
                Reading::End if stream.shut => {
                    // Who read to the end has all.
                    if plain && running && stream.direction == Direction::Send {
                        stream.totals.sent = stream.given;
                    }
                    stream.answered = Some(now);
                    net.close(id);
                    stream.id = None;
                }
                Reading::End => return Err(ConnError::EndedEarly),
                // iperf3's server closes what it may not have read.
                Reading::Failed(_) if !running && stream.shut && (receives || !plain) => {
                    net.abort(id);
                    stream.id = None;
                }
                Reading::Failed(conn_error) => return Err(conn_error),
            }
        }
        Ok(true)
    }

    /// Reads what came, once more. Returns whether something had.
    pub(crate) fn read_rest(&mut self, net: &mut T, now: Instant) -> bool {
        let before = self.totals().received;
        for index in 0..self.streams.len() {
            // What else became of it is of no interest any more.
            let _over = self.drain(net, index, now);
        }
        self.totals().received > before
    }

    /// Closes the streams in good order: none has something unread, for which it would be reset.
    pub(crate) fn close_streams(&mut self, net: &mut T) {
        for stream in &mut self.streams {
            let Some(id) = stream.id.take() else { continue };
            net.sender_stats(id).inspect(|sender_stats| stream.acknowledge(sender_stats));
            while matches!(net.recv(id), Reading::Data(_)) {}
            net.close(id);
        }
    }

    /// True if all that was to be moved is received, or acknowledged.
    fn moved_all(&mut self, net: &T, now: Instant) -> bool {
        let StopCondition::Octets(each) = self.plan.until else { return false };
        let sends = |stream: &&Stream<T::Id>| stream.direction.sends();
        let given = self.streams.iter().filter(sends).all(|stream| stream.given >= each);
        if !given || self.progress.received < each.saturating_mul(self.receivers) {
            return false;
        }
        let mut all = true;
        for stream in self.streams.iter_mut().filter(|stream| stream.direction.sends()) {
            if let Some(sender_stats) = stream.id.and_then(|id| net.sender_stats(id)) {
                stream.acknowledge(&sender_stats);
            }
            all &= stream.id.is_none() || stream.totals.sent >= each;
        }
        self.next_look = (!all).then(|| now + LOOK);
        all
    }

    /// What was moved so far, in all: it grows, or nothing goes on.
    pub(crate) const fn progress(&self) -> u64 {
        self.progress.sent + self.progress.received
    }

    /// What was moved so far.
    pub(crate) fn totals(&self) -> Totals {
        self.streams.iter().fold(Totals::default(), |sum, stream| Totals {
            sent: sum.sent + stream.totals.sent,
            received: sum.received + stream.totals.received,
        })
    }
}

/// Blocks given, and pieces read, for one stream in one go.
const STEPS: usize = 16;
/// The longest line that a sink answers with, bytes.
const LONGEST_ANSWER: usize = 64;
/// Samples that are kept of all streams of a test that somebody else asked for.
const MOST_SAMPLES: usize = 8192;
/// How often it is looked whether the last bytes were acknowledged: no event tells that.
const LOOK: Duration = Duration::from_millis(1);
