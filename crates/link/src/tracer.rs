//! Traces each connection of a shard, burst by burst, as lines of JSON: the recovery state, the
//! congestion window, the bytes in flight, and the sender's limit.
//!
//! ```text
//! {"t":0.070112000,"conn":1,"local":"10.9.0.1:49152","remote":"10.9.0.2:80","events":["acked"],…}
//! ```
//!
//! A connection gets a line when one of its segments arrived or left and something about it
//! changed; a change by a timer appears with the segment that the timer sent. Shards without
//! segments are not examined, so a stack without a tracer pays nothing.
//!
//! Instead of lines, a function can take the entries ([`Tracer::calling`]).
//!
//! It keeps about 150 bytes for each open connection and for as many that closed without a segment,
//! and the lines of one burst.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::Bound;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{Medium, RxFrame, Shard};
use whimbrel_tcp::DropReason;
use whimbrel_tcp::conn::{Limit, Snapshot};
use whimbrel_tcp::recovery::CaState;
use whimbrel_wire::{Flow, SeqNum};

use crate::packet_flow::{flow_of, flow_of_segment};
use crate::pcapng::Direction;

/// Traces connections. Its lines wait until they are [taken](Tracer::take).
#[derive(Debug)]
pub struct Tracer {
    medium: Medium,
    /// Connections whose last line was not "closed".
    known: BTreeMap<Flow, Known>,
    /// The last one that was checked for its end.
    looked_at: Option<Flow>,
    /// Number of the next connection, and the step to the one after it.
    next_number: u64,
    step: u64,
    /// Connections with segments in the present burst.
    touched: Vec<Flow>,
    /// Drops so far by each reason of [`REFUSALS`], if they are traced.
    refused: Option<[u64; REFUSALS.len()]>,
    out: Output,
}

/// The receiver of entries.
#[derive(Default)]
struct Output {
    lines: Lines,
    /// Takes them instead.
    handler: Option<EntryHandler>,
}

/// A function that takes entries of a trace.
pub type EntryHandler = Box<dyn FnMut(&TraceEntry<'_>) + Send>;

/// An entry of a trace.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TraceEntry<'e> {
    /// A connection changed.
    Connection(ConnectionChange<'e>),
    /// Segments were refused since the last entry of this reason.
    Refused {
        /// The time of the burst.
        at: Instant,
        /// The reason of the refusal, which each of the segments has.
        reason: DropReason,
        /// The number of segments; at least 1.
        count: u64,
    },
}

/// A change of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionChange<'e> {
    /// The time of the burst.
    pub at: Instant,
    /// The number of the connection, from 1 on.
    pub number: u64,
    /// Its two ends.
    pub flow: &'e Flow,
    /// Its state of RFC 9293; `None` if nothing is left of it.
    pub state: Option<SocketState>,
    /// Events since its last entry.
    pub events: &'e [TraceEvent],
    /// Its variables, unless it closed.
    pub snapshot: Option<&'e Snapshot>,
}

/// Reasons of refusals: no listener, and limits that are exhausted.
const REFUSALS: [DropReason; 6] = [
    DropReason::NoSocket,
    DropReason::ListenOverflow,
    DropReason::SynCacheFull,
    DropReason::ConnectionLimit,
    DropReason::OutOfOrderLimit,
    DropReason::MemoryBudget,
];

/// State of a connection in its last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    number: u64,
    state: Option<SocketState>,
    una: SeqNum,
    sent: u32,
    sent_again: u32,
    received: u64,
    ca_state: CaState,
    backoff: u8,
    is_stalled: bool,
}

/// Events of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TraceEvent {
    /// Both sides have it.
    Opened,
    /// Text was sent for the first time.
    Sent,
    /// Text was retransmitted.
    SentAgain,
    /// Sent text was acknowledged.
    Acked,
    /// Text was received in order.
    Received,
    /// A loss is suspected.
    Disorder,
    /// Marks of the network reduced the window.
    Reduced,
    /// A loss was found.
    Recovery,
    /// The retransmission timer ran out.
    TimeOut,
    /// Losses are repaired.
    Recovered,
    /// The peer's window is closed.
    Stalled,
    /// The peer's window is open again.
    Resumed,
    /// Its state of RFC 9293 is another.
    State,
    /// Nothing is left of it.
    Closed,
    /// The run ended first.
    End,
}

