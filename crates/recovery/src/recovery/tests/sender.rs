//! A sender with a flight, and acknowledgments for it, in segments.

use core::ops::Range;
use core::time::Duration;
use std::vec::Vec;

use whimbrel_base::{Instant, Micros};

use super::{MSS, TRIP};
use crate::cc::{Algorithm, Algorithms, CcState, Control, MakeAlgorithm, Sent, SlowStart, Window};
use crate::flight::{Delivered, Flight};
use crate::recovery::state::Frto;
use crate::recovery::{Acked, CaState, Path, Reaction, Recovery, RecoveryEvents};

/// A sender that has more to send than it may.
pub(super) struct Sender {
    pub(super) recovery: Recovery,
    pub(super) flight: Flight,
    pub(super) window: Window,
    pub(super) cc: CcState,
    pub(super) events: Vec<RecoveryEvents>,
    pub(super) now: Instant,
    pub(super) sack: bool,
    pub(super) reorders: bool,
    /// Text beyond this is not there.
    pub(super) text_end: u64,
}

/// An acknowledgment, in segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Ack {
    pub(super) to: Option<u64>,
    pub(super) block: Option<Range<u64>>,
    pub(super) duplicate: Option<u64>,
    pub(super) echoed: Option<Instant>,
}

impl Ack {
    pub(super) fn to(segment: u64) -> Self {
        Self { to: Some(segment), ..Self::default() }
    }

    pub(super) fn naming(block: Range<u64>) -> Self {
        Self { block: Some(block), ..Self::default() }
    }

    /// Adds a report that this segment arrived twice.
    pub(super) fn twice(self, segment: u64) -> Self {
        Self { duplicate: Some(segment), ..self }
    }

    pub(super) fn echoing(self, sent: Instant) -> Self {
        Self { echoed: Some(sent), ..self }
    }
}

pub(super) fn bytes(segments: &Range<u64>) -> Range<u64> {
    segments.start * u64::from(MSS)..segments.end * u64::from(MSS)
}

impl Sender {
    /// So many segments are in flight, as many as may be, and no more is there to send.
    pub(super) fn with(segments: u32) -> Self {
        let mut sender = Self {
            recovery: Recovery::default(),
            flight: Flight::default(),
            window: Window::new(Algorithm::RENO, MSS),
            cc: CcState::default(),
            events: Vec::new(),
            now: Instant::from_millis(1_000),
            sack: true,
            reorders: false,
            text_end: u64::from(segments) * u64::from(MSS),
        };
        sender.window.cwnd = segments * MSS;
        assert_eq!(sender.send(), (0..u64::from(segments)).collect::<Vec<_>>());
        sender.pass(100);
        sender
    }

    /// So many segments are in flight, and the algorithm hears all.
    pub(super) fn with_algorithm(segments: u32, make: MakeAlgorithm) -> Self {
        let mut sender = Self::with(segments);
        let mut algorithms = Algorithms::default();
        let algorithm = algorithms.add("another", make).expect("there is room");
        sender.window.set_algorithm(algorithm);
        sender.control().prepare(&algorithms, MSS);
        sender
    }

