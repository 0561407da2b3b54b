//! Pure acknowledgments in semantic mode: their number and times are policy.
//!
//! A written one that does not come is owed for a while, and later ones pay for it. One that comes
//! but is not written may be early: a later line may claim it.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_wire::tcp::TcpFlags;

use super::super::ast::{Ack, Packet, TcpPacket};
use super::super::host::ScriptHost;
use super::super::packet::{Mode, Rule, Segment};
use super::super::report::Fault;
use super::packets::{Emitted, PacketOut, Wanted, written};
use super::{Played, Run, Stop};

/// Differences accepted for now.
#[derive(Debug, Default)]
pub(super) struct Tolerances {
    owed: Vec<Debt>,
    early: Vec<Early>,
}

/// A written acknowledgment that did not come.
#[derive(Debug)]
struct Debt {
    line: u32,
    packet: Packet,
    body: TcpPacket,
    flow: usize,
    /// True if only this one will do: it repeats an earlier one as an answer, or has numbers that
    /// no later one follows from.
    is_itself: bool,
    deadline: Duration,
}

/// An acknowledgment of the host that is not written so far.
#[derive(Debug)]
struct Early {
    arrival: PacketOut,
    /// True if it repeats the last, so that a line must claim it.
    repeats: bool,
}

impl Tolerances {
    /// Time when the first debt is due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.owed.iter().map(|debt| debt.deadline).min()
    }

    pub(super) fn check_deadlines(&self, now: Duration) -> Played {
        match self.owed.iter().find(|debt| debt.deadline <= now) {
            Some(debt) => {
                let expected = alloc::format!("> {}", written(&debt.body));
                Err(Fault::new(debt.line, expected, "nothing").into())
            }
            None => Ok(()),
        }
    }
}

