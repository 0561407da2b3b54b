//! Duplicate acknowledgments, by RFC 3042, 5681 and 6582.

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;
use whimbrel_wire::SeqNum;

use super::{Flight, Recovery, RecoveryAction};
use crate::cc::{Ack, Algorithm, CongestionControl, Control, Window};

const MSS: u32 = 1_000;
/// The stream begins shortly before the wrap.
const ISS: SeqNum = SeqNum::new(u32::MAX - 3_000);

/// A sender of full segments.
struct Sender {
    recovery: Recovery,
    window: Window,
    algorithm: Algorithm,
    una: SeqNum,
    max: SeqNum,
}

impl Sender {
    /// So many segments are in flight.
    fn with(segments: u32) -> Self {
        let una = ISS + 1;
        Self {
            recovery: Recovery::new(ISS),
            window: Window::new(MSS),
            algorithm: Algorithm::default(),
            una,
            max: una + segments * MSS,
        }
    }

    fn flight(&self) -> Flight {
        Flight { octets: self.max.offset_from(self.una), max: self.max, mss: MSS }
    }

    fn duplicate(&mut self) -> RecoveryAction {
        let flight = self.flight();
        self.recovery.on_duplicate(
            &mut control(&mut self.window, &mut self.algorithm),
            self.una,
            flight,
        )
    }

    fn sacked(&mut self, octets: u32) -> RecoveryAction {
        let flight = self.flight();
        self.recovery.on_sacked(
            &mut control(&mut self.window, &mut self.algorithm),
            self.una,
            octets,
            flight,
        )
    }

    fn acknowledge(&mut self, octets: u32) -> RecoveryAction {
        self.una += octets;
        let ack = Ack {
            now: Instant::ZERO,
            delivered: octets,
            in_flight: self.flight().octets,
            rtt: None,
            rate: None,
            app_limited: false,
            phase: self.recovery.phase(),
            mss: MSS,
        };
        self.algorithm.on_ack(&mut self.window, &ack);
        let flight = self.flight();
        self.recovery.on_new_ack(
            &mut control(&mut self.window, &mut self.algorithm),
            self.una,
            flight,
        )
    }

    fn time_out(&mut self, attempt: u8) {
        let flight = self.flight();
        self.recovery.on_timeout(
            Some(control(&mut self.window, &mut self.algorithm)),
            attempt,
            flight,
        );
    }

    fn extra(&self) -> u32 {
        self.recovery.limited_transmit(MSS)
    }
}

fn control<'a>(window: &'a mut Window, algorithm: &'a mut Algorithm) -> Control<'a> {
    Control { window, algorithm }
}

#[test]
fn the_first_two_duplicates_send_new_segments_the_third_the_lost_one() {
    let mut sender = Sender::with(10);
    assert_eq!((sender.duplicate(), sender.extra()), (RecoveryAction::Wait, MSS));
    assert_eq!((sender.duplicate(), sender.extra()), (RecoveryAction::Wait, 2 * MSS));
    assert_eq!((sender.duplicate(), sender.extra()), (RecoveryAction::Retransmit, 0));
    assert_eq!((sender.window.ssthresh, sender.window.cwnd), (5 * MSS, 8 * MSS));
    assert_eq!(sender.duplicate(), RecoveryAction::Wait);
    assert_eq!(sender.window.cwnd, 9 * MSS, "each further one inflates the window");
}

#[test]
fn new_data_between_duplicates_begins_the_count_again() {
    let mut sender = Sender::with(10);
    for _ in 0..5 {
        assert_eq!(
            (sender.duplicate(), sender.duplicate()),
            (RecoveryAction::Wait, RecoveryAction::Wait)
        );
        assert_eq!((sender.acknowledge(MSS), sender.extra()), (RecoveryAction::Wait, 0));
    }
}

#[test]
fn a_partial_acknowledgment_sends_the_next_hole_at_once_and_a_full_one_ends_it() {
    let mut sender = Sender::with(10);
    for _ in 0..3 {
        let _ = sender.duplicate();
    }
    assert_eq!(sender.acknowledge(4 * MSS), RecoveryAction::Retransmit);
    assert_eq!(sender.window.cwnd, 5 * MSS, "8 - 4 + 1");
    assert_eq!(sender.acknowledge(MSS / 2), RecoveryAction::Retransmit);
    assert_eq!(sender.window.cwnd, 4_500, "less than a segment adds none back");
    assert_eq!(sender.acknowledge(5_500), RecoveryAction::Wait);
    assert_eq!(sender.window.cwnd, 2 * MSS, "max (FlightSize, SMSS) + SMSS, below ssthresh");
}

