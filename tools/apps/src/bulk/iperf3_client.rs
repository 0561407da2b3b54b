//! The client side of iperf3's protocol: the control connection of a [`Bulk`].

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::{Bulk, Direction, Iperf3Params, StopCondition};
use crate::iperf3::{
    Awaited, Control, Fault, Parameters, Processors, Protocol, Results, State, StreamResult,
    stream_id,
};
use crate::transport::{ConnError, OpenError, Transport};
use whimbrel_base::{Foreign, Instant};
use whimbrel_tcp::conn::Nagle;

/// Control connection to a server of iperf3.
#[derive(Debug)]
pub(crate) struct Client<I> {
    terms: Iperf3Params,
    control: Option<Control<I>>,
    phase: Phase,
    results: Option<Results>,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The control connection opens.
    Connecting,
    /// The cookie was sent.
    Cookie,
    /// The parameters were sent, and the server's reply is awaited.
    Parameters,
    /// Streams open, one after the other.
    Creating,
    /// All streams are open, and the server is to start the test.
    Created,
    /// The test runs: the streams carry bytes until its end.
    Running,
    /// The test has ended on this side.
    Ending,
    /// This side sent its results.
    Exchanging,
    /// The other side sent its results.
    Displaying,
    /// The server is about to send the reason of its refusal.
    Refused,
}

impl Phase {
    const fn awaited(self) -> Awaited {
        match self {
            Self::Connecting => Awaited::Connection,
            Self::Cookie | Self::Parameters | Self::Refused => Awaited::Answer,
            Self::Creating | Self::Created => Awaited::Streams,
            Self::Running => Awaited::End,
            Self::Ending | Self::Exchanging | Self::Displaying => Awaited::Results,
        }
    }
}

/// Result of reading the control connection.
enum Heard {
    /// A message: there may be more.
    Something,
    Nothing,
    /// The last message: the test is over.
    TheEnd,
}

impl<I> Client<I> {
    pub(crate) const fn new(terms: Iperf3Params) -> Self {
        Self { terms, control: None, phase: Phase::Connecting, results: None, fault: None }
    }

    /// Sets the control connection.
    pub(crate) fn take_control(&mut self, control: Control<I>) {
        self.control = Some(control);
    }

    pub(crate) const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub(crate) const fn results(&self) -> Option<&Results> {
        self.results.as_ref()
    }
}

impl<I: Copy + PartialEq> Client<I> {
    /// True if this is its control connection.
    pub(crate) fn is_control(&self, id: I) -> bool {
        self.control.as_ref().is_some_and(|control| control.id() == id)
    }

    /// Sends the cookie if the open connection is the control connection.
    pub(crate) fn on_open(&mut self, id: I) {
        if self.phase == Phase::Connecting
            && let Some(control) = self.control.as_mut().filter(|it| it.id() == id)
        {
            control.say(&self.terms.cookie);
            self.phase = Phase::Cookie;
        }
    }

    /// Blames the step that did not come in time.
    pub(crate) fn on_silence(&mut self) {
        if self.phase != Phase::Connecting {
            self.fault.get_or_insert(Fault::Silent(self.phase.awaited()));
        }
    }

    /// Tells the server that the client's time is over.
    pub(crate) fn tell_end(&mut self) {
        if self.phase == Phase::Running
            && let Some(control) = &mut self.control
        {
            control.tell(State::TestEnd);
            self.phase = Phase::Ending;
        }
    }

    /// Tells the server that the client stops, and closes.
    pub(crate) fn terminate<T: Transport<Id = I>>(&mut self, net: &mut T) {
        let Some(mut control) = self.control.take() else { return };
        if self.phase == Phase::Connecting {
            return net.abort(control.id());
        }
        if self.fault.is_none() {
            control.tell(State::ClientTerminate);
        }
        // The result does not matter: the server may be gone.
        let _gone = control.flush(net);
        net.close(control.id());
    }
}

impl<T: Transport> Bulk<T> {
    /// Begins to open the control connection.
    pub(crate) fn open_control(&mut self, net: &mut T, now: Instant) {
        let at_once = self.plan().options.at_once();
        match net.connect(self.plan().target, &at_once, &mut Bytes::new()) {
            Ok(id) => {
                if let Some(client) = &mut self.client {
                    client.control = Some(Control::new(id, Vec::new()));
                }
            }
            Err(unopened) => {
                if let OpenError::Ports(shortage) = unopened {
                    self.shortage = Some(shortage);
                }
                self.break_off(net, unopened.into(), now);
            }
        }
    }

