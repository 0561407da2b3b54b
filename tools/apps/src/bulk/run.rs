//! Streams of a transfer: they open, carry bytes until the time is over, and end.

use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;

use super::series::StreamState;
use super::{
    Bulk, ConnError, Direction, OpenError, Peer, Reading, StopCondition, Stream, Totals,
    TransferState, Transport, TransportEvent,
};

impl<T: Transport> Bulk<T> {
    /// Begins to open the next streams.
    pub(super) fn open_streams(&mut self, net: &mut T, now: Instant) {
        for _ in self.streams.len()..self.plan.streams.max(1) as usize {
            if !self.open_stream(net, self.plan.direction, Bytes::new(), now) {
                return;
            }
        }
    }

    /// Begins to open a stream, on which `prologue` goes first. Returns false, and ends the
    /// transfer, if that failed.
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

    /// Ends the transfer now; totals count the bytes moved so far.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        if let Some(client) = &mut self.client {
            client.terminate(net);
        }
        if let Some(mut race) = self.race.take() {
            race.give_up(net);
        }
        if self.state == TransferState::Running {
            self.stop(net, now);
        }
        self.state = TransferState::Over;
        for stream in &mut self.streams {
            if let Some(id) = stream.id.take() {
                net.abort(id);
            }
        }
    }

    /// Adds a stream that was accepted, with the bytes already read from it.
    pub(crate) fn adopt(&mut self, net: &T, id: T::Id, direction: Direction, early: u64) {
        // A client may request many streams and a day.
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

    /// Notes an event: if its connection is one of the streams, that needs work.
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

    pub(super) fn index_of(&self, id: T::Id) -> Option<usize> {
        let index = self.due.at_place(T::place(id))?;
        self.streams.get(index).filter(|stream| stream.id == Some(id)).map(|_| index)
    }

    /// Starts the clock.
    pub(crate) fn start(&mut self, now: Instant) {
        self.state = TransferState::Running;
        self.began = now;
        self.until = now;
        self.next_sample = now + self.first_interval();
        self.due.mark_all();
        self.effort[0] = (self.plan.effort)();
    }

    /// Ends the transfer after an error: without one stream it would measure something else.
    pub(crate) fn break_off(&mut self, net: &mut T, conn_error: ConnError, now: Instant) {
        self.conn_error.get_or_insert(conn_error);
        self.end(net, now);
    }

    /// End of the first interval: the omitted part has intervals of its own.
    fn first_interval(&self) -> Duration {
        if self.plan.omit.is_zero() {
            self.plan.interval
        } else {
            self.plan.interval.min(self.plan.omit)
        }
    }

    /// Time of the end, if a time ends it.
    pub(super) fn end_time(&self) -> Option<Instant> {
        match self.plan.until {
            StopCondition::Elapsed(time) => Some(self.began + self.plan.omit + time),
            StopCondition::Bytes(_) | StopCondition::Told => None,
        }
    }

    pub(super) fn sample(&mut self, net: &T, at: Instant) {
        let until = at.since(self.began);
        let alone = self.streams.len() == 1;
        let together = net.retransmits();
        for stream in &mut self.streams {
            let mut sender_stats = stream.id.and_then(|id| net.sender_stats(id));
            if let Some(sender_stats) = &mut sender_stats {
                stream.acknowledge(sender_stats);
                // With a single connection, the total of all connections is its own.
                sender_stats.retransmits = sender_stats.retransmits.or(together.filter(|_| alone));
            }
            let omitted = until <= self.plan.omit;
            let state = StreamState { totals: stream.totals, sender_stats, idle: stream.idle(at) };
            stream.series.close_interval(until, state, omitted);
        }
    }

    /// Stops the bytes. Senders close their direction and wait for the peer's answer.
    pub(super) fn stop(&mut self, net: &mut T, now: Instant) {
        // No data was sent after the end of the time, even if that was noticed late.
        self.stop_at(net, now, self.end_time().map_or(now, |end| end.min(now)));
    }

    /// Stops a transfer whose time was over at `until`.
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
        if let Some(client) = &mut self.client {
            client.tell_end();
        }
    }

    /// Works on each stream with an event. Returns true if one has more to do at once.
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

    /// Removes a lost stream; the control connection may report the reason.
    fn lose(&mut self, net: &mut T, index: usize, conn_error: ConnError, now: Instant) {
        self.lost.get_or_insert((conn_error, now));
        let Some(stream) = self.streams.get_mut(index) else { return };
        if let Some(id) = stream.id.take() {
            net.sender_stats(id).inspect(|sender_stats| stream.acknowledge(sender_stats));
            net.abort(id);
        }
    }

    /// Sends data on a stream. Returns true if it would take more.
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
            // If sending failed, the next read reports why.
            let Ok(taken) = net.send(id, &mut stream.pending) else { return false };
            stream.given += taken as u64;
            self.progress.sent += taken as u64;
            // A stream that ends by bytes sends FIN with the last of them, so one acknowledgment
            // covers all.
            if matches!(self.plan.until, StopCondition::Bytes(all) if stream.given >= all)
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

    /// Bytes that a stream may take now, by its rate and by the end.
    fn allowance(&self, index: usize, now: Instant) -> u64 {
        let sent = self.streams.get(index).map_or(0, |stream| stream.given);
        let by_end = match self.plan.until {
            StopCondition::Bytes(all) => all.saturating_sub(sent),
            StopCondition::Elapsed(_) | StopCondition::Told => u64::MAX,
        };
        let by_rate = self.plan.rate.map_or(u64::MAX, |rate| {
            let bits = now.since(self.began).as_secs_f64() * rate as f64;
            ((bits / 8.0) as u64).saturating_sub(sent)
        });
        // Less than a block would go in small segments.
        let crumb = (self.block.len() as u64).min(by_end);
        if by_rate < crumb { 0 } else { by_end.min(by_rate) }
    }

    /// Marks a stream for the time when its rate next allows a block. A stream that could not send
    /// its allowance waits for room, not for time.
    fn await_token(&mut self, index: usize) {
        let (Some(rate), Some(stream)) = (self.plan.rate, self.streams.get(index)) else { return };
        if matches!(self.plan.until, StopCondition::Bytes(all) if stream.given >= all) {
            return;
        }
        let bytes = stream.given + self.block.len() as u64;
        let nanos = (bytes as f64 * 8e9 / rate.max(1) as f64).ceil();
        self.due.mark_later(index, self.began + Duration::from_nanos(nanos as u64 + 1));
    }

    /// Reads data that arrived. Returns true if there may be more.
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
                    // A receiver that read to the end has all data.
                    if plain && running && stream.direction == Direction::Send {
                        stream.totals.sent = stream.given;
                    }
                    stream.answered = Some(now);
                    net.close(id);
                    stream.id = None;
                }
                Reading::End => return Err(ConnError::EndedEarly),
                // iperf3's server closes without reading the rest.
                Reading::Failed(_) if !running && stream.shut && (receives || !plain) => {
                    net.abort(id);
                    stream.id = None;
                }
                Reading::Failed(conn_error) => return Err(conn_error),
            }
        }
        Ok(true)
    }

    /// Reads data that arrived, once more. Returns true if there was any.
    pub(crate) fn read_rest(&mut self, net: &mut T, now: Instant) -> bool {
        let before = self.totals().received;
        for index in 0..self.streams.len() {
            // The outcome does not matter any more.
            let _over = self.drain(net, index, now);
        }
        self.totals().received > before
    }

    /// Closes the streams. None has unread data, which would cause a reset.
    pub(crate) fn close_streams(&mut self, net: &mut T) {
        for stream in &mut self.streams {
            let Some(id) = stream.id.take() else { continue };
            net.sender_stats(id).inspect(|sender_stats| stream.acknowledge(sender_stats));
            while matches!(net.recv(id), Reading::Data(_)) {}
            net.close(id);
        }
    }

    /// True if all bytes were received, or acknowledged.
    fn moved_all(&mut self, net: &T, now: Instant) -> bool {
        let StopCondition::Bytes(each) = self.plan.until else { return false };
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

    /// Bytes moved so far in all: if this does not grow, the transfer stalls.
    pub(crate) const fn progress(&self) -> u64 {
        self.progress.sent + self.progress.received
    }

    /// Totals of all streams so far.
    pub(crate) fn totals(&self) -> Totals {
        self.streams.iter().fold(Totals::default(), |sum, stream| Totals {
            sent: sum.sent + stream.totals.sent,
            received: sum.received + stream.totals.received,
        })
    }
}

/// Blocks sent, and pieces read, for one stream at a time.
const STEPS: usize = 16;
/// Longest line of a sink, bytes.
const LONGEST_ANSWER: usize = 64;
/// Most samples kept of all streams of a test that a client requested.
const MOST_SAMPLES: usize = 8192;
/// Interval of the check whether the last bytes were acknowledged: no event reports that.
const LOOK: Duration = Duration::from_millis(1);
