//! Probes of the path MTU: twice as large as other segments, and three of those behind them.

use std::vec::Vec;

use super::sender::{Ack, Sender, bytes};
use super::{MSS, none};
use crate::cc::Phase;
use crate::recovery::MtuProbeOutcome;

/// Four segments are in flight, then a probe of two, then three segments.
fn probing() -> Sender {
    let mut sender = Sender::with(4).and_more(5);
    sender.window.cwnd = 20 * MSS;
    let range = bytes(&(4..6));
    sender.flight.transmit(range.clone(), 2 * MSS as u16, sender.now);
    sender.recovery.on_mtu_probe_sent(range);
    for segment in 6..9 {
        sender.transmit(segment);
    }
    sender.pass(100);
    sender
}

fn outcome(sender: &mut Sender) -> Option<MtuProbeOutcome> {
    sender.recovery.take_mtu_probe_outcome(&sender.flight)
}

#[test]
fn acknowledged_probe_has_arrived_and_leaves_nothing_behind() {
    let mut sender = probing();
    assert_eq!(sender.hear(Ack::to(4)), none());
    assert_eq!(outcome(&mut sender), None);
    assert!(sender.recovery.has_mtu_probe_out());
    assert_eq!(sender.hear(Ack::to(6)), none());
    assert!(!sender.recovery.has_mtu_probe_out());
    assert_eq!(outcome(&mut sender), Some(MtuProbeOutcome::Arrived));
    assert_eq!(outcome(&mut sender), None);
    assert!(sender.recovery.is_none());
}

#[test]
fn loss_of_a_probe_alone_goes_again_without_congestion() {
    for sack in [true, false] {
        let mut sender = Sender { sack, ..probing() };
        sender.text_end = sender.flight.end();
        let _ = sender.hear(Ack::to(4));
        let (cwnd, ssthresh) = (sender.window.cwnd, sender.window.ssthresh);
        let mut sent = Vec::new();
        for segment in 6..9 {
            sent.extend(sender.hear(match sack {
                true => Ack::naming(6..segment + 1),
                false => Ack::default(),
            }));
        }
        assert_eq!(sent, [4, 5], "{sack}");
        assert_eq!(outcome(&mut sender), Some(MtuProbeOutcome::Lost), "{sack}");
        assert_eq!(sender.recovery.phase(), Phase::Open);
        assert_eq!(sender.count(|found| found.sack_recovery || found.reno_recovery), 0);
        assert_eq!((sender.window.cwnd, sender.window.ssthresh), (cwnd, ssthresh));
        assert_eq!(sender.hear(Ack::to(9)), none());
        assert!(sender.flight.is_empty() && sender.window.ssthresh == ssthresh);
    }
}

#[test]
fn loss_of_a_probe_is_judged_by_the_reordering_timer_too() {
    let mut sender = Sender { reorders: true, ..probing() };
    let _ = sender.hear(Ack::to(4));
    let cwnd = sender.window.cwnd;
    assert_eq!(sender.hear(Ack::naming(6..9)), none());
    assert_eq!(sender.detect_loss(), [4, 5]);
    assert_eq!(outcome(&mut sender), Some(MtuProbeOutcome::Lost));
    assert_eq!((sender.recovery.phase(), sender.window.cwnd), (Phase::Open, cwnd));
}

#[test]
fn loss_of_other_segments_besides_is_congestion() {
    for (first, block) in [(3, 6..9), (4, 7..10)] {
        let mut sender = probing().and_more(2);
        sender.transmit(9);
        sender.transmit(10);
        sender.pass(100);
        let _ = sender.hear(Ack::to(first));
        let _ = sender.hear(Ack::naming(block));
        assert_eq!(outcome(&mut sender), Some(MtuProbeOutcome::Inconclusive), "{first}");
        assert_eq!(sender.recovery.phase(), Phase::FastRecovery);
        assert!(sender.window.ssthresh < u32::MAX);
    }
}

#[test]
fn timeout_says_whether_the_probe_was_first() {
    for (to, said) in [(4, MtuProbeOutcome::TimedOut), (3, MtuProbeOutcome::Inconclusive)] {
        let mut sender = probing();
        let _ = sender.hear(Ack::to(to));
        let _ = sender.time_out(1);
        assert_eq!(outcome(&mut sender), Some(said));
        assert_eq!(sender.recovery.phase(), Phase::AfterTimeout);
    }
}

#[test]
fn report_of_a_lesser_path_leaves_a_probe_undecided() {
    let mut sender = probing();
    let _ = sender.hear(Ack::to(4));
    sender.recovery.on_path_mtu(&mut sender.flight, MSS as u16);
    assert_eq!(sender.flight.lost().first(), Some(bytes(&(4..6))));
    assert_eq!(outcome(&mut sender), Some(MtuProbeOutcome::Inconclusive));
}