    /// Reads the server's messages and answers them. Returns true if there may be more.
    pub(crate) fn talk(&mut self, net: &mut T, now: Instant) -> bool {
        for _ in 0..MESSAGES {
            self.create(net, now);
            match self.hear(net, now) {
                Ok(Heard::Something) => {}
                Ok(Heard::Nothing) => {
                    self.flush_control(net, now);
                    return false;
                }
                Ok(Heard::TheEnd) => {
                    self.finish(net);
                    return false;
                }
                Err(fault) => {
                    self.fail(net, fault, now);
                    return false;
                }
            }
        }
        self.flush_control(net, now);
        true
    }

    fn hear(&mut self, net: &mut T, now: Instant) -> Result<Heard, Fault> {
        let Some(client) = &mut self.client else { return Ok(Heard::Nothing) };
        let phase = client.phase;
        let Some(control) = client.control.as_mut().filter(|_| phase != Phase::Connecting) else {
            return Ok(Heard::Nothing);
        };
        let heard = match phase {
            Phase::Exchanging => {
                let document = control.read_document(net, MOST_RESULTS)?;
                let results = document.map(|document| Results::parse(&document)).transpose()?;
                results.map(|results| self.on_results(results))
            }
            Phase::Refused => control
                .exactly(net, 8)
                .map_err(|_| Fault::Closed(phase.awaited()))?
                .map(|numbers| {
                    let number = |at: usize| {
                        let bytes = numbers.get(at..).and_then(|rest| rest.first_chunk());
                        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
                    };
                    Err(Fault::Refused { code: number(0), errno: number(4) })
                }),
            _ => {
                let byte = control.state(net).map_err(|_| Fault::Closed(phase.awaited()))?;
                byte.map(|byte| self.on_state(byte, now))
            }
        };
        match heard {
            Some(heard) => heard,
            None => {
                let control = self.client.as_ref().and_then(|client| client.control.as_ref());
                match control.is_some_and(Control::is_over) {
                    true => Err(Fault::Closed(phase.awaited())),
                    false => Ok(Heard::Nothing),
                }
            }
        }
    }

    fn on_state(&mut self, byte: u8, now: Instant) -> Result<Heard, Fault> {
        let parameters = self.parameters();
        let results = self.results();
        let Some(client) = &mut self.client else { return Ok(Heard::Nothing) };
        let Some(control) = &mut client.control else { return Ok(Heard::Nothing) };
        match (State::from_byte(byte), client.phase) {
            (Some(State::AccessDenied), _) => return Err(Fault::Denied),
            (Some(State::ServerTerminate), _) => return Err(Fault::Terminated),
            (Some(State::ServerError), _) => client.phase = Phase::Refused,
            (Some(State::ParamExchange), Phase::Cookie) => {
                control.document(&parameters.map_or_else(String::new, |it| it.document()));
                client.phase = Phase::Parameters;
            }
            (Some(State::CreateStreams), Phase::Parameters) => client.phase = Phase::Creating,
            (Some(State::TestStart), Phase::Created) => {}
            (Some(State::TestRunning), Phase::Created) => {
                client.phase = Phase::Running;
                self.start(now);
            }
            (Some(State::ExchangeResults), Phase::Ending) => {
                control.document(&results.map_or_else(String::new, |it| it.document()));
                client.phase = Phase::Exchanging;
            }
            (Some(State::DisplayResults), Phase::Displaying) => return Ok(Heard::TheEnd),
            _ => return Err(Fault::Unexpected(byte)),
        }
        Ok(Heard::Something)
    }

    fn on_results(&mut self, results: Results) -> Result<Heard, Fault> {
        for theirs in &results.streams {
            let place = (0..self.streams.len()).find(|place| stream_id(*place) == theirs.id);
            let stream = place.and_then(|place| self.streams.get_mut(place));
            stream.ok_or(Fault::Malformed)?.theirs = Some(*theirs);
        }
        if let Some(client) = &mut self.client {
            // After one client has asked, iperf3's server sends its output to each later one, too.
            let server_output = results.server_output.filter(|_| client.terms.server_output);
            client.results = Some(Results { server_output, ..results });
            client.phase = Phase::Displaying;
        }
        Ok(Heard::Something)
    }

