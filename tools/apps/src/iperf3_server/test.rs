//! One test of the server.

use alloc::string::String;
use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_base::{Foreign, Instant};
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::{Address, Endpoint};

use super::{Greeting, Settings, account, document};
use crate::bulk::{self, Bulk, Direction, Peer, StopCondition};
use crate::iperf3::{Awaited, Control, Cookie, Fault, Parameters, Refusal, Results, State};
use crate::transport::{ConnectOptions, Transport};

/// A test of a client, from its cookie to its end.
#[derive(Debug)]
pub(super) struct Test<T: Transport> {
    pub(super) bulk: Bulk<T>,
    /// Report of the test, for people.
    account: String,
    /// Error of a failed test.
    fault: Option<Fault>,
    control: Control<T::Id>,
    cookie: Cookie,
    settings: Settings,
    phase: Phase,
    /// Start of the phase.
    since: Instant,
    from: Option<Endpoint>,
    parameters: Option<Parameters>,
    /// Bytes moved, and the time of the last progress.
    moved: (u64, Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The client is to send its parameters.
    Parameters,
    /// The client is to open its streams.
    Streams,
    /// The test runs: the streams carry bytes until its end.
    Running,
    /// The client is to send its results.
    Results,
    /// The client is to confirm the end.
    Farewell,
}

/// Result of a step of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// There may be more to do at once.
    More,
    /// An event must come first.
    Wait,
    /// It is complete.
    Done,
    /// It is not supported.
    Refused,
    /// The client closed, or a step took too long.
    Failed,
}

impl<T: Transport> Test<T> {
    /// A test whose client sent its cookie, and these bytes after it.
    pub(super) fn new(
        net: &mut T,
        id: T::Id,
        greeting: Greeting,
        settings: &Settings,
        now: Instant,
    ) -> Self {
        let Greeting { cookie, rest } = greeting;
        let mut control = Control::new(id, rest);
        control.tell(State::ParamExchange);
        // Single bytes would wait for each other's acknowledgment, which the client delays.
        net.adjust(id, &ConnectOptions { nagle: Nagle::Off, ..ConnectOptions::default() });
        let from = net.remote(id);
        Self {
            bulk: Bulk::new(plan(None, settings)),
            account: account::accepted(from),
            fault: None,
            control,
            cookie,
            settings: settings.clone(),
            phase: Phase::Parameters,
            since: now,
            from,
            parameters: None,
            moved: (0, now),
        }
    }

    /// True if a connection with this cookie is one of its streams.
    pub(super) fn awaits(&self, cookie: &Cookie) -> bool {
        self.phase == Phase::Streams && *cookie == self.cookie && self.missing() > 0
    }

    /// Adopts such a connection, with the bytes after its cookie.
    pub(super) fn adopt(&mut self, net: &mut T, id: T::Id, early: u64) {
        let Some(parameters) = &self.parameters else { return };
        let buffers = parameters.window.map(|bytes| bytes.max(LEAST_BUFFER));
        let buffers = buffers.map(|bytes| (bytes, bytes));
        let nagle = if parameters.no_delay { Nagle::Off } else { Nagle::On };
        let congestion = parameters.congestion.clone();
        let max_pacing_rate =
            parameters.pacing_rate.and_then(|bits| NonZeroU64::new(bits.div_ceil(8)));
        let options = ConnectOptions {
            nagle,
            buffers,
            congestion,
            max_pacing_rate,
            ..ConnectOptions::default()
        };
        net.adjust(id, &options);
        // Streams on which the client sends come first.
        let place = self.bulk.streams().len();
        let direction = match parameters.direction {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
            Direction::Both if place < parameters.streams as usize => Direction::Receive,
            Direction::Both => Direction::Send,
        };
        self.bulk.adopt(net, id, direction, early);
    }

