//! Tries the addresses of one name in turn until a server answers (RFC 8305, "Happy Eyeballs").

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use crate::transport::{ConnError, ConnectOptions, Transport, TransportEvent};

/// An address and port to connect to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The address and the port.
    pub at: Endpoint,
    /// Number of the interface for the zone of a link-local address (RFC 4007 11), if there are
    /// several; 0: none.
    pub zone: u32,
}

impl From<Endpoint> for Destination {
    fn from(at: Endpoint) -> Self {
        Self { at, zone: 0 }
    }
}

/// The addresses of a name in the order in which to try them. RFC 8305 4: "Whichever address family is
/// first in the list should be followed by an address of the other address family".
pub fn interleave(found: Vec<Destination>) -> Vec<Destination> {
    let Some(first) = found.first() else { return found };
    let is_v4 = first.at.addr.is_v4();
    let all = found.len();
    let (one, other): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|it| it.at.addr.is_v4() == is_v4);
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let pairs = (0..all).flat_map(|_| [one.next(), other.next()]);
    pairs.flatten().collect()
}

/// Attempts to connect to one of several addresses.
#[derive(Debug)]
pub(crate) struct Race<I> {
    /// Destinations not tried yet.
    left: VecDeque<Destination>,
    under_way: Vec<Attempt<I>>,
    /// Destinations that failed, and why.
    failed: Vec<(Endpoint, ConnError)>,
    /// Time of the next attempt, even without a failure.
    next: Instant,
    /// Time limit of an attempt.
    timeout: Duration,
}

/// A connection that opens.
#[derive(Debug)]
struct Attempt<I> {
    id: I,
    to: Destination,
    began: Instant,
}

/// The attempt that succeeded first.
#[derive(Debug)]
pub(crate) struct Winner<I> {
    /// The open connection.
    pub(crate) id: I,
    pub(crate) to: Destination,
    /// Time it took to open.
    pub(crate) took: Duration,
}

impl<I: Copy + PartialEq> Race<I> {
    /// A race between these destinations, with a time limit for each.
    pub(crate) fn new(destinations: &[Destination], timeout: Duration) -> Self {
        Self {
            left: destinations.iter().copied().collect(),
            under_way: Vec::new(),
            failed: Vec::new(),
            next: Instant::ZERO,
            timeout,
        }
    }

    /// Handles an event of a connection. Returns the attempt if it succeeded, and gives up the
    /// others.
    pub(crate) fn on_event<T: Transport<Id = I>>(
        &mut self,
        net: &mut T,
        event: &TransportEvent<T>,
        now: Instant,
    ) -> Option<Winner<I>> {
        let (TransportEvent::Connected(id) | TransportEvent::Closed(id, _)) = *event else {
            return None;
        };
        let place = self.under_way.iter().position(|attempt| attempt.id == id)?;
        let Attempt { id, to, began } = self.under_way.swap_remove(place);
        match event {
            TransportEvent::Closed(_, conn_error) => {
                net.abort(id);
                self.fail(to, conn_error.unwrap_or(ConnError::EndedEarly), now);
                None
            }
            _ => {
                self.give_up(net);
                Some(Winner { id, to, took: now.since(began) })
            }
        }
    }

    /// Begins the next attempt if it is due, with `options` for its destination. Returns true if
    /// all failed.
    pub(crate) fn go_on<T: Transport<Id = I>>(
        &mut self,
        net: &mut T,
        options: &ConnectOptions,
        now: Instant,
    ) -> bool {
        while let Some(place) = self.under_way.iter().position(|it| it.began + self.timeout <= now)
        {
            let Attempt { id, to, .. } = self.under_way.swap_remove(place);
            net.abort(id);
            self.fail(to, ConnError::ConnectTimeout, now);
        }
        while self.under_way.is_empty() || now >= self.next {
            let Some(to) = self.left.pop_front() else { break };
            let options = ConnectOptions { zone: to.zone, ..options.clone() };
            match net.connect(to.at, &options, &mut Bytes::new()) {
                Ok(id) => {
                    self.under_way.push(Attempt { id, to, began: now });
                    self.next = now + DELAY;
                }
                Err(unopened) => self.fail(to, unopened.into(), now),
            }
        }
        self.under_way.is_empty() && self.left.is_empty()
    }

    /// Latest time of the next step.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let next = (!self.left.is_empty()).then_some(self.next);
        let oldest = self.under_way.iter().map(|attempt| attempt.began + self.timeout).min();
        Instant::earliest([next, oldest])
    }

    /// Gives up the attempts under way.
    pub(crate) fn give_up<T: Transport<Id = I>>(&mut self, net: &mut T) {
        self.under_way.drain(..).for_each(|attempt| net.abort(attempt.id));
    }

    /// The addresses that failed so far, and why.
    pub(crate) fn into_failed(self) -> Vec<(Endpoint, ConnError)> {
        self.failed
    }

    /// RFC 8305 5: the next attempt begins when the one before it fails, or after the delay.
    fn fail(&mut self, to: Destination, conn_error: ConnError, now: Instant) {
        self.failed.push((to.at, conn_error));
        self.next = now;
    }
}

/// The Connection Attempt Delay of RFC 8305 8: "Recommended to be 250 milliseconds".
const DELAY: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
