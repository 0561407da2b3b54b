//! Both ends of the flows over a path.

use std::iter;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::{Event, Handle, Recv, Shard};
use whimbrel_tcp::conn::{Snapshot, SocketOptions};
use whimbrel_wire::Family;

use super::{FlowReport, PathPlan};
use crate::host::Application;
use crate::pair::server_at;

/// Application at one end of all flows.
#[derive(Debug)]
pub(super) enum PathApplication {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

/// Sends on each flow.
#[derive(Debug)]
pub(super) struct Sender {
    bytes: Option<u64>,
    has_fin: bool,
    marks: Vec<Instant>,
    flows: Vec<Flow>,
    block: Bytes,
    failure: Option<String>,
}

#[derive(Debug)]
struct Flow {
    starts: Instant,
    options: SocketOptions,
    handle: Option<Handle>,
    /// Bytes passed to the stack so far.
    given: u64,
    report: FlowReport,
}

/// The application at the receiving end, which reads all data.
#[derive(Debug)]
pub(super) struct Receiver {
    options: SocketOptions,
    is_listening: bool,
    failure: Option<String>,
}

impl PathApplication {
    pub(super) fn sender(plan: &PathPlan) -> Self {
        let at = |time: &Duration| Instant::ZERO + *time;
        let own = plan.options[0].congestion_control;
        let algorithms = plan.algorithms.iter().map(|it| Some((*it).into()));
        let flow = |(start, congestion_control)| Flow {
            starts: at(start),
            options: SocketOptions { congestion_control, ..plan.options[0] },
            handle: None,
            given: 0,
            report: FlowReport::default(),
        };
        Self::Sender(Box::new(Sender {
            bytes: plan.bytes,
            has_fin: plan.has_fin,
            marks: plan.marks.iter().map(at).collect(),
            flows: plan.starts.iter().zip(algorithms.chain(iter::repeat(own))).map(flow).collect(),
            block: Bytes::from_static(&[0; BLOCK]),
            failure: None,
        }))
    }

    pub(super) fn receiver(plan: &PathPlan) -> Self {
        Self::Receiver(Receiver { options: plan.options[1], is_listening: false, failure: None })
    }

    /// True if all data is acknowledged.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Sender(sender) => sender.flows.iter().all(|flow| flow.report.completed.is_some()),
            Self::Receiver(_) => true,
        }
    }

    /// Snapshot of the first flow, once it has begun.
    pub(super) fn first(&self, shard: &Shard) -> Option<Snapshot> {
        let Self::Sender(sender) = self else { return None };
        shard.snapshot(sender.flows.first()?.handle?)
    }

    /// Results of each flow.
    pub(super) fn reports(&self, shard: &Shard) -> Vec<FlowReport> {
        let Self::Sender(sender) = self else { return Vec::new() };
        let report = |flow: &Flow| {
            let snapshot = flow.handle.and_then(|handle| shard.snapshot(handle));
            FlowReport { snapshot: snapshot.map(Box::new), ..flow.report.clone() }
        };
        sender.flows.iter().map(report).collect()
    }
}

impl Application for PathApplication {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        match self {
            Self::Sender(sender) => sender.on_wake(shard, now),
            Self::Receiver(receiver) => receiver.on_wake(shard),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Sender(sender) => sender.next_deadline(),
            Self::Receiver(_) => None,
        }
    }

    fn failure(&self) -> Option<String> {
        match self {
            Self::Sender(sender) => sender.failure.clone(),
            Self::Receiver(receiver) => receiver.failure.clone(),
        }
    }
}

impl Sender {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        self.note(shard, now);
        for flow in self.flows.iter_mut().filter(|flow| flow.handle.is_none() && flow.starts <= now)
        {
            match shard.connect_with(server_at(Family::V4, PORT), None, &flow.options) {
                Ok(handle) => flow.handle = Some(handle),
                Err(error) => self.failure = Some(error.to_string()),
            }
        }
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Connected(handle) => {
                    self.note_opened(handle, now);
                    self.feed(shard, handle);
                }
                Event::Writable(handle) => self.feed(shard, handle),
                Event::Closed(_, reason) => {
                    self.failure = Some(format!("a flow ended early: {reason:?}"));
                }
                _ => {}
            }
        }
        self.complete(shard, now);
    }

    /// Notes the acknowledged bytes of each flow at a mark.
    fn note(&mut self, shard: &Shard, now: Instant) {
        while self.marks.first().is_some_and(|mark| *mark <= now) {
            self.marks.remove(0);
            for flow in &mut self.flows {
                let snapshot = flow.handle.and_then(|handle| shard.snapshot(handle));
                flow.report.acked.push(snapshot.map_or(0, |it| it.tally.bytes_acked));
            }
        }
    }

    fn note_opened(&mut self, handle: Handle, now: Instant) {
        for flow in self.flows.iter_mut().filter(|flow| flow.handle == Some(handle)) {
            flow.report.opened = Some(now.since(Instant::ZERO));
        }
    }

    fn feed(&mut self, shard: &mut Shard, handle: Handle) {
        let flow = self.flows.iter_mut().find(|flow| flow.handle == Some(handle));
        let Some(flow) = flow else { return };
        loop {
            let left = self.bytes.map_or(u64::MAX, |bytes| bytes - flow.given);
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.block.len());
            let mut piece = self.block.slice(..most);
            let taken = match shard.send(handle, &mut piece) {
                Ok(taken) if taken > 0 => taken,
                Ok(_) => return,
                Err(error) => return self.failure = Some(error.to_string()),
            };
            flow.given += taken as u64;
            if Some(flow.given) == self.bytes {
                if self.has_fin {
                    shard.shutdown(handle);
                }
                return;
            }
            if !piece.is_empty() {
                return;
            }
        }
    }

    /// A flow is over when all its bytes are acknowledged; the receiver does not close.
    fn complete(&mut self, shard: &Shard, now: Instant) {
        let Some(bytes) = self.bytes else { return };
        for flow in self.flows.iter_mut().filter(|flow| flow.report.completed.is_none()) {
            let snapshot = flow.handle.and_then(|handle| shard.snapshot(handle));
            if snapshot.is_some_and(|it| it.tally.bytes_acked >= bytes) {
                flow.report.completed = Some(now.since(Instant::ZERO));
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let starts = self.flows.iter().filter(|flow| flow.handle.is_none()).map(|it| it.starts);
        starts.chain(self.marks.first().copied()).min()
    }
}

impl Receiver {
    fn on_wake(&mut self, shard: &mut Shard) {
        if !self.is_listening {
            self.is_listening = true;
            match shard.listen(server_at(Family::V4, PORT), BACKLOG) {
                Ok(listener) => {
                    shard.set_listener_options(listener, &self.options);
                }
                Err(error) => self.failure = Some(error.to_string()),
            }
        }
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Accepted(listener) => {
                    while let Some(handle) = shard.accept(listener) {
                        Self::drain(shard, handle);
                    }
                }
                Event::Readable(handle) => Self::drain(shard, handle),
                _ => {}
            }
        }
    }

    fn drain(shard: &mut Shard, handle: Handle) {
        while let Recv::Data(_) = shard.recv(handle) {}
    }
}

const PORT: u16 = 5_201;
const BACKLOG: u32 = 64;
/// Bytes per write.
const BLOCK: usize = 1 << 16;
