//! The common base of all algorithms: which acknowledgments count, and the memory of a loss.

use std::boxed::Box;
use std::sync::{Arc, Mutex};

use whimbrel_base::Instant;

use super::{CcState, Control};
use crate::cc::tests::ack;
use crate::cc::{
    Ack, Algorithm, Algorithms, CongestionControl, Loss, Reno, Sent, Timeout, TimeoutKind, Window,
};

const MSS: u32 = 1_000;

struct Sender {
    state: CcState,
    window: Window,
    in_flight: u32,
}

impl Sender {
    fn new(algorithm: Algorithm) -> Self {
        let window = Window::new(algorithm, MSS);
        Self { state: CcState::default(), window, in_flight: 0 }
    }

    fn control(&mut self) -> Control<'_> {
        Control { window: &mut self.window, state: &mut self.state }
    }

    fn send(&mut self, segments: u32) {
        for _ in 0..segments {
            self.in_flight += MSS;
            let (now, bytes, in_flight) = (Instant::ZERO, MSS, self.in_flight);
            self.control().on_sent(&Sent { now, bytes, in_flight, mss: MSS });
        }
    }

    fn ack(&mut self, segments: u32) {
        let delivered = segments * MSS;
        self.in_flight -= delivered;
        let in_flight = self.in_flight;
        self.control().on_ack(delivered, |limited| Ack {
            limited,
            in_flight,
            ..ack(delivered, MSS)
        });
    }

    fn lose(&mut self) {
        let loss = Loss { in_flight: self.in_flight, mss: MSS };
        self.control().on_loss_event(&loss);
        self.control().on_recovered(&loss);
    }

    fn time_out(&mut self) {
        let timeout = Timeout { kind: TimeoutKind::First, in_flight: self.in_flight, mss: MSS };
        self.control().on_rto(&timeout);
    }

    fn segments(&self) -> u32 {
        self.window.cwnd / MSS
    }
}

const OURS: [Algorithm; 2] = [Algorithm::RENO, Algorithm::CUBIC];

#[test]
fn half_of_the_initial_window_leaves_no_state_and_grows_nothing() {
    for algorithm in OURS {
        let mut sender = Sender::new(algorithm);
        for _ in 0..10 {
            sender.send(5);
            sender.ack(5);
        }
        assert_eq!(sender.segments(), 10);
        assert!(sender.state.kept.is_none());
    }
}

#[test]
fn full_window_doubles_when_one_ack_covers_it() {
    for each in [1, 2, 5, 10] {
        let mut sender = Sender::new(Algorithm::CUBIC);
        sender.send(10);
        for _ in 0..10 / each {
            sender.ack(each);
        }
        assert_eq!(sender.segments(), 20, "{each} at a time");
    }
}

#[test]
fn window_far_from_full_never_grows() {
    for algorithm in OURS {
        // The peer's window has room for 40 segments.
        let mut sender = Sender::new(algorithm);
        for _ in 0..200 {
            let room = sender.segments().min(40);
            sender.send(room);
            sender.ack(room);
        }
        assert!((40..=80).contains(&sender.segments()), "{}", sender.segments());
    }
}

#[test]
fn avoidance_grows_only_window_without_room_for_segment() {
    for algorithm in OURS {
        for (used, grows) in [(20, true), (19, false), (11, false)] {
            let mut sender = Sender::new(algorithm);
            sender.window = Window { cwnd: 20 * MSS, ssthresh: 10 * MSS, ..sender.window };
            for _ in 0..3 {
                sender.send(used);
                for _ in 0..used {
                    sender.ack(1);
                }
            }
            assert_eq!(
                sender.window.cwnd > 20 * MSS,
                grows,
                "{used} of 20: {sender:?}",
                sender = sender.window
            );
        }
    }
}

#[test]
fn only_text_sent_in_full_window_counts_for_growth() {
    let mut sender = Sender::new(Algorithm::RENO);
    sender.send(10);
    sender.ack(4);
    assert_eq!(sender.segments(), 14);
    // Nothing more to send for now: the other six count still.
    sender.ack(6);
    assert_eq!(sender.segments(), 20);
    sender.send(10);
    sender.ack(10);
    assert_eq!(sender.segments(), 20, "half of a window is none");
}

#[test]
fn a_loss_that_was_none_is_taken_back() {
    for algorithm in OURS {
        let mut sender = Sender::new(algorithm);
        sender.send(10);
        sender.ack(5);
        sender.send(10);
        let before = sender.window;
        sender.lose();
        assert!(sender.window.cwnd < before.cwnd);
        sender.control().undo(&before);
        assert_eq!(sender.window, before);
    }
}

#[test]
fn a_time_out_that_was_none_is_taken_back() {
    for algorithm in OURS {
        let mut sender = Sender::new(algorithm);
        sender.send(10);
        sender.lose();
        let before = sender.window;
        sender.time_out();
        assert_eq!(sender.segments(), 1);
        sender.control().undo(&before);
        assert_eq!(sender.window, before);
    }
}

#[test]
fn a_fresh_connection_has_nothing_of_the_one_before() {
    let mut sender = Sender::new(Algorithm::CUBIC);
    sender.send(10);
    sender.lose();
    sender.state.reset();
    assert!(sender.state.kept.is_none() && sender.state.cwnd_limited_bytes == 0);
}

/// Counts what it hears, and has a window of seven segments.
#[derive(Debug)]
struct Seven(Arc<Mutex<[u32; 3]>>);

impl CongestionControl for Seven {
    fn begin(&mut self, window: &mut Window, mss: u32) {
        self.0.lock().expect("no panic")[0] += 1;
        window.cwnd = 7 * mss;
    }

    fn on_sent(&mut self, _: &mut Window, _: &Sent) {
        self.0.lock().expect("no panic")[1] += 1;
    }

    fn on_ack(&mut self, _: &mut Window, _: &Ack) {
        self.0.lock().expect("no panic")[2] += 1;
    }

    fn on_loss_event(&mut self, _: &mut Window, _: &Loss) {}

    fn on_rto(&mut self, _: &mut Window, _: &Timeout) {}

    fn pacing_rate(&self, _: &Window) -> Option<u64> {
        Some(1_000)
    }
}

#[test]
fn added_algorithm_hears_every_event_at_any_window() {
    let heard = Arc::<Mutex<[u32; 3]>>::default();
    let (mut algorithms, theirs) = (Algorithms::default(), heard.clone());
    let make = Arc::new(move || Box::new(Seven(theirs.clone())) as Box<dyn CongestionControl>);
    let algorithm = algorithms.add("seven", make).expect("there is room");
    let mut sender = Sender::new(algorithm);
    for _ in 0..3 {
        sender.control().prepare(&algorithms, MSS);
    }
    assert_eq!(sender.segments(), 7);
    assert_eq!(sender.control().pacing_rate(), Some(1_000));
    sender.send(2);
    sender.ack(1);
    assert_eq!(*heard.lock().expect("no panic"), [1, 2, 1]);
}

#[test]
fn what_was_never_added_behaves_as_reno() {
    let mut algorithms = Algorithms::default();
    let reno = Arc::new(|| Box::new(Reno::default()) as Box<dyn CongestionControl>);
    let algorithm = algorithms.add("gone", reno).expect("there is room");
    let mut sender = Sender::new(algorithm);
    sender.control().prepare(&Algorithms::default(), MSS);
    sender.send(10);
    sender.ack(10);
    assert_eq!(sender.segments(), 20);
}
