//! Bulk transfer, as ttcp and iperf3 measure it: streams that send, receive, or both.
//!
//! The other side is a server of iperf3's ([`iperf3`](crate::iperf3)), or a
//! [`PeerServer`](crate::PeerServer): one that sinks tells at the end how much came, so that what the
//! sender counted is held against what the receiver has; one that generates is received from.
//!
//! What counts as sent is what the other side's TCP acknowledged, and as received what was read.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use crate::iperf3::{Cookie, Fault, Results, StreamResult};
use crate::race::Race;
use crate::transport::{
    ConnError, ConnectOptions, Model, OpenError, PortShortage, Reading, SenderStats, Transport,
    TransportEvent,
};
use crate::{Destination, Part};
use due::DueStreams;
use iperf3_client::Client;
use series::Series;

pub use crate::direction::Direction;
pub use series::{Sample, Shares};
pub use units::{bitrate, transfer};

mod due;
mod iperf3_client;
mod run;
mod seek;
mod series;
mod units;

/// What is to be transferred.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// The server to connect to.
    pub target: Endpoint,
    /// The addresses of its name in the order in which they are tried, until a server answers at one, which
    /// is the target then; none or one: the target alone.
    pub destinations: Vec<Destination>,
    /// Whether this side sends, receives, or does both.
    pub direction: Direction,
    /// Streams side by side (>= 1).
    pub streams: u32,
    /// When it ends: after a time, after so many bytes, or when the other side says so.
    pub until: StopCondition,
    /// The most bits a second that each stream sends; `None`: as fast as it goes.
    pub rate: Option<u64>,
    /// Bytes handed over at a time (>= 1).
    pub block: usize,
    /// Time at the beginning that the totals leave out.
    pub omit: Duration,
    /// The length of the intervals.
    pub interval: Duration,
    /// How long a connection may take to open, and to end.
    pub timeout: Duration,
    /// What is set on each connection.
    pub options: ConnectOptions,
    /// What the other side speaks.
    pub peer: Peer,
    /// What processors did for this process so far, if anybody can tell.
    pub effort: CpuTimes,
}

/// What the other side speaks.
#[derive(Clone, Debug)]
pub enum Peer {
    /// Nothing: it reads or sends, or both.
    Plain,
    /// iperf3's protocol, as a server.
    Iperf3(Iperf3Params),
    /// The same as a client, whose connections were accepted.
    Iperf3Client,
}

/// What only iperf3's protocol has.
#[derive(Clone, Debug)]
pub struct Iperf3Params {
    /// What names the test.
    pub cookie: Cookie,
    /// Bytes of the buffers that the server is asked for.
    pub window: Option<u32>,
    /// True if it is asked for what it prints.
    pub server_output: bool,
    /// What this side controls congestion with.
    pub congestion: String,
}

/// Tells what processors did for this process so far: for itself, and in the kernel.
pub type CpuTimes = fn() -> Option<[Duration; 2]>;

impl TransferPlan {
    /// What one part of the transfer is to do: its share of the streams.
    pub fn part(&self, part: Part) -> Self {
        let streams = part.share(self.streams.into());
        Self { streams: u32::try_from(streams).unwrap_or(u32::MAX).max(1), ..self.clone() }
    }
}

/// When a transfer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopCondition {
    /// After this time, what is omitted not counted.
    Elapsed(Duration),
    /// When each stream has sent (or received) this many bytes.
    Octets(u64),
    /// When whoever drives it says so.
    Told,
}

