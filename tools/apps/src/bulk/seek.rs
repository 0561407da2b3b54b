//! Start of a transfer whose target has several addresses.

use alloc::vec;
use alloc::vec::Vec;

use whimbrel_base::Instant;

use super::{Bulk, Stream};
use crate::iperf3::Control;
use crate::race::{Race, Winner};
use crate::transport::{Transport, TransportEvent};

impl<T: Transport> Bulk<T> {
    pub(super) fn begin_seeking(&mut self, net: &mut T, now: Instant) {
        self.race = Some(Race::new(&self.plan.destinations, self.plan.timeout));
        self.go_on_seeking(net, now);
    }

    /// Handles an event of one of the attempts. Returns the connection to the server if it is the one
    /// that opened.
    pub(super) fn on_attempt(
        &mut self,
        net: &mut T,
        event: &TransportEvent<T>,
        now: Instant,
    ) -> Option<T::Id> {
        let winner = self.race.as_mut().and_then(|race| race.on_event(net, event, now))?;
        self.unreached = self.race.take().map_or_else(Vec::new, Race::into_failed);
        Some(self.on_found(net, winner, now))
    }

    pub(super) fn go_on_seeking(&mut self, net: &mut T, now: Instant) {
        let options = match self.client.is_some() {
            true => self.plan.options.at_once(),
            false => self.plan.options.clone(),
        };
        let Some(mut race) = self.race.take() else { return };
        if !race.go_on(net, &options, now) {
            self.race = Some(race);
            return;
        }
        self.unreached = race.into_failed();
        if let Some((at, why)) = self.unreached.last().copied() {
            self.plan.target = at;
            self.break_off(net, why, now);
        }
    }

    /// Uses the connection to the server that answered as the first of the transfer.
    fn on_found(&mut self, net: &mut T, winner: Winner<T::Id>, now: Instant) -> T::Id {
        let Winner { id, to, .. } = winner;
        (self.plan.target, self.plan.options.zone) = (to.at, to.zone);
        self.plan.destinations = vec![to];
        self.began = now;
        match &mut self.client {
            Some(client) => client.take_control(Control::new(id, Vec::new())),
            None => {
                self.join(Stream::new(id, self.plan.direction, usize::MAX));
                self.open_streams(net, now);
            }
        }
        id
    }
}