    /// Opens the streams in sequence, each after the one before it sent its cookie: the server
    /// numbers them by their order.
    fn create(&mut self, net: &mut T, now: Instant) {
        loop {
            let Some(client) = self.client.as_mut().filter(|it| it.phase == Phase::Creating) else {
                return;
            };
            if let Some(last) = self.streams.last_mut() {
                let Some(id) = last.id.filter(|_| last.open) else { return };
                // If sending failed, an event of the transport reports why.
                last.prologue_given += net.send(id, &mut last.prologue).unwrap_or(0) as u64;
                if !last.prologue.is_empty() {
                    return;
                }
            }
            let (each, place) = (self.plan.streams.max(1) as usize, self.streams.len());
            let direction = match self.plan.direction {
                Direction::Both if place < each => Direction::Send,
                Direction::Both if place < 2 * each => Direction::Receive,
                direction if place < each => direction,
                _ => {
                    client.phase = Phase::Created;
                    return;
                }
            };
            let cookie = Bytes::copy_from_slice(&client.terms.cookie);
            if !self.open_stream(net, direction, cookie, now) {
                return;
            }
        }
    }

    fn flush_control(&mut self, net: &mut T, now: Instant) {
        let Some(client) = &mut self.client else { return };
        let Some(control) = client.control.as_mut().filter(|_| client.phase != Phase::Connecting)
        else {
            return;
        };
        if control.flush(net).is_err() {
            let fault = Fault::Closed(client.phase.awaited());
            self.fail(net, fault, now);
        }
    }

    fn fail(&mut self, net: &mut T, fault: Fault, now: Instant) {
        if let Some(client) = &mut self.client {
            client.fault.get_or_insert(fault);
        }
        self.break_off(net, ConnError::EndedEarly, now);
    }

    /// Closes the control connection after the last message.
    fn finish(&mut self, net: &mut T) {
        for id in self.streams.iter_mut().filter_map(|stream| stream.id.take()) {
            net.close(id);
        }
        let control = self.client.as_mut().and_then(|client| client.control.take());
        if let Some(mut control) = control {
            control.tell(State::IperfDone);
            let _gone = control.flush(net);
            net.close(control.id());
        }
        self.be_over();
    }

    fn parameters(&self) -> Option<Parameters> {
        let (plan, terms) = (&self.plan, &self.client.as_ref()?.terms);
        let (time, bytes) = match plan.until {
            StopCondition::Elapsed(time) => (time, None),
            StopCondition::Bytes(each) => {
                (Duration::ZERO, Some(each.saturating_mul(plan.streams.into())))
            }
            StopCondition::Told => (Duration::ZERO, None),
        };
        Some(Parameters {
            protocol: Protocol::Tcp,
            omit: plan.omit,
            time,
            bytes,
            streams: plan.streams,
            direction: plan.direction,
            window: terms.window,
            block: plan.block,
            rate: plan.rate,
            pacing_rate: plan.options.max_pacing_rate.map(|bytes| bytes.get().saturating_mul(8)),
            mss: plan.options.mss,
            no_delay: plan.options.nagle == Nagle::Off,
            congestion: plan.options.congestion.clone(),
            server_output: terms.server_output,
            beyond: false,
        })
    }

    /// Results of this side.
    fn results(&self) -> Option<Results> {
        let congestion = self.client.as_ref()?.terms.congestion.clone();
        Some(self.counted_results(congestion))
    }

    /// Results of this side, as either a client or a server.
    pub(crate) fn counted_results(&self, congestion: String) -> Results {
        let seconds = self.elapsed().as_secs_f64();
        let streams = self.streams.iter().enumerate().map(|(place, stream)| {
            let counted = stream.counted();
            let sends = stream.direction().sends();
            let again = stream.samples().last().and_then(|sample| sample.sender_stats?.retransmits);
            StreamResult {
                id: stream_id(place),
                bytes: if sends { counted.sent } else { counted.received },
                retransmits: again.filter(|_| sends),
                seconds,
            }
        });
        let streams: Vec<_> = streams.collect();
        let elapsed = self.elapsed() + self.plan.omit;
        Results {
            processors: self
                .effort()
                .map_or_else(Processors::default, |effort| Processors::new(effort, elapsed)),
            has_retransmits: streams.iter().any(|stream| stream.retransmits.is_some()),
            congestion: Some(congestion).filter(|name| !name.is_empty()).map(Foreign::new),
            server_output: None,
            streams,
        }
    }
}

/// Messages read at a time.
const MESSAGES: usize = 16;
/// Longest document of results, bytes: it contains a server's output.
const MOST_RESULTS: u32 = 16 << 20;
