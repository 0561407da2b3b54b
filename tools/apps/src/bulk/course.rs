//! Course of a transfer: it opens, its timers run, and its events come.

use whimbrel_base::Instant;

use super::{Bulk, Client, ConnError, GRACE, TransferState, Transport, TransportEvent};

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

    /// Runs timers, then handles events.
    pub(crate) fn go_on(&mut self, net: &mut T, now: Instant) -> bool {
        self.on_time(net, now);
        let said = self.talk(net, now);
        self.pump(net, now) | said
    }

    pub(super) fn on_event(&mut self, net: &mut T, event: TransportEvent<T>, now: Instant) {
        if self.race.is_some() {
            if let Some(id) = self.on_attempt(net, &event, now) {
                self.on_event(net, TransportEvent::Connected(id), now);
            }
            return;
        }
        self.note(&event);
        match event {
            TransportEvent::Connected(id) => {
                if let Some(client) = &mut self.client {
                    client.on_open(id);
                }
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
        let is_ours = || {
            self.client.as_ref().is_some_and(|client| client.is_control(id))
                || self.index_of(id).is_some()
        };
        self.state == TransferState::Opening && is_ours()
    }

    /// Runs the timers that are due.
    pub(super) fn on_time(&mut self, net: &mut T, now: Instant) {
        match self.state {
            TransferState::Opening if self.race.is_some() => self.go_on_seeking(net, now),
            TransferState::Opening if now >= self.began + self.plan.timeout => {
                self.client.iter_mut().for_each(Client::on_silence);
                self.break_off(net, ConnError::ConnectTimeout, now);
            }
            TransferState::Ending { since } if now >= since + self.plan.timeout => {
                self.client.iter_mut().for_each(Client::on_silence);
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

    /// Latest time of the next poll.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        match self.state {
            TransferState::NotBegun | TransferState::Over => None,
            TransferState::Opening if self.race.is_some() => self.race.as_ref()?.next_deadline(),
            TransferState::Opening => Some(self.began + self.plan.timeout),
            TransferState::Ending { since } => Some(since + self.plan.timeout),
            TransferState::Running => {
                let (end, token) = (self.end_time(), self.due.next_time());
                let lost = self.lost.map(|(_, since)| since + GRACE);
                let deadlines = [Some(self.next_sample), end, token, self.next_look, lost];
                deadlines.into_iter().flatten().min()
            }
        }
    }
}
