//! Bulk transfer, as ttcp and iperf3 measure it: streams that send, receive, or both.
//!
//! The other side is a server of iperf3's ([`iperf3`](crate::iperf3)), or a
//! [`PeerServer`](crate::PeerServer). A sink reports at the end how many bytes came, to compare
//! with the sender's count; a generator only sends.
//!
//! Bytes count as sent when the other side's TCP has acknowledged them, and as received when they
//! were read.

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

mod course;
mod due;
mod iperf3_client;
mod run;
mod seek;
mod series;
mod units;

/// Plan of a transfer.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// The server to connect to.
    pub target: Endpoint,
    /// Addresses of its name in the order to try. The first where a server answers becomes the
    /// target. With none or one, only the target is tried.
    pub destinations: Vec<Destination>,
    /// Direction of the bytes: sent, received, or both.
    pub direction: Direction,
    /// Streams side by side (>= 1).
    pub streams: u32,
    /// End of the transfer: after a time, after a number of bytes, or at the driver's request.
    pub until: StopCondition,
    /// Most bits per second on each stream; `None`: no limit.
    pub rate: Option<u64>,
    /// Bytes per call (>= 1).
    pub block: usize,
    /// Time at the beginning that the totals leave out.
    pub omit: Duration,
    /// Length of the intervals.
    pub interval: Duration,
    /// Time limit for opening a connection, and for ending it.
    pub timeout: Duration,
    /// Options of each connection.
    pub options: ConnectOptions,
    /// Protocol of the other side.
    pub peer: Peer,
    /// Processor time of this process so far, if the system counts it.
    pub effort: CpuTimes,
}

/// Protocol of the other side.
#[derive(Clone, Debug)]
pub enum Peer {
    /// None: this side reads, sends, or both.
    Plain,
    /// iperf3's protocol, as a server.
    Iperf3(Iperf3Params),
    /// Client of iperf3 on connections that a server accepted.
    Iperf3Client,
}

/// Parameters that only iperf3's protocol has.
#[derive(Clone, Debug)]
pub struct Iperf3Params {
    /// Identifies the test.
    pub cookie: Cookie,
    /// Buffer size that the server is asked to use, bytes.
    pub window: Option<u32>,
    /// True if the server is asked for its output.
    pub server_output: bool,
    /// Congestion control of this side.
    pub congestion: String,
}

/// Returns the processor time of this process so far: user and system.
pub type CpuTimes = fn() -> Option<[Duration; 2]>;

impl TransferPlan {
    /// Share of one part of the transfer: its streams.
    pub fn part(&self, part: Part) -> Self {
        let streams = part.share(self.streams.into());
        Self { streams: u32::try_from(streams).unwrap_or(u32::MAX).max(1), ..self.clone() }
    }
}

/// End of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopCondition {
    /// After this time, without the omitted part.
    Elapsed(Duration),
    /// When each stream has sent (or received) this many bytes.
    Bytes(u64),
    /// When the driver stops it.
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
    /// Number of streams that receive.
    receivers: u64,
    state: TransferState,
    /// Time when all streams were open, and the clock started.
    began: Instant,
    /// Time when the last stream stopped.
    until: Instant,
    /// Time of the next sample.
    next_sample: Instant,
    /// Time of the next check whether all was acknowledged.
    next_look: Option<Instant>,
    /// Error and time of a lost stream, while the control connection may still report why.
    lost: Option<(ConnError, Instant)>,
    conn_error: Option<ConnError>,
    pub(crate) shortage: Option<PortShortage>,
    /// Control connection to a server of iperf3, of a client.
    pub(crate) client: Option<Client<T::Id>>,
    /// The addresses of the target's name, while none has answered.
    race: Option<Race<T::Id>>,
    /// Addresses where no server answered, with the errors.
    unreached: Vec<(Endpoint, ConnError)>,
    /// Processor time at the start, and in all.
    effort: [Option<[Duration; 2]>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransferState {
    NotBegun,
    Opening,
    Running,
    /// The time is over: the streams end.
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
    /// Bytes sent first and not counted.
    pub(crate) prologue: Bytes,
    /// Bytes of it passed to the transport.
    pub(crate) prologue_given: u64,
    /// Bytes passed to the transport.
    given: u64,
    /// Bytes sent and received so far, with the omitted part.
    totals: Totals,
    /// Report of the peer, and the time when it was complete.
    answer: Vec<u8>,
    answered: Option<Instant>,
    shut: bool,
    /// Time without data to send, and the start of the present such time.
    idle: Duration,
    idle_since: Option<Instant>,
    series: Series,
    /// Counts of the other side.
    pub(crate) theirs: Option<StreamResult>,
}

/// Bytes of one stream, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Bytes that the other side's TCP acknowledged.
    pub sent: u64,
    /// Bytes that this side read.
    pub received: u64,
}

impl<I> Stream<I> {
    /// A stream before its first event.
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

