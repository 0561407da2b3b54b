//! Marks of the network (RFC 3168), which an acknowledgment echoes before anything else of it is looked at.

use super::sender::{Ack, Sender};
use super::{CaState, MSS, none};
use crate::cc::{Control, Phase};

/// An acknowledgment of so many segments echoes a mark. Returns true if the window is reduced for it.
fn echo(sender: &mut Sender, to: u64) -> bool {
    let mut control = Control { window: &mut sender.window, state: &mut sender.cc };
    sender.recovery.on_ecn(&sender.flight, &mut control, to * u64::from(MSS), MSS)
}

fn windows(sender: &Sender) -> (u32, u32) {
    (sender.window.cwnd / MSS, sender.window.ssthresh / MSS)
}

#[test]
fn window_is_reduced_once_for_each_window_of_text() {
    let mut sender = Sender::with(10).and_more(40);
    assert!(echo(&mut sender, 1));
    assert_eq!((windows(&sender), sender.state()), ((8, 8), CaState::Cwr));
    assert_eq!(sender.hear(Ack::to(1)), none(), "more is in flight than may be");
    assert!(!echo(&mut sender, 10), "of the same window");
    assert_eq!(sender.hear(Ack::to(10)).len(), 8);
    assert_eq!((windows(&sender), sender.state()), ((8, 8), CaState::Cwr), "no growth");
    assert!(echo(&mut sender, 11));
    assert_eq!(windows(&sender), (6, 6));
}

#[test]
fn window_grows_again_once_the_marked_window_is_acknowledged() {
    let mut sender = Sender::with(10).and_more(40);
    assert!(echo(&mut sender, 1));
    let _ = sender.hear(Ack::to(10));
    let _ = sender.hear(Ack::to(18));
    assert_eq!((windows(&sender).0, sender.state()), (9, CaState::Open), "a segment a round trip");
}

#[test]
fn loss_in_a_marked_window_reduces_nothing_more() {
    let mut sender = Sender::with(10).and_more(40);
    assert!(echo(&mut sender, 1));
    let _ = sender.hear(Ack::to(1));
    assert_eq!(sender.hear(Ack::naming(2..5)), [1, 10, 11]);
    assert_eq!((windows(&sender).1, sender.state()), (8, CaState::Recovery));
    assert!(!echo(&mut sender, 10));
    let _ = sender.hear(Ack::to(10));
    assert_eq!(windows(&sender), (8, 8));
}

#[test]
fn mark_in_fast_recovery_reduces_nothing_more() {
    let mut sender = Sender::with(10).and_more(40);
    assert_eq!(sender.hear(Ack::naming(1..4)), [0]);
    assert_eq!(windows(&sender).1, 5);
    assert!(!echo(&mut sender, 10));
    let _ = sender.hear(Ack::to(10));
    assert_eq!((windows(&sender), sender.state()), ((5, 5), CaState::Open));
    assert!(echo(&mut sender, 11));
}

#[test]
fn time_out_in_marked_window_keeps_ssthresh_and_slow_starts() {
    let mut sender = Sender::with(10).and_more(40);
    assert!(echo(&mut sender, 1));
    let _ = sender.hear(Ack::to(1));
    let _ = sender.time_out(1);
    assert_eq!((windows(&sender), sender.recovery.phase()), ((1, 8), Phase::AfterTimeout));
    let _ = sender.hear(Ack::to(2));
    assert!(windows(&sender).0 > 1, "acknowledgments let it grow");
    assert!(!echo(&mut sender, 5), "the time-out reduced it");
}

#[test]
fn undoing_a_loss_leaves_the_reduction_for_a_mark() {
    for algorithm in [crate::cc::Algorithm::RENO, crate::cc::Algorithm::CUBIC] {
        let mut sender = Sender::with(20).and_more(40);
        sender.window.set_algorithm(algorithm);
        assert!(echo(&mut sender, 1));
        let marked = windows(&sender);
        let _ = sender.hear(Ack::to(1));
        let before = sender.now;
        sender.pass(1);
        let _ = sender.hear(Ack::naming(2..5));
        assert_eq!(sender.state(), CaState::Recovery);
        sender.pass(1);
        let _ = sender.hear(Ack::to(5).echoing(before));
        assert_ne!(sender.state(), CaState::Recovery, "it was undone");
        assert_eq!(windows(&sender), marked);
    }
}

#[test]
fn mark_after_a_spurious_loss_is_not_undone_with_it() {
    let mut sender = Sender::with(10).and_more(40);
    let _ = sender.hear(Ack::naming(1..4));
    let _ = sender.hear(Ack::to(10));
    let _ = sender.hear(Ack::to(11));
    assert!(echo(&mut sender, 12));
    let marked = windows(&sender);
    let _ = sender.hear(Ack::to(12).twice(0));
    assert_eq!(windows(&sender), marked);
}

#[test]
fn mark_with_nothing_in_flight_reduces_nothing() {
    let mut sender = Sender::with(10);
    let _ = sender.hear(Ack::to(10));
    let before = windows(&sender);
    assert!(!echo(&mut sender, 10));
    assert_eq!(windows(&sender), before);
}