/// A transfer under way. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Bulk<T: Transport> {
    pub(crate) plan: TransferPlan,
    block: Bytes,
    pub(crate) streams: Vec<Stream<T::Id>>,
    due: DueStreams,
    /// Bytes that were given to the transport, and read from it, on all streams.
    progress: Totals,
    /// How many streams receive.
    receivers: u64,
    state: TransferState,
    /// When all streams were open, and the clock began.
    began: Instant,
    /// When the last stream stopped.
    until: Instant,
    /// When the next sample is due.
    next_sample: Instant,
    /// When to look again whether all was acknowledged.
    next_look: Option<Instant>,
    /// A stream was lost while the control connection may still tell why, and when that was.
    lost: Option<(ConnError, Instant)>,
    conn_error: Option<ConnError>,
    pub(crate) shortage: Option<PortShortage>,
    /// Whoever speaks with a server of iperf3's.
    pub(crate) client: Option<Client<T::Id>>,
    /// The addresses of the target's name, while none has answered.
    race: Option<Race<T::Id>>,
    /// Those where no server answered, and why, before one did or none was left.
    unreached: Vec<(Endpoint, ConnError)>,
    /// What processors did when it began, and in all.
    effort: [Option<[Duration; 2]>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransferState {
    NotBegun,
    Opening,
    Running,
    /// Time is over: the ends are awaited.
    Ending {
        since: Instant,
    },
    Over,
}

/// One connection of a transfer, and what it moved.
#[derive(Debug)]
pub struct Stream<I> {
    pub(crate) id: Option<I>,
    direction: Direction,
    pub(crate) open: bool,
    local: Option<Endpoint>,
    remote: Option<Endpoint>,
    pending: Bytes,
    /// What goes first, and is not counted.
    pub(crate) prologue: Bytes,
    /// Bytes of it that were given to the transport.
    pub(crate) prologue_given: u64,
    /// Bytes that were given to the transport.
    given: u64,
    /// Bytes sent and received so far, the omitted ones included.
    totals: Totals,
    /// What the peer says came, and when it had said so.
    answer: Vec<u8>,
    answered: Option<Instant>,
    shut: bool,
    /// For how long it had nothing to give, and since when it has nothing again.
    idle: Duration,
    idle_since: Option<Instant>,
    series: Series,
    /// What the other side counted.
    pub(crate) theirs: Option<StreamResult>,
}

/// Bytes of one stream, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Bytes that the other side's TCP acknowledged.
    pub sent: u64,
    /// Bytes that were read here.
    pub received: u64,
}

impl<I> Stream<I> {
    /// One that nothing happened on.
    fn new(id: I, direction: Direction, keep: usize) -> Self {
        Self {
            id: Some(id),
            direction,
            open: false,
            local: None,
            remote: None,
            pending: Bytes::new(),
            prologue: Bytes::new(),
            prologue_given: 0,
            given: 0,
            totals: Totals::default(),
            answer: Vec::new(),
            answered: None,
            shut: false,
            idle: Duration::ZERO,
            idle_since: None,
            series: Series::keeping(keep),
            theirs: None,
        }
    }

    /// Which way it goes.
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Bytes that were given to the transport, the omitted part included.
    pub const fn given(&self) -> u64 {
        self.given
    }

    /// The other end of its connection, if that is known.
    pub const fn remote(&self) -> Option<Endpoint> {
        self.remote
    }

    /// What the other side counted, if it told.
    pub const fn theirs(&self) -> Option<&StreamResult> {
        self.theirs.as_ref()
    }

    /// So much of what was given is acknowledged.
    fn acknowledge(&mut self, sender_stats: &SenderStats) {
        // The transport counts all that it sent, the cookie of iperf3's in front of the text included.
        let text = sender_stats.acked.saturating_sub(self.prologue_given);
        self.totals.sent = self.totals.sent.max(text.min(self.given));
    }

    /// What it moved so far, the omitted part included.
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// What it moved in each interval.
    pub fn samples(&self) -> &[Sample] {
        self.series.samples()
    }

    /// What it moved, without what was omitted.
    pub fn counted(&self) -> Totals {
        self.series.counted(self.totals)
    }

    /// How long its sender waited for what.
    pub const fn shares(&self) -> &Shares {
        self.series.shares()
    }

    /// This side's end of its connection, if that is known.
    pub const fn local(&self) -> Option<Endpoint> {
        self.local
    }