    /// Direction of its bytes.
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Bytes passed to the transport, with the omitted part.
    pub const fn given(&self) -> u64 {
        self.given
    }

    /// Remote endpoint, if known.
    pub const fn remote(&self) -> Option<Endpoint> {
        self.remote
    }

    /// Counts of the other side, if it sent them.
    pub const fn theirs(&self) -> Option<&StreamResult> {
        self.theirs.as_ref()
    }

    /// Takes over the number of acknowledged bytes.
    fn acknowledge(&mut self, sender_stats: &SenderStats) {
        // The transport counts all that it sent, the cookie of iperf3's in front of the text included.
        let text = sender_stats.acked.saturating_sub(self.prologue_given);
        self.totals.sent = self.totals.sent.max(text.min(self.given));
    }

    /// Totals so far, with the omitted part.
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Samples, one for each interval.
    pub fn samples(&self) -> &[Sample] {
        self.series.samples()
    }

    /// Totals without the omitted part.
    pub fn counted(&self) -> Totals {
        self.series.counted(self.totals)
    }

    /// Time that its sender waited for each limit.
    pub const fn shares(&self) -> &Shares {
        self.series.shares()
    }

    /// Local endpoint, if known.
    pub const fn local(&self) -> Option<Endpoint> {
        self.local
    }

    /// Time without data to send until `now`.
    fn idle(&self, now: Instant) -> Duration {
        self.idle + self.idle_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Notes if there is data to send now.
    fn note_idle(&mut self, now: Instant) {
        if self.pending.is_empty() {
            self.idle_since.get_or_insert(now);
        } else {
            self.idle = self.idle(now);
            self.idle_since = None;
        }
    }

    /// Number of bytes that a sink confirmed.
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

    /// The plan of this transfer.
    pub const fn plan(&self) -> &TransferPlan {
        &self.plan
    }

    /// Its connections, in the order in which they were opened.
    pub fn streams(&self) -> &[Stream<T::Id>] {
        &self.streams
    }

    /// The error that ended it early, if there was one.
    pub const fn conn_error(&self) -> Option<ConnError> {
        self.conn_error
    }

    /// Addresses of the target's name where no server answered, and why.
    pub fn unreached(&self) -> &[(Endpoint, ConnError)] {
        &self.unreached
    }

    /// Why a stream found no port, if one did not.
    pub const fn shortage(&self) -> Option<PortShortage> {
        self.shortage
    }

    /// Error of an iperf3 test, if it failed.
    pub fn fault(&self) -> Option<Fault> {
        self.client.as_ref().and_then(Client::fault)
    }

    /// Results of the other side, if it speaks iperf3's protocol.
    pub fn theirs(&self) -> Option<&Results> {
        self.client.as_ref().and_then(Client::results)
    }

    /// Processor time of this process while bytes flowed.
    pub fn effort(&self) -> Option<[Duration; 2]> {
        let [before, after] = self.effort;
        // Both readings or none: half of a difference would look like a figure.
        let ([user, system], [user_after, system_after]) = before.zip(after)?;
        Some([user_after.saturating_sub(user), system_after.saturating_sub(system)])
    }

    /// True once bytes flow.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.state, TransferState::NotBegun | TransferState::Opening)
    }

    /// Time when all streams were open.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Running time without the omitted part.
    pub fn elapsed(&self) -> Duration {
        self.until.since(self.began + self.plan.omit)
    }

    /// Time until a sink confirmed the bytes of `stream`, without the omitted part. Its count
    /// includes bytes that were under way when the time ran out.
    pub fn confirmed_after(&self, stream: &Stream<T::Id>) -> Option<Duration> {
        Some(stream.answered?.since(self.began + self.plan.omit))
    }

    /// Marks the transfer as over.
    pub(crate) fn be_over(&mut self) {
        self.state = TransferState::Over;
    }

    /// Releases the streams; those that sent deliver what is under way.
    pub(crate) fn release(&mut self, net: &mut T) {
        for stream in &mut self.streams {
            match (stream.id.take(), stream.direction) {
                // A sender may go on for ever: only a reset ends that.
                (Some(id), Direction::Send) => net.close(id),
                (Some(id), _) => net.abort(id),
                (None, _) => {}
            }
        }
        self.state = TransferState::Over;
    }
}

impl<T: Transport> Model<T> for Bulk<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        if self.state == TransferState::NotBegun {
            self.open(net, now);
        }
        let mut left = budget;
        while left > 0 {
            // Events come first: their data counts in the interval of their arrival.
            let Some(event) = net.poll_event() else { break };
            self.on_event(net, event, now);
            left -= 1;
        }
        let more = self.go_on(net, now);
        // A used-up budget says nothing about the work left: the driver must poll again.
        (more || left == 0) && self.state != TransferState::Over
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_due()
    }

    fn is_done(&self) -> bool {
        self.state == TransferState::Over
    }
}

/// Time for the control connection of a test to report why a stream was lost.
const GRACE: Duration = Duration::from_secs(1);
