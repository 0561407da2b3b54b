//! Bulk transfer, as ttcp and iperf3 measure it: streams that send, receive, or both.
//!
//! The other side is a [`PeerServer`](crate::PeerServer): one that sinks tells at the end how much
//! came, so that what the sender counted is held against what the receiver has; one that generates
//! is received from.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_tcp::Instant;
use whimbrel_wire::Endpoint;

use crate::Part;
use crate::transport::{
    Happening, Model, Opening, PortShortage, Reading, Transport, Trouble, Unopened,
};
use series::Series;

pub use series::{Sample, Shares};

mod course;
mod series;

/// What is to be transferred.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The peer.
    pub target: Endpoint,
    /// Which way.
    pub direction: Direction,
    /// Streams side by side (>= 1).
    pub streams: u32,
    /// When it ends.
    pub until: Until,
    /// The most bits a second that each stream sends; `None`: as fast as it goes.
    pub rate: Option<u64>,
    /// Octets handed over at a time (>= 1).
    pub block: usize,
    /// Time at the beginning that the totals leave out.
    pub omit: Duration,
    /// The length of the intervals.
    pub interval: Duration,
    /// How long a connection may take to open, and to end.
    pub timeout: Duration,
    /// What is set on each connection.
    pub opening: Opening,
}

impl Plan {
    /// What one part of the transfer is to do: its share of the streams.
    pub fn part(&self, part: Part) -> Self {
        let streams = part.share(self.streams.into());
        Self { streams: u32::try_from(streams).unwrap_or(u32::MAX).max(1), ..self.clone() }
    }
}

/// Which way octets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// This side sends.
    Send,
    /// This side receives.
    Receive,
    /// Both at once.
    Both,
}

impl Direction {
    const fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Both)
    }

    const fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }
}

/// When a transfer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// After this time, what is omitted not counted.
    Elapsed(Duration),
    /// When each stream has sent (or received) this many octets.
    Octets(u64),
}

/// A transfer under way. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Bulk<T: Transport> {
    plan: Plan,
    block: Bytes,
    streams: Vec<Stream<T::Id>>,
    life: Life,
    /// When all streams were open, and the clock began.
    began: Instant,
    /// When the last stream stopped.
    until: Instant,
    /// When the next sample is due.
    next_sample: Instant,
    trouble: Option<Trouble>,
    shortage: Option<PortShortage>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    NotBegun,
    Opening,
    Running,
    /// Time is over: the ends are awaited.
    Ending {
        since: Instant,
    },
    Over,
}

/// One stream.
#[derive(Debug)]
pub struct Stream<I> {
    id: Option<I>,
    open: bool,
    local: Option<Endpoint>,
    pending: Bytes,
    /// Octets sent and received so far, the omitted ones included.
    totals: Totals,
    /// What the peer says came.
    answer: Vec<u8>,
    shut: bool,
    /// For how long it had nothing to give, and since when it has nothing again.
    idle: Duration,
    idle_since: Option<Instant>,
    series: Series,
}

/// Octets of one stream, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Handed to the transport.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

impl<I> Stream<I> {
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

    /// What a sink said came, octets.
    pub fn confirmed(&self) -> Option<u64> {
        let text = core::str::from_utf8(&self.answer).ok()?;
        text.split_once(" bytes, ")?.0.parse().ok()
    }
}

/// Getters.
impl<T: Transport> Bulk<T> {
    /// A transfer that begins when it is first polled.
    pub fn new(plan: Plan) -> Self {
        Self {
            block: crate::peer::pattern(plan.block.max(1)),
            streams: Vec::new(),
            life: Life::NotBegun,
            began: Instant::ZERO,
            until: Instant::ZERO,
            next_sample: Instant::ZERO,
            trouble: None,
            shortage: None,
            plan,
        }
    }

    /// What it does.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its streams.
    pub fn streams(&self) -> &[Stream<T::Id>] {
        &self.streams
    }

    /// What ended it early, if something did.
    pub const fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// What kept the ports, if there was none for one of the streams.
    pub const fn shortage(&self) -> Option<PortShortage> {
        self.shortage
    }

    /// Whether octets flow, or did.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.life, Life::NotBegun | Life::Opening)
    }

    /// When all streams were open.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// How long it ran, what was omitted not counted.
    pub fn elapsed(&self) -> Duration {
        self.until.since(self.began + self.plan.omit)
    }

    /// Ends it now.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        if self.life == Life::Running {
            self.stop(net, now);
        }
        self.life = Life::Over;
        for stream in &mut self.streams {
            if let Some(id) = stream.id.take() {
                net.abort(id);
            }
        }
    }
}

impl<T: Transport> Model<T> for Bulk<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        if self.life == Life::NotBegun {
            self.open(net, now);
        }
        let mut left = budget;
        while left > 0 {
            let Some(happening) = net.poll_event() else { break };
            self.on_happening(net, happening, now);
            left -= 1;
        }
        self.on_time(net, now);
        let more = self.pump(net, now);
        (more || left == 0) && self.life != Life::Over
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.life {
            Life::NotBegun | Life::Over => None,
            Life::Opening => Some(self.began + self.plan.timeout),
            Life::Ending { since } => Some(since + self.plan.timeout),
            Life::Running => {
                let deadlines = [Some(self.next_sample), self.end_time(), self.next_token()];
                deadlines.into_iter().flatten().min()
            }
        }
    }

    fn is_done(&self) -> bool {
        self.life == Life::Over
    }
}
