//! The flight against a model that knows of each byte what became of it.

use core::ops::Range;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;

use crate::flight::{Delivered, Flight, Transmission};

/// One byte between SND.UNA and SND.NXT.
#[derive(Clone, Copy, Debug)]
struct Byte {
    first: Instant,
    /// Which first transmission it was part of, in segments of how many bytes.
    record: usize,
    mss: u16,
    again: Option<Instant>,
    ever_again: bool,
    is_sacked: bool,
    is_lost: bool,
}

/// The flight, byte by byte.
#[derive(Debug, Default)]
struct Model {
    una: u64,
    fack: u64,
    /// Below this what is named does not count.
    reneged: u64,
    /// Losses below this were forgotten at the caller's request.
    undone_end: u64,
    may_be_undone: u64,
    /// The number of first transmissions.
    records: usize,
    bytes: Vec<Byte>,
}

impl Model {
    fn end(&self) -> u64 {
        self.una + self.bytes.len() as u64
    }

    fn of(&mut self, offset: u64) -> Option<&mut Byte> {
        let place = offset.checked_sub(self.una)?;
        self.bytes.get_mut(place as usize)
    }

    fn transmit(&mut self, from: u64, to: u64, mss: u16, at: Instant) {
        let end = self.end();
        self.records += 1;
        for offset in from..to.min(end) {
            let byte = self.of(offset).unwrap();
            (byte.again, byte.ever_again, byte.is_lost) = (Some(at), true, false);
        }
        for _ in end..to {
            self.bytes.push(Byte {
                first: at,
                record: self.records,
                mss,
                again: None,
                ever_again: false,
                is_sacked: false,
                is_lost: false,
            });
        }
    }

    /// True if it was not known to have arrived.
    fn deliver(&mut self, offset: u64, heard: &mut Heard) -> bool {
        let (fack, byte) = (self.fack, *self.of(offset).unwrap());
        if byte.is_sacked {
            return false;
        }
        heard.bytes += 1;
        heard.is_reordered |= !byte.ever_again && offset + 1 < fack;
        heard.once_from = heard.once_from.or((!byte.ever_again).then_some(offset));
        let byte = self.of(offset).unwrap();
        (byte.is_sacked, byte.is_lost, byte.again) = (true, false, None);
        true
    }

    fn sack(&mut self, from: u64, to: u64, heard: &mut Heard) {
        let mut new = false;
        for offset in from.max(self.reneged)..to {
            new |= self.deliver(offset, heard);
        }
        if new {
            self.fack = self.fack.max(to);
        }
    }

    fn acknowledge(&mut self, to: u64, heard: &mut Heard) {
        for offset in self.una..to {
            if self.deliver(offset, heard) {
                self.fack = self.fack.max(offset + 1);
            }
        }
        self.bytes.drain(..(to - self.una) as usize);
        self.una = to;
    }

    /// All that was sent before `rack` and not after `limit` is lost.
    fn detect_loss(&mut self, rack: (Instant, u64), limit: Instant) {
        for place in 0..self.bytes.len() {
            let offset = self.una + place as u64;
            let byte = &mut self.bytes[place];
            let at = byte.again.unwrap_or(byte.first);
            // Each byte is as old as a segment of its own.
            let older = at < rack.0 || at == rack.0 && offset < rack.1;
            if !byte.is_sacked && older && at <= limit {
                (byte.is_lost, byte.again) = (true, None);
            }
        }
    }

    /// All of these are lost that did not arrive.
    fn lose(&mut self, range: Range<u64>) {
        for offset in range {
            let byte = self.of(offset).unwrap();
            if !byte.is_sacked {
                (byte.is_lost, byte.again) = (true, None);
            }
        }
    }

