//! A server of iperf3's tests: one at a time, one after the other.
//!
//! A connection has some seconds to send a cookie. The first that does gets the server for a test;
//! others are refused as busy until it ends. A client that falls silent in the middle loses its
//! test by a time-out of the phase it is in.

use alloc::collections::VecDeque;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::Statistics;
use crate::bulk::CpuTimes;
use crate::iperf3::{COOKIE, Cookie, Refusal, State};
use crate::transport::{Model, Reading, Transport, TransportEvent};
use test::{Step, Test};

mod account;
mod document;
mod test;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time limit for each step of the client before and after the test.
    pub timeout: Duration,
    /// Time without progress after which a test fails.
    pub idle: Duration,
    /// Name of the congestion control.
    pub congestion: String,
    /// Processor time of this process so far, if the system counts it.
    pub effort: CpuTimes,
    /// True if reports are for programs: a line with a JSON document for each test.
    pub documents: bool,
}

/// The server. Poll it as a [`Model`]; all listeners of its transport are its own.
#[derive(Debug)]
pub struct Server<T: Transport> {
    settings: Settings,
    listeners: VecDeque<T::Listener>,
    /// Connections without a test, in order of arrival.
    callers: VecDeque<Caller<T::Id>>,
    test: Option<Box<Test<T>>>,
    news: String,
    statistics: Statistics,
}

/// A connection that is to send its cookie.
#[derive(Debug)]
struct Caller<I> {
    id: I,
    since: Instant,
    told: Vec<u8>,
}

/// Start of a connection.
struct Greeting {
    /// Cookie of its test.
    cookie: Cookie,
    /// Bytes after the cookie.
    rest: Vec<u8>,
}

/// Progress of a caller's first message.
enum CallerMessage {
    Nothing,
    Greeting(Box<Greeting>),
    /// The connection ended before its cookie.
    Gone,
}

impl<T: Transport> Server<T> {
    /// A server without clients.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            listeners: VecDeque::new(),
            callers: VecDeque::new(),
            test: None,
            news: String::new(),
            statistics: Statistics::default(),
        }
    }

    /// Counters so far.
    pub fn statistics(&self) -> Statistics {
        let streams = self.test.as_ref().map_or(0, |test| 1 + test.bulk.streams().len());
        let totals = self.test.as_ref().map(|test| test.bulk.totals()).unwrap_or_default();
        Statistics {
            open: self.callers.len() + streams,
            received: self.statistics.received + totals.received,
            sent: self.statistics.sent + totals.sent,
            ..self.statistics
        }
    }

    /// Output since the last call.
    pub fn take_news(&mut self) -> Option<String> {
        (!self.news.is_empty()).then(|| core::mem::take(&mut self.news))
    }

    /// Tells the client that the test is over. Call [`Server::close_all`] after that message has left: the
    /// end of the streams would overtake it.
    pub fn shut_down(&mut self, net: &mut T) {
        if let Some(test) = &mut self.test {
            test.tell_end(net);
        }
        for caller in self.callers.drain(..) {
            net.abort(caller.id);
        }
    }

    /// Closes all connections.
    pub fn close_all(&mut self, net: &mut T, now: Instant) {
        if let Some(test) = self.test.take() {
            self.count(&test);
            self.news += &test.terminate(net, now);
        }
    }

    /// Accepts waiting connections. Returns true if more may wait.
    fn accept(&mut self, net: &mut T, now: Instant) -> bool {
        for _ in 0..ACCEPTS {
            let Some(listener) = self.listeners.front() else { return false };
            let Some(id) = net.accept(*listener) else {
                self.listeners.pop_front();
                continue;
            };
            self.statistics.accepted += 1;
            // The connection idle longest is closed, so idle clients cannot block new ones.
            if self.callers.len() >= MOST_CALLERS
                && let Some(oldest) = self.callers.pop_front()
            {
                net.abort(oldest.id);
                self.statistics.failed += 1;
            }
            self.callers.push_back(Caller { id, since: now, told: Vec::new() });
        }
        true
    }

    fn concerns_callers(&self, event: &TransportEvent<T>) -> bool {
        match event {
            TransportEvent::Readable(id) | TransportEvent::Closed(id, _) => {
                self.callers.iter().any(|caller| caller.id == *id)
            }
            _ => false,
        }
    }

    fn hear_callers(&mut self, net: &mut T, now: Instant) {
        for _ in 0..self.callers.len() {
            let Some(mut caller) = self.callers.pop_front() else { return };
            match caller.hear(net) {
                CallerMessage::Greeting(greeting) => {
                    self.receive(net, caller.id, *greeting, now);
                }
                CallerMessage::Nothing if now < caller.since + COOKIE_TIME => {
                    self.callers.push_back(caller);
                }
                CallerMessage::Nothing | CallerMessage::Gone => {
                    net.abort(caller.id);
                    self.statistics.failed += 1;
                }
            }
        }
    }

    /// Handles a cookie.
    fn receive(&mut self, net: &mut T, id: T::Id, greeting: Greeting, now: Instant) {
        if greeting.cookie.last() != Some(&0) {
            self.statistics.failed += 1;
            return say_last(net, id, &Refusal::Cookie.message());
        }
        match &mut self.test {
            None => {
                self.test = Some(Box::new(Test::new(net, id, greeting, &self.settings, now)));
            }
            Some(test) if test.awaits(&greeting.cookie) => {
                test.adopt(net, id, greeting.rest.len() as u64);
            }
            Some(_) => {
                self.statistics.requests += 1;
                self.statistics.refused += 1;
                say_last(net, id, &[State::AccessDenied.byte()]);
            }
        }
    }

    /// Advances the test. Returns true if there may be more to do at once.
    fn go_on(&mut self, net: &mut T, now: Instant) -> bool {
        let Some(mut test) = self.test.take() else { return false };
        let step = test.go_on(net, now);
        match step {
            Step::More | Step::Wait => {
                self.test = Some(test);
                return matches!(step, Step::More);
            }
            Step::Done => self.statistics.requests += 1,
            Step::Refused => {
                self.statistics.requests += 1;
                self.statistics.refused += 1;
            }
            Step::Failed => self.statistics.failed += 1,
        }
        self.count(&test);
        self.news += &test.news();
        true
    }

    fn count(&mut self, test: &Test<T>) {
        let totals = test.bulk.totals();
        self.statistics.received += totals.received;
        self.statistics.sent += totals.sent;
    }
}