#[test]
fn duplicates_of_the_window_that_was_recovered_begin_nothing() {
    let mut sender = Sender::with(10);
    for _ in 0..3 {
        let _ = sender.duplicate();
    }
    sender.max += 5 * MSS;
    assert_eq!(sender.acknowledge(10 * MSS), RecoveryAction::Wait);
    for _ in 0..5 {
        assert_eq!(
            sender.duplicate(),
            RecoveryAction::Wait,
            "SEG.ACK does not cover more than recover"
        );
    }
    assert_eq!(sender.acknowledge(MSS), RecoveryAction::Wait);
    let remedies = [sender.duplicate(), sender.duplicate(), sender.duplicate()];
    assert_eq!(remedies, [RecoveryAction::Wait, RecoveryAction::Wait, RecoveryAction::Retransmit]);
}

#[test]
fn after_a_timeout_duplicates_wait_until_all_that_was_sent_is_acknowledged() {
    let mut sender = Sender::with(10);
    sender.time_out(1);
    assert_eq!((sender.window.cwnd, sender.window.ssthresh), (MSS, 5 * MSS));
    sender.time_out(2);
    assert_eq!(sender.window.ssthresh, 5 * MSS, "what was sent by RTO before halves nothing again");
    for _ in 0..4 {
        assert_eq!((sender.duplicate(), sender.extra()), (RecoveryAction::Wait, 0));
    }
    let _ = sender.acknowledge(5 * MSS);
    assert_eq!(sender.window.cwnd, 2 * MSS, "one segment an acknowledgment");
    let _ = sender.acknowledge(5 * MSS);
    sender.max += 10 * MSS;
    let _ = sender.acknowledge(MSS);
    let remedies = [sender.duplicate(), sender.duplicate(), sender.duplicate()];
    assert_eq!(remedies, [RecoveryAction::Wait, RecoveryAction::Wait, RecoveryAction::Retransmit]);
}

#[test]
fn more_than_two_segments_held_beyond_a_hole_tell_of_a_loss_at_once() {
    let mut sender = Sender::with(10);
    assert_eq!(sender.sacked(2 * MSS), RecoveryAction::Wait);
    assert_eq!(sender.sacked(2 * MSS + 1), RecoveryAction::Retransmit);
    assert_eq!((sender.window.ssthresh, sender.window.cwnd), (5 * MSS, 8 * MSS));
    assert_eq!(sender.sacked(9 * MSS), RecoveryAction::Wait, "once");
    sender.max += 5 * MSS;
    assert_eq!(sender.acknowledge(10 * MSS), RecoveryAction::Wait);
    assert_eq!(sender.sacked(4 * MSS), RecoveryAction::Retransmit, "the next window");
    sender.time_out(1);
    assert_eq!(
        sender.sacked(4 * MSS),
        RecoveryAction::Wait,
        "what was out then is sent again anyway"
    );
}

#[test]
fn a_loss_after_gigabytes_without_one_is_mended_as_fast_as_the_first() {
    let mut sender = Sender::with(10);
    for _ in 0..6 {
        sender.max = sender.una + (1 << 30);
        let _ = sender.acknowledge(1 << 30);
        sender.max += 10 * MSS;
        let remedies = [sender.duplicate(), sender.duplicate()];
        assert_eq!(remedies, [RecoveryAction::Wait, RecoveryAction::Wait]);
        let _ = sender.acknowledge(10 * MSS);
    }
    sender.max += 10 * MSS;
    let remedies = [sender.duplicate(), sender.duplicate(), sender.duplicate()];
    assert_eq!(remedies, [RecoveryAction::Wait, RecoveryAction::Wait, RecoveryAction::Retransmit]);
}

proptest! {
    #[test]
    fn whatever_is_acknowledged_the_window_keeps_a_segment(
        steps in vec((0u8..=10, 1u32..=20_000, 0u32..=30_000), 1..300),
    ) {
        let mut sender = Sender::with(10);
        for (what, octets, more) in steps {
            sender.max += more;
            let flight = sender.flight().octets;
            match what {
                0 if flight > 0 => sender.time_out(octets as u8),
                1..=5 if flight > 0 => {
                    let _ = sender.acknowledge(octets.min(flight));
                }
                _ => {
                    let _ = sender.duplicate();
                }
            }
            prop_assert!(sender.window.cwnd >= MSS && sender.window.ssthresh >= 2 * MSS);
            prop_assert!(sender.extra() <= 2 * MSS);
        }
    }
}