    /// The rest of each first transmission, and the size of its segments.
    fn transmissions(&self) -> Vec<(Range<u64>, u16)> {
        let mut start = self.una;
        let of_one = |one: &[Byte]| {
            let range = start..start + one.len() as u64;
            start = range.end;
            (range, one[0].mss)
        };
        self.bytes.chunk_by(|one, next| one.record == next.record).map(of_one).collect()
    }

    /// The first segment of all, and the last.
    fn outermost(&self) -> [Range<u64>; 2] {
        let all = self.transmissions();
        let Some(((first, short), (last, long))) = all.first().zip(all.last()) else {
            return [self.una..self.una, self.una..self.una];
        };
        let mut start = last.start;
        while start + u64::from(*long) < last.end {
            start += u64::from(*long);
        }
        [first.start..first.end.min(first.start + u64::from(*short)), start..last.end]
    }

    fn lose_on_timeout(&mut self, limit: Instant) {
        let [first, _] = self.outermost();
        self.lose(first);
        self.detect_loss((limit, u64::MAX), limit);
    }

    /// Marks as lost what was sent in segments of more than `most` bytes.
    fn lose_larger(&mut self, most: u16) {
        for (range, mss) in self.transmissions() {
            if (range.end - range.start).min(mss.into()) > most.into() {
                self.lose(range);
            }
        }
    }

    fn forget_sacked(&mut self) {
        let held = self.bytes.iter().rposition(|byte| byte.is_sacked);
        self.reneged = held.map_or(self.una, |last| self.una + last as u64 + 1);
        self.bytes.iter_mut().for_each(|byte| byte.is_sacked = false);
        self.fack = self.una;
    }

    fn forget_lost(&mut self) {
        self.may_be_undone = self.end();
        // Where nothing was lost there is nothing to forgive.
        if self.bytes.iter().any(|byte| byte.is_lost) {
            self.undone_end = self.end();
        }
        self.bytes.iter_mut().for_each(|byte| byte.is_lost = false);
    }

    /// All counts as unsent.
    fn forget_all(&mut self) {
        let (una, records) = (self.una, self.records);
        *self = Self { una, fack: una, reneged: una, records, ..Self::default() };
    }

    fn count(&self, holds: impl Fn(&Byte) -> bool) -> u64 {
        self.bytes.iter().filter(|byte| holds(byte)).count() as u64
    }
}

#[derive(Debug, Default, PartialEq)]
struct Heard {
    bytes: u64,
    once_from: Option<u64>,
    is_reordered: bool,
}

/// An operation on both: which, where, how much of it.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    at: u64,
    len: u64,
}

/// From 1 to 9 bytes.
const fn mss_of(at: u64) -> u16 {
    1 + (at % 9) as u16
}

/// Both of them, and the other state of recovery.
#[derive(Debug, Default)]
struct Pair {
    flight: Flight,
    model: Model,
    /// The last transmission that arrived (RFC 8985 5.3: RACK.segment).
    rack: Transmission,
}

impl Pair {
    fn step(&mut self, step: Step, now: Instant) -> Result<(), TestCaseError> {
        let Self { flight, model, .. } = self;
        let Step { what, at, len } = step;
        let from = model.una + at % (model.end() - model.una).max(1);
        let to = (from + len).min(model.end());
        let mss = mss_of(at);
        let (mut delivered, mut heard) = (Delivered::default(), Heard::default());
        match what {
            0..=3 => {
                let end = model.end();
                flight.transmit(end..end + len, mss, now);
                model.transmit(end, end + len, mss, now);
            }
            4..=5 if to > from && from > model.una => {
                flight.sack(from..to, &mut delivered);
                model.sack(from, to, &mut heard);
            }
            6 if to > model.una => {
                flight.acknowledge(to, &mut delivered);
                model.acknowledge(to, &mut heard);
            }
            7..=8 => {
                let Some(lost) = flight.lost().first() else { return Ok(()) };
                // Sometimes with what was never sent behind it.
                let beyond = if lost.end == model.end() { at % 4 } else { 0 };
                let to = (lost.end + beyond).min(lost.start + len);
                let again = to.min(model.end()) - lost.start;
                prop_assert_eq!(flight.transmit(lost.start..to, mss, now), again);
                model.transmit(lost.start, to, mss, now);
            }
            _ => self.judge(step, from..to, now),
        }
        let rack = &mut self.rack;
        *rack = (*rack).max(delivered.once.max(delivered.again).unwrap_or(*rack));
        let told = Heard {
            bytes: delivered.bytes,
            once_from: delivered.once_from,
            is_reordered: delivered.is_reordered,
        };
        prop_assert_eq!(told, heard);
        self.agree()
    }