    /// For how long it had nothing to give until `now`.
    fn idle(&self, now: Instant) -> Duration {
        self.idle + self.idle_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// It has something to give now, or nothing.
    fn note_idle(&mut self, now: Instant) {
        if self.pending.is_empty() {
            self.idle_since.get_or_insert(now);
        } else {
            self.idle = self.idle(now);
            self.idle_since = None;
        }
    }

    /// What a sink said came, bytes.
    pub fn confirmed(&self) -> Option<u64> {
        let text = core::str::from_utf8(&self.answer).ok()?;
        text.split_once(" bytes, ")?.0.parse().ok()
    }
}

/// Getters.
impl<T: Transport> Bulk<T> {
    /// A transfer that begins when it is first polled.
    pub fn new(plan: TransferPlan) -> Self {
        let client = match &plan.peer {
            Peer::Iperf3(terms) => Some(Client::new(terms.clone())),
            Peer::Plain | Peer::Iperf3Client => None,
        };
        Self {
            client,
            race: None,
            unreached: Vec::new(),
            effort: [None; 2],
            next_look: None,
            lost: None,
            block: crate::peer::pattern(plan.block.max(1)),
            streams: Vec::new(),
            due: DueStreams::default(),
            progress: Totals::default(),
            receivers: 0,
            state: TransferState::NotBegun,
            began: Instant::ZERO,
            until: Instant::ZERO,
            next_sample: Instant::ZERO,
            conn_error: None,
            shortage: None,
            plan,
        }
    }

    /// What the transfer was begun with.
    pub const fn plan(&self) -> &TransferPlan {
        &self.plan
    }

    /// Its connections, in the order in which they were opened.
    pub fn streams(&self) -> &[Stream<T::Id>] {
        &self.streams
    }

    /// What ended it early, if something did.
    pub const fn conn_error(&self) -> Option<ConnError> {
        self.conn_error
    }

    /// Addresses of the target's name where no server answered, and why.
    pub fn unreached(&self) -> &[(Endpoint, ConnError)] {
        &self.unreached
    }

    /// What kept the ports, if there was none for one of the streams.
    pub const fn shortage(&self) -> Option<PortShortage> {
        self.shortage
    }

    /// Why a test of iperf3's came to nothing, if it did.
    pub fn fault(&self) -> Option<Fault> {
        self.client.as_ref().and_then(Client::fault)
    }

    /// What the other side told at the end, if it is iperf3's.
    pub fn theirs(&self) -> Option<&Results> {
        self.client.as_ref().and_then(Client::results)
    }

    /// What processors did for this process while bytes flowed.
    pub fn effort(&self) -> Option<[Duration; 2]> {
        let [before, after] = self.effort;
        // Both readings or none: half of a difference would look like a figure.
        let ([user, system], [user_after, system_after]) = before.zip(after)?;
        Some([user_after.saturating_sub(user), system_after.saturating_sub(system)])
    }

    /// True if bytes flow, or did.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.state, TransferState::NotBegun | TransferState::Opening)
    }

    /// When all streams were open.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// How long it ran, what was omitted not counted.
    pub fn elapsed(&self) -> Duration {
        self.until.since(self.began + self.plan.omit)
    }

    /// How long it took until a sink had said how much came on `stream`, what was omitted not counted: what
    /// was under way when the time ran out is in its count, too.
    pub fn confirmed_after(&self, stream: &Stream<T::Id>) -> Option<Duration> {
        Some(stream.answered?.since(self.began + self.plan.omit))
    }

    /// Ends the transfer now, as if its time were over: totals count what was moved so far.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        self.take_leave(net);
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

    /// Nothing is left to be done.
    pub(crate) fn be_over(&mut self) {
        self.state = TransferState::Over;
    }

    /// Lets go of the streams: those that were sent on deliver what is under way.
    pub(crate) fn let_go(&mut self, net: &mut T) {
        for stream in &mut self.streams {
            match (stream.id.take(), stream.direction) {
                // Whoever is received from may send for ever: only a reset ends that.
                (Some(id), Direction::Send) => net.close(id),
                (Some(id), _) => net.abort(id),
                (None, _) => {}
            }
        }
        self.state = TransferState::Over;
    }

    /// When to go on at the latest, though nothing happens.
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

impl<T: Transport> Model<T> for Bulk<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        if self.state == TransferState::NotBegun {
            self.open(net, now);
        }
        let mut left = budget;
        while left > 0 {
            // Events first: what they bring is counted in the interval in which it came.
            let Some(event) = net.poll_event() else { break };
            self.on_event(net, event, now);
            left -= 1;
        }
        let more = self.go_on(net, now);
        // A budget used up says nothing of what is left: whoever drives is to ask again.
        (more || left == 0) && self.state != TransferState::Over
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_due()
    }

    fn is_done(&self) -> bool {
        self.state == TransferState::Over
    }
}

/// How long the control connection of a test has to tell why a stream was lost.
const GRACE: Duration = Duration::from_secs(1);