/// Lines of JSON not taken yet.
#[derive(Default, Debug)]
struct Lines(Vec<u8>);

impl Tracer {
    /// A tracer of shard number `shard` of `shards` (>= 1): connections are numbered from 1 on,
    /// each number once.
    pub fn new(medium: Medium, shard: u64, shards: u64) -> Self {
        Self {
            medium,
            known: BTreeMap::new(),
            looked_at: None,
            next_number: shard + 1,
            step: shards.max(1),
            touched: Vec::new(),
            refused: None,
            out: Output::default(),
        }
    }

    /// Passes entries to `handler` instead of writing lines.
    #[must_use]
    pub fn calling(mut self, handler: EntryHandler) -> Self {
        self.out.handler = Some(handler);
        self
    }

    /// Traces refusals, too: at most one line for each reason and burst.
    ///
    /// ```text
    /// {"t":0.070112000,"refused":"TCP_LISTEN_OVERFLOW","count":3}
    /// ```
    #[must_use]
    pub const fn with_refusals(mut self) -> Self {
        self.refused = Some([0; REFUSALS.len()]);
        self
    }

    /// Whole lines since the last call, for the caller to write and clear; none if a function takes the entries.
    pub fn take(&mut self) -> &mut Vec<u8> {
        &mut self.out.lines.0
    }

    /// Handles frames that arrived, after the shard.
    pub fn rx(&mut self, now: Instant, shard: &Shard, burst: &[RxFrame<'_>]) {
        for frame in burst {
            self.touch(flow_of(self.medium, Direction::In, frame.bytes));
        }
        self.note_touched(now, shard);
        self.note_refusals(now, shard);
    }

    /// Handles segments that left the shard.
    pub fn tx(&mut self, now: Instant, shard: &Shard, segments: &[TxSegment]) {
        for segment in segments {
            self.touch(flow_of_segment(self.medium, segment));
        }
        self.note_touched(now, shard);
    }

    /// Ends the run: writes a last line for each open connection.
    pub fn end(&mut self, now: Instant, shard: &Shard) {
        for (flow, known) in core::mem::take(&mut self.known) {
            let snapshot = shard.snapshot_between(&flow);
            self.out.change(ConnectionChange {
                at: now,
                number: known.number,
                flow: &flow,
                state: known.state,
                events: &[TraceEvent::End],
                snapshot: snapshot.as_ref(),
            });
        }
    }

    /// Writes a line for each reason for which something was refused since the last call.
    fn note_refusals(&mut self, now: Instant, shard: &Shard) {
        let Some(before) = &mut self.refused else { return };
        for (reason, before) in REFUSALS.into_iter().zip(before) {
            let count = shard.counters().dropped(reason);
            if count > *before {
                let count = count - core::mem::replace(before, count);
                self.out.entry(&TraceEntry::Refused { at: now, reason, count });
            }
        }
    }

    fn touch(&mut self, flow: Option<Flow>) {
        // Segments of one connection come together.
        if let Some(flow) = flow.filter(|flow| self.touched.last() != Some(flow)) {
            self.touched.push(flow);
        }
    }

    fn note_touched(&mut self, now: Instant, shard: &Shard) {
        let (mut touched, before) = (core::mem::take(&mut self.touched), self.next_number);
        touched.sort_unstable();
        touched.dedup();
        for flow in touched.drain(..) {
            self.note(now, shard, &flow);
        }
        self.touched = touched;
        let opened = (self.next_number - before) / self.step;
        for _ in 0..LOOKS * opened {
            self.look_at_next(now, shard);
        }
    }

    fn note(&mut self, now: Instant, shard: &Shard, flow: &Flow) {
        let state = shard.state_between(flow);
        let Some(snapshot) = shard.snapshot_between(flow) else {
            if let Some(known) = self.known.remove(flow) {
                self.out.closed(now, known.number, flow, state);
            }
            return;
        };
        let before = self.known.get(flow).copied();
        // A connection that is not established yet has nothing to trace.
        if before.is_none() && !is_open(state) {
            return;
        }
        let number = before.map_or(self.next_number, |before| before.number);
        let after = Known::of(number, state, &snapshot);
        let events = Known::changes(before.as_ref(), &after);
        if before.is_none() {
            self.next_number += self.step;
        }
        self.known.insert(*flow, after);
        if !events.is_empty() {
            let (events, snapshot) = (events.as_slice(), Some(&snapshot));
            self.out.change(ConnectionChange { at: now, number, flow, state, events, snapshot });
        }
    }

    /// Forgets the next connection if it ended without a segment, as by a time-out. Rejected: a
    /// pass over all of them, whose lines were as many megabytes at once.
    fn look_at_next(&mut self, now: Instant, shard: &Shard) {
        let from = self.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.known.range((from, Bound::Unbounded)).next();
        let next = next.map(|(flow, known)| (*flow, known.number));
        self.looked_at = next.map(|(flow, _)| flow);
        let Some((flow, number)) = next else { return };
        if shard.snapshot_between(&flow).is_none() {
            self.known.remove(&flow);
            self.out.closed(now, number, &flow, None);
        }
    }
}

impl Known {
    fn of(number: u64, state: Option<SocketState>, snapshot: &Snapshot) -> Self {
        Self {
            number,
            state,
            una: snapshot.snd.una,
            sent: snapshot.tally.data_segs_out,
            sent_again: snapshot.info_counts.total_retrans,
            received: snapshot.tally.bytes_received,
            ca_state: snapshot.ca_state,
            backoff: snapshot.backoff,
            is_stalled: snapshot.persist,
        }
    }