    /// Marks `numbers`, or all, as lost or no longer lost.
    fn judge(&mut self, step: Step, numbers: Range<u64>, now: Instant) {
        let Self { flight, model, rack } = self;
        let Step { what, at, len } = step;
        let before = |ticks: u64| Instant::from_nanos(now.as_nanos().saturating_sub(ticks * TICK));
        match what {
            9 => {
                flight.detect_loss(*rack, before(len % 4));
                model.detect_loss(*rack, before(len % 4));
            }
            10 => {
                flight.lose_on_timeout(before(len % 8));
                model.lose_on_timeout(before(len % 8));
            }
            11 => {
                flight.lose_larger(mss_of(at));
                model.lose_larger(mss_of(at));
            }
            12 if !numbers.is_empty() => {
                flight.lose(numbers.clone());
                model.lose(numbers);
            }
            13 => {
                flight.forget_lost();
                model.forget_lost();
            }
            14 if at < 20 => {
                flight.forget_sacked();
                model.forget_sacked();
            }
            15 if at < 10 => {
                flight.forget_all();
                model.forget_all();
            }
            _ => {}
        }
    }

    /// Each byte is what the model says.
    fn agree(&self) -> Result<(), TestCaseError> {
        let Self { flight, model, .. } = self;
        prop_assert_eq!((flight.una(), flight.end()), (model.una, model.end()));
        prop_assert_eq!(flight.sacked().bytes(), model.count(|byte| byte.is_sacked));
        prop_assert_eq!(flight.repaired(), model.count(|byte| byte.again.is_some()));
        for (byte, offset) in model.bytes.iter().zip(model.una..) {
            prop_assert_eq!(flight.sacked().contains(offset), byte.is_sacked, "{}", offset);
            let is_lost = flight.lost().contains(offset);
            prop_assert_eq!(is_lost, byte.is_lost, "{} of {:?}", offset, flight);
        }
        let under_way = model.count(|byte| !byte.is_sacked && !byte.is_lost);
        prop_assert_eq!(u64::from(flight.pipe()), under_way);
        let undone_end = [model.undone_end, model.may_be_undone].map(|end| model.una < end);
        prop_assert!(flight.was_undone() == undone_end[0] || flight.was_undone() == undone_end[1]);
        prop_assert_eq!([flight.first_segment(), flight.last_segment()], model.outermost());
        let times = [model.bytes.first(), model.bytes.last()].map(|it| it.map(|it| it.first));
        prop_assert_eq!([flight.first_sent(), flight.last_sent()], times);
        let first_again = model.bytes.first().is_some_and(|byte| byte.again.is_some());
        prop_assert_eq!(flight.first_is_repaired(), first_again);
        prop_assert_eq!(flight.check(), Ok(()));
        Ok(())
    }
}

/// Two steps share one, as those of a burst do.
const TICK: u64 = 1_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn flight_agrees_with_model_byte_by_byte(
        steps in vec((0u8..16, 0u64..100, 1u64..40), 1..120),
    ) {
        let mut pair = Pair::default();
        for (number, (what, at, len)) in steps.into_iter().enumerate() {
            pair.step(Step { what, at, len }, Instant::from_millis(number as u64 / 2))?;
        }
    }
}
