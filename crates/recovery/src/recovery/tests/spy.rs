//! The reports that an algorithm hears while something is missing, and the window that it may set then.

use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::sender::{Ack as Arrival, Sender};
use super::{MSS, none};
use crate::cc::{Ack, CongestionControl, Loss, MakeAlgorithm, Phase, Timeout, Window};

/// The phase, the bytes that arrived and those that are in flight still, of each acknowledgment.
type Heard = Arc<Mutex<Vec<(Phase, u32, u32)>>>;

/// An algorithm that notes what it hears, and sets no window.
#[derive(Debug)]
struct Spy {
    heard: Heard,
    sets_cwnd: bool,
}

impl CongestionControl for Spy {
    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        let mut heard = self.heard.lock().expect("no panic");
        heard.push((ack.phase, ack.arrived, ack.in_flight));
    }

    fn sets_cwnd_in_recovery(&self) -> bool {
        self.sets_cwnd
    }

    fn on_loss_event(&mut self, window: &mut Window, _: &Loss) {
        window.ssthresh = window.cwnd / 2;
    }

    fn on_rto(&mut self, _: &mut Window, _: &Timeout) {}
}

fn sender(segments: u32, sets_cwnd: bool) -> (Sender, Heard) {
    let heard = Heard::default();
    let theirs = heard.clone();
    let make: MakeAlgorithm = Arc::new(move || Box::new(Spy { heard: theirs.clone(), sets_cwnd }));
    (Sender::with_algorithm(segments, make), heard)
}

fn take(heard: &Heard) -> Vec<(Phase, u32, u32)> {
    std::mem::take(&mut heard.lock().expect("no panic"))
}

#[test]
fn it_hears_of_sack_alone_and_of_all_in_fast_recovery() {
    let (mut sender, heard) = sender(10, true);
    let _ = sender.hear(Arrival::naming(1..2));
    assert_eq!(take(&heard), [(Phase::Open, MSS, 9 * MSS)]);
    let _ = sender.hear(Arrival::naming(1..4));
    assert_eq!(take(&heard), [(Phase::FastRecovery, 2 * MSS, 6 * MSS)]);
    let _ = sender.hear(Arrival::to(4));
    let [(phase, arrived, _)] = take(&heard)[..] else { panic!("one acknowledgment") };
    assert_eq!((phase, arrived), (Phase::FastRecovery, MSS), "the rest had been named");
    let _ = sender.hear(Arrival::to(10));
    assert_eq!(take(&heard), [(Phase::Open, 6 * MSS, 0)]);
}

#[test]
fn it_hears_of_duplicates_without_sack() {
    let (mut sender, heard) = sender(10, false);
    sender.sack = false;
    for _ in 0..4 {
        let _ = sender.hear(Arrival::default());
    }
    let (open, recovery) = (Phase::Open, Phase::FastRecovery);
    let expected = [(open, MSS, 9), (open, MSS, 8), (recovery, MSS, 6), (recovery, MSS, 6)];
    assert_eq!(take(&heard), expected.map(|(phase, arrived, out)| (phase, arrived, out * MSS)));
}

#[test]
fn each_byte_arrives_once_without_sack() {
    let (mut sender, heard) = sender(10, true);
    sender.sack = false;
    for _ in 0..7 {
        let _ = sender.hear(Arrival::default());
    }
    sender.pass(100);
    // The segments 0, 4 and 8 were lost.
    for to in [4, 8, 10] {
        let _ = sender.hear(Arrival::to(to));
        sender.pass(100);
    }
    let arrived: Vec<_> = take(&heard).into_iter().map(|(_, arrived, _)| arrived / MSS).collect();
    assert_eq!(arrived, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn byte_of_which_a_duplicate_told_before_a_timeout_arrives_once() {
    let (mut sender, heard) = sender(10, true);
    sender.sack = false;
    for _ in 0..4 {
        let _ = sender.hear(Arrival::default());
    }
    let _ = sender.time_out(1);
    sender.pass(100);
    for to in [5, 10] {
        let _ = sender.hear(Arrival::to(to));
    }
    let arrived: u32 = take(&heard).into_iter().map(|(_, arrived, _)| arrived).sum();
    assert_eq!(arrived, 10 * MSS);
}

#[test]
fn it_hears_of_sack_alone_after_a_timeout() {
    let (mut sender, heard) = sender(10, true);
    let _ = sender.time_out(1);
    sender.pass(100);
    let _ = sender.hear(Arrival::naming(5..6));
    assert_eq!(
        take(&heard).first().map(|(phase, arrived, _)| (*phase, *arrived)),
        Some((Phase::AfterTimeout, MSS))
    );
}

#[test]
fn cwnd_in_fast_recovery_is_of_who_says_so() {
    let (mut own, _) = sender(10, true);
    let (mut other, _) = sender(10, false);
    for sender in [&mut own, &mut other] {
        let _ = sender.hear(Arrival::naming(1..4));
        assert_eq!(sender.recovery.phase(), Phase::FastRecovery);
    }
    assert_eq!(own.window.cwnd, 10 * MSS);
    assert!(other.window.cwnd < 10 * MSS, "{}", other.window.cwnd);
}

#[test]
fn cwnd_when_the_reordering_timer_runs_out_is_of_who_says_so() {
    let (mut own, _) = sender(10, true);
    let (mut other, _) = sender(10, false);
    for sender in [&mut own, &mut other] {
        assert_eq!(sender.hear(Arrival::naming(1..2)), none());
        let _ = sender.detect_loss();
        assert_eq!(sender.recovery.phase(), Phase::FastRecovery);
    }
    assert_eq!(own.window.cwnd, 10 * MSS);
    assert!(other.window.cwnd < 10 * MSS, "{}", other.window.cwnd);
}