    fn control(&mut self) -> Control<'_> {
        Control { window: &mut self.window, state: &mut self.cc }
    }

    pub(super) fn without_sack(segments: u32) -> Self {
        Self { sack: false, ..Self::with(segments) }
    }

    /// There is so much more to send.
    pub(super) fn and_more(mut self, segments: u64) -> Self {
        self.text_end += segments * u64::from(MSS);
        self
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    pub(super) fn path(&self) -> Path {
        let min_rtt = Some(Micros::from(TRIP));
        Path {
            now: self.now,
            sack: self.sack,
            mss: MSS,
            srtt: Some(TRIP),
            min_rtt,
            reorders: self.reorders,
        }
    }

    pub(super) fn count(&self, what: impl Fn(&RecoveryEvents) -> bool) -> usize {
        self.events.iter().filter(|found| what(found)).count()
    }

    pub(super) fn pipe(&self) -> u32 {
        self.recovery.pipe(&self.flight)
    }

    pub(super) fn transmit(&mut self, segment: u64) {
        let range = bytes(&(segment..segment + 1));
        let again = self.flight.transmit(range, MSS as u16, self.now);
        self.recovery.on_sent(MSS, again, self.now);
        let in_flight = self.flight.pipe();
        let sent = Sent { now: self.now, bytes: MSS, in_flight, mss: MSS };
        self.control().on_sent(&sent);
    }

    /// Sends what the window admits, in segments, what is lost first.
    pub(super) fn send(&mut self) -> Vec<u64> {
        let mut sent = Vec::new();
        while self.pipe() + MSS <= self.window.cwnd {
            let lost = self.flight.lost().first().filter(|_| !self.recovery.prefers_new());
            let new = Some(self.flight.end()).filter(|end| *end < self.text_end);
            let Some(from) = lost.map(|lost| lost.start).or(new) else { break };
            sent.push(from / u64::from(MSS));
            self.transmit(from / u64::from(MSS));
        }
        sent
    }

    /// An acknowledgment arrives; what leaves then.
    pub(super) fn hear(&mut self, ack: Ack) -> Vec<u64> {
        let mut delivered = Delivered::default();
        let una = self.flight.una();
        let to = ack.to.map_or(una, |to| to * u64::from(MSS));
        if to > una {
            self.flight.acknowledge(to, &mut delivered);
        }
        if let Some(block) = &ack.block {
            self.flight.sack(bytes(block), &mut delivered);
        }
        self.reorders |= delivered.is_reordered;
        let names = ack.block.is_some() || ack.duplicate.is_some();
        let acked = Acked {
            advances: to > una,
            text: (to - una) as u32,
            delivered,
            duplicate: ack.duplicate.map(|segment| ((segment + 1) * u64::from(MSS), MSS)),
            is_duplicate: to == una && !names,
            echoed: ack.echoed,
            rtt: None,
            can_send_new: self.flight.end() < self.text_end,
            path: self.path(),
            slow_start: SlowStart::default(),
        };
        let mut control = Control { window: &mut self.window, state: &mut self.cc };
        let (reaction, events) = self.recovery.on_ack(&mut self.flight, &mut control, &acked);
        self.events.push(events);
        self.reorders |= reaction == Reaction::LossUndone;
        let mut sent = Vec::new();
        if reaction == Reaction::Repair {
            let first = self.flight.lost().first().expect("something is lost").start;
            sent.push(first / u64::from(MSS));
            self.transmit(first / u64::from(MSS));
        }
        sent.extend(self.send());
        sent
    }

    /// The reordering timer runs out.
    pub(super) fn detect_loss(&mut self) -> Vec<u64> {
        self.now = self.recovery.reordering_due().expect("something is to be judged");
        let path = self.path();
        let mut control = Control { window: &mut self.window, state: &mut self.cc };
        let events = self.recovery.on_reordering_timeout(&mut self.flight, &mut control, &path);
        self.events.push(events);
        self.send()
    }

    /// The retransmission timer runs out; its segment goes whatever the window says.
    pub(super) fn time_out(&mut self, attempt: u8) -> Vec<u64> {
        self.pass(100);
        let path = self.path();
        let mut control = Control { window: &mut self.window, state: &mut self.cc };
        self.recovery.on_timeout(&mut self.flight, &mut control, &path, attempt);
        let first = self.flight.lost().first().expect("something is lost").start / u64::from(MSS);
        self.transmit(first);
        let mut sent = Vec::from([first]);
        sent.extend(self.send());
        sent
    }

    /// The probe's timer runs out; returns whether it may leave.
    pub(super) fn probe(&mut self) -> bool {
        if !self.recovery.may_probe(&self.flight) {
            return false;
        }
        let is_old = self.flight.end() >= self.text_end;
        let next = self.flight.end() / u64::from(MSS);
        self.transmit(if is_old { next - 1 } else { next });
        self.recovery.on_probe_sent(self.flight.end(), is_old);
        true
    }

    pub(super) fn frto(&self) -> Option<Frto> {
        self.recovery.0.as_ref()?.frto
    }

    pub(super) fn state(&self) -> CaState {
        self.recovery.ca_state(&self.flight)
    }
}