impl<H: ScriptHost> Run<'_, H> {
    /// Additional time difference accepted for this packet.
    pub(super) fn slack(&self, body: &TcpPacket) -> Duration {
        if self.is_lenient() && is_pure_ack(body) { SLACK } else { Duration::ZERO }
    }

    fn is_lenient(&self) -> bool {
        self.settings.mode == Mode::Semantic
    }

    /// Returns an early acknowledgment for this line, with its time.
    pub(super) fn came_early(&mut self, wanted: &Wanted<'_>, body: &TcpPacket) -> Option<Duration> {
        if !is_pure_ack(body) {
            return None;
        }
        let since = wanted.moment.from.saturating_sub(SLACK);
        let fits = |early: &Early| {
            early.arrival.at >= since && self.judge(wanted.packet, body, &early.arrival).is_ok()
        };
        let index = self.forgiven.early.iter().position(fits)?;
        self.rules.insert(Rule::EarlyAck);
        Some(self.forgiven.early.remove(index).arrival.at)
    }

    /// Notes a written acknowledgment that did not come in time. Returns true if it may come later.
    pub(super) fn owe(&mut self, wanted: &Wanted<'_>, body: &TcpPacket) -> bool {
        let (Some(flow), Some(until)) = (self.flows.current(), wanted.moment.until) else {
            return false;
        };
        let is_wrong = self.flows.at(flow).is_beyond_end(body);
        if !self.is_lenient() || !is_pure_ack(body) || is_wrong {
            return false;
        }
        let deadline = until + SLACK + self.setup.tolerance;
        let (line, packet, body) = (wanted.line, wanted.packet.clone(), body.clone());
        let is_itself = !self.may_be_outdone(&body, flow);
        self.flows.at_mut(flow).on_owed(&body);
        self.forgiven.owed.push(Debt { line, packet, body, flow, is_itself, deadline });
        true
    }

    /// True if a packet was owed. One that acknowledges more pays as well, and is still to be
    /// judged itself.
    pub(super) fn pays_debt(&mut self, arrival: &PacketOut) -> bool {
        let Emitted::Segment(index, segment) = &arrival.body else { return false };
        let exact = |debt: &Debt| self.judge(&debt.packet, &debt.body, arrival).is_ok();
        if let Some(paid) = self.forgiven.owed.iter().position(exact) {
            let debt = self.forgiven.owed.remove(paid);
            self.flows.at_mut(*index).on_sent(&debt.body, segment);
            self.rules.insert(Rule::LateAck);
            return true;
        }
        let before = self.forgiven.owed.len();
        let mut owed = core::mem::take(&mut self.forgiven.owed);
        let covered = |debt: &Debt| debt.flow == *index && self.covers(&debt.body, *index, segment);
        owed.retain(|debt| debt.is_itself || !covered(debt));
        if owed.len() < before {
            self.rules.insert(Rule::LateAck);
        }
        self.forgiven.owed = owed;
        false
    }

    /// True if a later acknowledgment may replace a written one.
    fn may_be_outdone(&self, body: &TcpPacket, index: usize) -> bool {
        let flow = self.flows.at(index);
        flow.may_be_outdone(body) && !flow.repeats(body)
    }

    /// True if a segment covers a pure acknowledgment: it acknowledges as much or more, has the
    /// same ECE bit, and names or acknowledges the same blocks.
    fn covers(&self, body: &TcpPacket, index: usize, segment: &Segment) -> bool {
        let Some(Ack::Relative(ack)) = body.ack else { return false };
        let flow = self.flows.at(index);
        let further = segment.ack.distance_from(flow.remote(ack));
        let says_more = if segment.is_pure_ack() { further > 0 } else { further >= 0 };
        let echoes = |flags: TcpFlags| flags.intersects(TcpFlags::ECE);
        segment.flags.is_ack()
            && !segment.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
            && echoes(segment.flags) == echoes(body.flags)
            && says_more
            && flow.names_as_much(body, segment)
    }

    /// True if the current packet replaces the written acknowledgment.
    pub(super) fn is_made_needless(&self, body: &TcpPacket, arrival: &PacketOut) -> bool {
        let Emitted::Segment(index, segment) = &arrival.body else { return false };
        self.is_lenient()
            && is_pure_ack(body)
            && self.flows.current() == Some(*index)
            && self.may_be_outdone(body, *index)
            && self.covers(body, *index, segment)
    }

    /// True if the current packet may be skipped.
    pub(super) fn may_skip(&self, arrival: &PacketOut) -> bool {
        let Emitted::Segment(index, segment) = &arrival.body else { return false };
        self.is_lenient() && segment.is_pure_ack() && self.flows.at(*index).is_at_end(segment)
    }

    /// Skips a pure acknowledgment.
    pub(super) fn skip(&mut self, arrival: PacketOut) {
        let repeats = !self.is_redundant(&arrival);
        if let Emitted::Segment(index, segment) = &arrival.body {
            self.flows.at_mut(*index).on_skipped(segment);
        }
        self.rules.insert(Rule::RedundantAck);
        self.forgiven.early.push(Early { arrival, repeats });
    }

    /// True if a packet is a pure acknowledgment of new data, or of a new window: a host may send
    /// any number of those. One that repeats the last is an answer.
    pub(super) fn is_redundant(&self, arrival: &PacketOut) -> bool {
        let Emitted::Segment(index, segment) = &arrival.body else { return false };
        self.may_skip(arrival) && self.flows.at(*index).is_news(segment)
    }

    /// Removes early acknowledgments that no line can claim any more; one that repeated another is
    /// an error.
    pub(super) fn forget_early(&mut self, now: Duration) -> Played {
        let over = |early: &Early| now.saturating_sub(SLACK) > early.arrival.at;
        if let Some(early) = self.forgiven.early.iter().find(|it| over(it) && it.repeats) {
            let came = early.arrival.text(&self.flows);
            return Err(Stop::from(Fault::new(
                self.line,
                "no acknowledgment that repeats the last",
                came,
            )));
        }
        self.forgiven.early.retain(|early| !over(early));
        Ok(())
    }
}

/// True if the written segment only acknowledges.
pub(super) fn is_pure_ack(body: &TcpPacket) -> bool {
    let ecn = TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE;
    body.len == 0 && body.flags.without(ecn) == TcpFlags::ACK
}

/// Time difference accepted for a pure acknowledgment.
const SLACK: Duration = Duration::from_millis(200);
