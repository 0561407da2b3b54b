//! The transfer as a job of a driver.

use std::time::Duration;

use whimbrel_apps::bulk::{self, Bulk, Direction, Peer, Sample, StopCondition, bitrate};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::record::per_second;
use whimbrel_apps::{Model, Part, Transport, iperf3_server};
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use super::{BulkPlan, Outcome, StreamOutcome, json};
use crate::drive::{Job, Watch};
use crate::options::ScreenOptions;
use crate::progress::{self, Progress};
use crate::report::Reporter;
use crate::size;

/// A transfer, and the receiver of its reports.
pub(super) struct BulkJob<'p> {
    plan: &'p BulkPlan,
    report: &'p mut Reporter,
    progress: Progress,
    /// Number of reported intervals.
    told: usize,
}

/// Progress of one client's streams.
pub(super) struct BulkProgress {
    /// The samples of each, and what it moved.
    streams: Vec<(Vec<Sample>, u64)>,
    /// Time since the streams began to flow; none while they do not.
    elapsed: Option<Duration>,
}

impl<'p> BulkJob<'p> {
    pub(super) fn new(plan: &'p BulkPlan, report: &'p mut Reporter, screen: ScreenOptions) -> Self {
        let steps = match plan.bulk.until {
            StopCondition::Elapsed(time) => progress::steps(time + plan.bulk.omit),
            StopCondition::Bytes(count) => count.saturating_mul(plan.bulk.streams.into()),
            StopCondition::Told => 0,
        };
        let progress = report.progress(steps, screen);
        Self { plan, report, progress, told: 0 }
    }

    /// Reports the intervals before this number, of the streams that have them.
    fn tell<'s>(
        &mut self,
        streams: impl Iterator<Item = &'s [Sample]> + Clone,
        known: Option<usize>,
    ) {
        let known = known.unwrap_or(0);
        for place in self.told..known {
            let samples = streams.clone().filter_map(|samples| samples.get(place));
            self.report.interval(|| json::interval(samples));
        }
        self.told = self.told.max(known);
    }
}

/// The server in this process.
pub(super) enum LocalServer<T: Transport> {
    Plain(Box<PeerServer<T>>),
    Iperf3(Box<iperf3_server::Server<T>>),
}

impl<T: Transport> Model<T> for LocalServer<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        match self {
            Self::Plain(server) => server.poll(net, now, budget),
            Self::Iperf3(server) => server.poll(net, now, budget),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Plain(server) => Model::<T>::next_deadline(server.as_ref()),
            Self::Iperf3(server) => Model::<T>::next_deadline(server.as_ref()),
        }
    }
}

impl Job for BulkJob<'_> {
    type Client<T: Transport> = Bulk<T>;
    type Server<T: Transport> = LocalServer<T>;
    type Progress = BulkProgress;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint, part: Part) -> Bulk<T> {
        Bulk::new(bulk::TransferPlan { target, ..self.plan.bulk.part(part) })
    }

    fn server<T: Transport>(&self) -> LocalServer<T> {
        if let Peer::Iperf3(terms) = &self.plan.bulk.peer {
            return LocalServer::Iperf3(Box::new(iperf3_server::Server::new(
                iperf3_server::Settings {
                    timeout: self.plan.bulk.timeout,
                    idle: super::IDLE,
                    congestion: terms.congestion.clone(),
                    effort: self.plan.bulk.effort,
                    documents: false,
                },
            )));
        }
        let role = match self.plan.bulk.direction {
            Direction::Send => Role::Sink,
            Direction::Receive | Direction::Both => Role::Chargen,
        };
        LocalServer::Plain(Box::new(PeerServer::new(role, CloseMode::Second)))
    }

    fn is_followed(&self) -> bool {
        self.progress.is_shown() || self.report.is_followed()
    }

    fn measures_waits(&self) -> Option<Duration> {
        Some(self.plan.bulk.omit)
    }

    fn progress<T: Transport>(client: &Bulk<T>, _: Option<&T>, now: Instant) -> BulkProgress {
        let stream = |stream: &bulk::Stream<T::Id>| {
            let moved = stream.given().max(stream.totals().received);
            (stream.samples().to_vec(), moved)
        };
        BulkProgress {
            streams: client.streams().iter().map(stream).collect(),
            elapsed: client.has_begun().then(|| now.since(client.began())),
        }
    }

    fn watch(&mut self, progress: &[BulkProgress]) -> Watch {
        // All streams flow, or no interval is common to all yet.
        let begun = progress.iter().map(|client| client.elapsed);
        let Some(elapsed) = begun.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().min())
        else {
            return Watch::GoOn;
        };
        let streams = || progress.iter().flat_map(|client| &client.streams);
        let samples = || streams().map(|(samples, _)| samples.as_slice());
        // Those that are over for every stream.
        self.tell(samples(), samples().map(<[_]>::len).min());
        let bytes = streams().map(|(_, moved)| moved).sum();
        let done = match self.plan.bulk.until {
            StopCondition::Elapsed(_) => progress::steps(elapsed),
            StopCondition::Bytes(_) | StopCondition::Told => bytes,
        };
        self.progress.show(done, || {
            let rate = per_second(bytes * 8, elapsed);
            format!("{}  {}", size::display(bytes), bitrate(rate))
        });
        Watch::GoOn
    }

    fn end<T: Transport>(mut client: Bulk<T>, net: &mut T, now: Instant) -> Outcome {
        if !client.is_done() {
            client.end(net, now);
        }
        let of_streams = || {
            let last =
                |stream: &bulk::Stream<T::Id>| stream.samples().last()?.sender_stats?.retransmits;
            client.streams().iter().map(last).sum()
        };
        let stream = |stream: &bulk::Stream<T::Id>| StreamOutcome {
            direction: stream.direction(),
            given: stream.given(),
            theirs: stream.theirs().copied(),
            local: stream.local(),
            samples: stream.samples().to_vec(),
            counted: stream.counted(),
            totals: stream.totals(),
            shares: *stream.shares(),
            confirmed: stream.confirmed(),
            confirmed_after: client.confirmed_after(stream),
        };
        Outcome {
            streams: client.streams().iter().map(stream).collect(),
            only_receives: client.plan().direction == Direction::Receive,
            elapsed: client.elapsed(),
            conn_error: client.conn_error(),
            fault: client.fault(),
            theirs: client.theirs().cloned(),
            effort: client.effort(),
            shortage: client.shortage(),
            target: client.plan().target,
            unreached: client.unreached().to_vec(),
            retransmits: net.retransmits().or_else(of_streams),
        }
    }

    fn conclude(&mut self, parts: Vec<Outcome>) -> Option<Outcome> {
        let sum = |mut sum: Outcome, part: Outcome| {
            sum.streams.extend(part.streams);
            sum.elapsed = sum.elapsed.max(part.elapsed);
            sum.conn_error = sum.conn_error.or(part.conn_error);
            // Each has the time of the whole process.
            sum.effort = sum.effort.max(part.effort);
            sum.shortage = sum.shortage.or(part.shortage);
            sum.retransmits = sum.retransmits.zip(part.retransmits).map(|(one, other)| one + other);
            sum
        };
        let outcome = parts.into_iter().reduce(sum)?;
        let samples = || outcome.streams.iter().map(|stream| stream.samples.as_slice());
        self.tell(samples(), samples().map(<[_]>::len).max());
        self.progress.finish();
        Some(outcome)
    }
}