impl<T: Transport> Model<T> for Server<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        let (mut left, mut stirred) = (budget, false);
        while left > 0 {
            let Some(event) = net.poll_event() else { break };
            stirred |= self.concerns_callers(&event);
            if let Some(test) = &mut self.test {
                test.bulk.note(&event);
            }
            if let TransportEvent::Accepted(listener) = event
                && !self.listeners.contains(&listener)
            {
                self.listeners.push_back(listener);
            }
            left -= 1;
        }
        let before = self.statistics.accepted;
        let accepted = self.accept(net, now);
        let late = self.callers.front().is_some_and(|oldest| now >= oldest.since + COOKIE_TIME);
        if stirred || late || self.statistics.accepted > before {
            self.hear_callers(net, now);
        }
        self.go_on(net, now) || accepted || left == 0
    }

    fn next_deadline(&self) -> Option<Instant> {
        let caller = self.callers.front().map(|oldest| oldest.since + COOKIE_TIME);
        let test = self.test.as_ref().and_then(|test| test.next_deadline());
        [caller, test].into_iter().flatten().min()
    }
}

impl<I: Copy> Caller<I> {
    fn hear<T: Transport<Id = I>>(&mut self, net: &mut T) -> CallerMessage {
        while self.told.len() < COOKIE {
            match net.recv(self.id) {
                Reading::Data(bytes) => self.told.extend_from_slice(&bytes),
                Reading::Pending => return CallerMessage::Nothing,
                Reading::End | Reading::Failed(_) => return CallerMessage::Gone,
            }
        }
        match self.told.split_first_chunk() {
            Some((cookie, rest)) => {
                let greeting = Greeting { cookie: *cookie, rest: rest.to_vec() };
                CallerMessage::Greeting(Box::new(greeting))
            }
            None => CallerMessage::Nothing,
        }
    }
}

/// Sends a last message to a client, and closes.
fn say_last<T: Transport>(net: &mut T, id: T::Id, message: &[u8]) {
    let mut message = bytes::Bytes::copy_from_slice(message);
    // A fresh connection has room for a few bytes, unless it is gone.
    let _sent = net.send(id, &mut message);
    net.close(id);
}

/// Most connections that wait for their cookie.
const MOST_CALLERS: usize = 64;
/// Time limit for the cookie.
const COOKIE_TIME: Duration = Duration::from_secs(5);
/// Connections accepted at a time.
const ACCEPTS: usize = 64;