    /// Events between two states.
    fn changes(before: Option<&Self>, after: &Self) -> Vec<TraceEvent> {
        let Some(before) = before else { return [TraceEvent::Opened].into() };
        let is_whole = |known: &Self| matches!(known.ca_state, CaState::Open | CaState::Cwr);
        let is_repaired = is_whole(after) && !is_whole(before);
        let enters = |state| after.ca_state == state && before.ca_state != state;
        let events = [
            (after.sent != before.sent, TraceEvent::Sent),
            (after.sent_again != before.sent_again, TraceEvent::SentAgain),
            (after.una != before.una, TraceEvent::Acked),
            (after.received != before.received, TraceEvent::Received),
            (enters(CaState::Disorder), TraceEvent::Disorder),
            (enters(CaState::Cwr), TraceEvent::Reduced),
            (enters(CaState::Recovery), TraceEvent::Recovery),
            (after.backoff > before.backoff, TraceEvent::TimeOut),
            (is_repaired, TraceEvent::Recovered),
            (after.is_stalled && !before.is_stalled, TraceEvent::Stalled),
            (before.is_stalled && !after.is_stalled, TraceEvent::Resumed),
            (after.state != before.state, TraceEvent::State),
        ];
        events.into_iter().filter(|(happened, _)| *happened).map(|(_, event)| event).collect()
    }
}

impl TraceEvent {
    /// Returns its name in lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Sent => "sent",
            Self::SentAgain => "sent_again",
            Self::Acked => "acked",
            Self::Received => "received",
            Self::Disorder => "disorder",
            Self::Reduced => "reduced",
            Self::Recovery => "recovery",
            Self::TimeOut => "timeout",
            Self::Recovered => "recovered",
            Self::Stalled => "stalled",
            Self::Resumed => "resumed",
            Self::State => "state",
            Self::Closed => "closed",
            Self::End => "end",
        }
    }
}

/// Events as a JSON array of their names, for example `["acked","sent"]`.
struct Events<'e>(&'e [TraceEvent]);

impl fmt::Display for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mark = '[';
        for event in self.0 {
            write!(f, "{mark}\"{}\"", event.name())?;
            mark = ',';
        }
        f.write_char(']')
    }
}

impl Output {
    fn change(&mut self, change: ConnectionChange<'_>) {
        self.entry(&TraceEntry::Connection(change));
    }