    /// Works on the control connection and the streams.
    pub(super) fn go_on(&mut self, net: &mut T, now: Instant) -> Step {
        let step = self.hear(net, now).and_then(|step| match step {
            Step::Wait if self.phase == Phase::Running => self.run(net, now),
            _ => Ok(step),
        });
        let step = step.and_then(|step| {
            self.control.flush(net).map_err(|_| Fault::Closed(self.awaited()))?;
            Ok(step)
        });
        match step {
            Ok(Step::Done) => {
                self.release(net);
                Step::Done
            }
            Ok(step) if now < self.deadline() => step,
            Ok(_) => self.fail(net, Fault::Silent(self.awaited()), now),
            Err(fault) => self.fail(net, fault, now),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let bulk = match self.phase {
            Phase::Running => self.bulk.next_due(),
            _ => None,
        };
        [bulk, Some(self.deadline())].into_iter().flatten().min()
    }

    /// Tells the client that the server ends.
    pub(super) fn tell_end(&mut self, net: &mut T) {
        self.control.tell(State::ServerTerminate);
        let _gone = self.control.flush(net);
    }

    /// Ends the test, and returns its report.
    pub(super) fn terminate(mut self, net: &mut T, now: Instant) -> String {
        self.bulk.close_streams(net);
        self.break_off(net, now);
        self.news()
    }

    /// Report of the test.
    pub(super) fn news(&self) -> String {
        if !self.settings.documents {
            return self.account.clone();
        }
        let fault = self.fault.map(|fault| fault.to_string());
        let congestion = self.congestion();
        let document = document::of(&self.bulk, self.from, &congestion, fault.as_deref());
        format!("{document}\n")
    }

    /// Time at which the test is given up.
    fn deadline(&self) -> Instant {
        match (self.phase, &self.parameters) {
            (Phase::Running, Some(parameters)) => {
                let idle = self.moved.1 + self.settings.idle;
                if parameters.time.is_zero() {
                    return idle;
                }
                let whole = parameters.omit + parameters.time + self.settings.timeout;
                idle.min(self.since + whole)
            }
            _ => self.since + self.settings.timeout,
        }
    }

    /// Reads the client's messages and answers them.
    fn hear(&mut self, net: &mut T, now: Instant) -> Result<Step, Fault> {
        let heard = match self.phase {
            Phase::Parameters => {
                let document = self.control.read_document(net, MOST_PARAMETERS)?;
                document.map(|document| self.on_parameters(net, &document, now))
            }
            Phase::Results => {
                let document = self.control.read_document(net, MOST_RESULTS)?;
                document.map(|document| self.on_results(&document, now))
            }
            Phase::Streams | Phase::Running | Phase::Farewell => {
                let closed = Fault::Closed(self.awaited());
                let byte = self.control.state(net).map_err(|_| closed)?;
                byte.map(|byte| self.on_state(net, byte, now))
            }
        };
        match heard {
            Some(step) => step,
            None if self.phase == Phase::Streams && self.missing() == 0 => {
                self.control.tell(State::TestStart);
                self.control.tell(State::TestRunning);
                self.enter(Phase::Running, now);
                self.moved = (0, now);
                self.bulk.start(now);
                Ok(Step::More)
            }
            // The client may have received all and closed.
            None if self.control.is_over() && self.phase == Phase::Farewell => Ok(Step::Done),
            None if self.control.is_over() => Err(Fault::Closed(self.awaited())),
            None => Ok(Step::Wait),
        }
    }

    fn on_parameters(&mut self, net: &T, document: &[u8], now: Instant) -> Result<Step, Fault> {
        let parameters = Parameters::parse(document)?;
        parameters.judge(|name| net.knows_congestion(name)).map_err(Fault::Declined)?;
        self.bulk = Bulk::new(plan(Some(&parameters), &self.settings));
        self.parameters = Some(parameters);
        self.control.tell(State::CreateStreams);
        self.enter(Phase::Streams, now);
        Ok(Step::More)
    }

    fn on_results(&mut self, document: &[u8], now: Instant) -> Result<Step, Fault> {
        // The client's results are for its own user; here they must only be valid.
        Results::parse(document)?;
        let mut results = self.bulk.counted_results(self.congestion());
        self.account += &account::of(&self.bulk);
        if self.parameters.as_ref().is_some_and(|parameters| parameters.server_output) {
            results.server_output = Some(Foreign::new(self.account.clone()));
        }
        self.control.document(&results.document());
        self.control.tell(State::DisplayResults);
        self.enter(Phase::Farewell, now);
        Ok(Step::More)
    }

    fn on_state(&mut self, net: &mut T, byte: u8, now: Instant) -> Result<Step, Fault> {
        match (State::from_byte(byte), self.phase) {
            (Some(State::ClientTerminate), _) => Err(Fault::Terminated),
            (Some(State::TestEnd), Phase::Running) => {
                // Bytes before its message count.
                let came = self.bulk.read_rest(net, now);
                let last = if came { now } else { self.moved.1 };
                // A late look at the message must not lengthen the test, if no bytes came after its
                // end.
                let planned = self.parameters.as_ref().map(|it| self.since + it.omit + it.time);
                let until = planned.map_or(now, |planned| planned.max(last));
                self.bulk.stop_at(net, now, until.min(now));
                self.bulk.release(net);
                self.control.tell(State::ExchangeResults);
                self.enter(Phase::Results, now);
                Ok(Step::More)
            }
            (Some(State::IperfDone), Phase::Farewell) => Ok(Step::Done),
            _ => Err(Fault::Unexpected(byte)),
        }
    }

    fn run(&mut self, net: &mut T, now: Instant) -> Result<Step, Fault> {
        let more = self.bulk.go_on(net, now);
        if let Some(conn_error) = self.bulk.conn_error() {
            return Err(Fault::Stream(conn_error));
        }
        let moved = self.bulk.progress();
        if moved != self.moved.0 {
            self.moved = (moved, now);
        } else if now >= self.moved.1 + self.settings.idle {
            return Err(Fault::Idle);
        }
        Ok(if more { Step::More } else { Step::Wait })
    }

    /// Ends a test that failed, and tells the client why if possible.
    fn fail(&mut self, net: &mut T, fault: Fault, now: Instant) -> Step {
        let refusal = match (fault, self.phase) {
            (Fault::Declined(refusal), _) => Some(refusal),
            (Fault::Malformed | Fault::TooLong { .. }, Phase::Results) => Some(Refusal::Results),
            (Fault::Malformed | Fault::TooLong { .. }, _) => Some(Refusal::Parameters),
            (Fault::Unexpected(_) | Fault::Silent(_) | Fault::Idle, _) => Some(Refusal::Message),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.control.say(&refusal.message());
            let _gone = self.control.flush(net);
        }
        self.break_off(net, now);
        let from = self.from.map_or_else(|| "a client".into(), |from| from.to_string());
        self.account += &format!("iperf3: {from}: {fault}\n");
        self.fault = Some(fault);
        if matches!(fault, Fault::Declined(_)) { Step::Refused } else { Step::Failed }
    }

    /// Reports the bytes moved so far, and closes all connections.
    fn break_off(&mut self, net: &mut T, now: Instant) {
        let ran = self.phase == Phase::Running;
        self.bulk.end(net, now);
        if ran {
            self.account += &account::of(&self.bulk);
        }
        net.close(self.control.id());
    }

    fn release(&mut self, net: &mut T) {
        self.bulk.release(net);
        net.close(self.control.id());
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// Number of streams still to open.
    fn missing(&self) -> usize {
        let wanted = self.parameters.as_ref().map_or(0, |parameters| {
            let each = parameters.streams.max(1) as usize;
            if parameters.direction == Direction::Both { 2 * each } else { each }
        });
        wanted.saturating_sub(self.bulk.streams().len())
    }

    fn congestion(&self) -> String {
        let asked = self.parameters.as_ref().and_then(|parameters| parameters.congestion.clone());
        asked.unwrap_or_else(|| self.settings.congestion.clone())
    }

    const fn awaited(&self) -> Awaited {
        match self.phase {
            Phase::Parameters => Awaited::Parameters,
            Phase::Streams => Awaited::Streams,
            Phase::Running => Awaited::End,
            Phase::Results => Awaited::Results,
            Phase::Farewell => Awaited::Farewell,
        }
    }
}

/// Plan of this side for a test with these parameters.
fn plan(parameters: Option<&Parameters>, settings: &Settings) -> bulk::TransferPlan {
    let direction = match parameters.map(|parameters| parameters.direction) {
        None | Some(Direction::Send) => Direction::Receive,
        Some(Direction::Receive) => Direction::Send,
        Some(Direction::Both) => Direction::Both,
    };
    bulk::TransferPlan {
        // It opens no connections.
        target: Endpoint::new(Address::from_v4_bytes([0; 4]), 0),
        destinations: Vec::new(),
        direction,
        streams: parameters.map_or(1, |parameters| parameters.streams),
        until: StopCondition::Told,
        rate: parameters.and_then(|parameters| parameters.rate),
        block: parameters.map_or(1, |parameters| parameters.block),
        omit: parameters.map_or(Duration::ZERO, |parameters| parameters.omit),
        interval: Duration::from_secs(1),
        timeout: settings.timeout,
        options: ConnectOptions::default(),
        peer: Peer::Iperf3Client,
        effort: settings.effort,
    }
}

/// Longest document of parameters, bytes.
const MOST_PARAMETERS: u32 = 64 << 10;
/// Longest document of results: 256 streams of some hundred bytes.
const MOST_RESULTS: u32 = 256 << 10;
/// Smallest useful buffer of a connection, bytes.
const LEAST_BUFFER: u32 = 8 << 10;