    /// Nothing is left of a connection but what `state` says.
    fn closed(&mut self, at: Instant, number: u64, flow: &Flow, state: Option<SocketState>) {
        let events = &[TraceEvent::Closed];
        self.change(ConnectionChange { at, number, flow, state, events, snapshot: None });
    }

    fn entry(&mut self, entry: &TraceEntry<'_>) {
        if let Some(handler) = &mut self.handler {
            return handler(entry);
        }
        match entry {
            TraceEntry::Connection(change) => self.lines.line(change),
            TraceEntry::Refused { at, reason, count } => {
                let (t, name) = (Seconds(at.since(Instant::ZERO)), reason.name());
                // Writing to memory cannot fail.
                let _ = writeln!(self.lines, r#"{{"t":{t},"refused":"{name}","count":{count}}}"#);
            }
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_calling = self.handler.is_some();
        f.debug_struct("Output").field("is_calling", &is_calling).finish_non_exhaustive()
    }
}

impl Lines {
    /// Writes one line: the connection, its events, and variables after them.
    fn line(&mut self, change: &ConnectionChange<'_>) {
        let ConnectionChange { at, flow: Flow { local, remote }, number, state, .. } = change;
        let (t, events) = (Seconds(at.since(Instant::ZERO)), Events(change.events));
        // Writing to memory cannot fail.
        let _ = write!(
            self,
            r#"{{"t":{t},"conn":{number},"local":"{local}","remote":"{remote}","events":{events},"#
        );
        let _ = match state {
            Some(state) => write!(self, r#""state":"{state}""#),
            None => write!(self, r#""state":"CLOSED""#),
        };
        let _ = change.snapshot.map_or(Ok(()), |snapshot| self.variables(snapshot));
        let _ = self.write_str("}\n");
    }

    /// The variables of a connection.
    fn variables(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let Snapshot { snd, tally, cwnd, ssthresh, lost, unsent, send_size, mss, .. } = snapshot;
        let (in_flight, wnd) = (snd.in_flight(), snd.wnd.get());
        write!(self, r#","ca_state":"{}","cwnd":{cwnd}"#, ca_state(snapshot.ca_state))?;
        match *ssthresh {
            u32::MAX => self.write_str(r#","ssthresh":null"#)?,
            ssthresh => write!(self, r#","ssthresh":{ssthresh}"#)?,
        }
        let pipe = snapshot.pipe;
        write!(self, r#","pipe":{pipe},"in_flight":{in_flight},"lost":{lost}"#)?;
        match snapshot.srtt {
            None => self.write_str(r#","srtt":null,"rttvar":null"#)?,
            Some(srtt) => {
                let [srtt, rttvar] = [srtt, snapshot.rttvar].map(Seconds);
                write!(self, r#","srtt":{srtt},"rttvar":{rttvar}"#)?;
            }
        }
        let (rto, limit) = (Seconds(snapshot.rto), limit(tally.limit()));
        write!(self, r#","rto":{rto},"snd_wnd":{wnd},"limit":"{limit}","mss":{mss}"#)?;
        write!(self, r#","unsent":{unsent},"sndbuf":{send_size}"#)?;
        let (acked, again, received) =
            (tally.bytes_acked, snapshot.info_counts.bytes_retrans, tally.bytes_received);
        write!(self, r#","delivered":{acked},"sent_again":{again},"received":{received}"#)
    }
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A time in seconds, to the nanosecond.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0.as_secs(), self.0.subsec_nanos())
    }
}

/// True if both sides have the connection.
fn is_open(state: Option<SocketState>) -> bool {
    !matches!(state, None | Some(SocketState::SynSent | SocketState::SynReceived))
}

/// Name of a state of loss recovery.
pub const fn ca_state(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

/// Name in `bulk`.
pub const fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "app",
        Limit::Network => "cwnd",
        Limit::Window => "rwnd",
        Limit::Buffer => "sndbuf",
    }
}

/// Connections checked for each new one: a round over n of them ends before n / 3 came, so that at
/// most half of the known ones are gone.
const LOOKS: u64 = 4;
