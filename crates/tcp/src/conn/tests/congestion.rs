//! A congestion control from outside this crate: all of it is in this file, and a transfer runs by it.

use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::vec::Vec;

use whimbrel_recovery::cc::{
    Ack, CongestionControl, Loss, LostText, MakeAlgorithm, Phase, Sent, Timeout, TimeoutKind,
    Window,
};

use super::pair::{Pair, Which, pattern};
use crate::Tunables;

/// Calls that it received.
#[derive(Debug, Default)]
struct Heard {
    sent: u32,
    delivered: u32,
    arrived: u32,
    in_recovery: u32,
    /// Bytes of transmissions that were judged lost.
    lost: u32,
    /// Samples of the delivery rate, and those that the application limited.
    rates: [u32; 2],
    most_in_flight: u32,
    round_trips: u32,
    loss_events: u32,
    recovered: u32,
    timeouts: Vec<TimeoutKind>,
    pauses: u32,
}

/// A window of four segments, whatever happens.
#[derive(Debug)]
struct FourSegments {
    heard: Arc<Mutex<Heard>>,
    samples_rate: bool,
}

impl FourSegments {
    fn note(&self, what: impl FnOnce(&mut Heard)) {
        what(&mut self.heard.lock().expect("no panic while locked"));
    }
}

impl CongestionControl for FourSegments {
    fn begin(&mut self, window: &mut Window, mss: u32) {
        window.cwnd = 4 * mss;
    }

    fn on_sent(&mut self, _: &mut Window, sent: &Sent) {
        self.note(|heard| {
            heard.sent += sent.bytes;
            heard.most_in_flight = heard.most_in_flight.max(sent.in_flight);
        });
    }

    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        self.note(|heard| {
            heard.delivered += ack.delivered;
            heard.arrived += ack.arrived;
            if let Some(rate) = ack.rate {
                heard.rates[usize::from(rate.app_limited)] += 1;
            }
            heard.in_recovery += u32::from(ack.phase == Phase::FastRecovery);
            heard.round_trips += u32::from(ack.rtt.is_some_and(|rtt| rtt.get() >= 20_000));
        });
    }

    fn samples_rate(&self) -> bool {
        self.samples_rate
    }

    fn on_lost(&mut self, _: &mut Window, lost: &LostText) {
        self.note(|heard| heard.lost += lost.bytes);
    }

    fn on_loss_event(&mut self, _: &mut Window, _: &Loss) {
        self.note(|heard| heard.loss_events += 1);
    }

    fn on_recovered(&mut self, _: &mut Window, _: &Loss) {
        self.note(|heard| heard.recovered += 1);
    }

    fn on_rto(&mut self, _: &mut Window, timeout: &Timeout) {
        self.note(|heard| heard.timeouts.push(timeout.kind));
    }

    fn on_idle(&mut self, _: &mut Window, _: u32) {
        self.note(|heard| heard.pauses += 1);
    }
}

/// A window of so many bytes, and the same threshold, however little sense that makes.
#[derive(Debug)]
struct Always(u32);

impl Always {
    fn set(&self, window: &mut Window) {
        (window.cwnd, window.ssthresh, window.w_max) = (self.0, self.0, self.0);
    }
}

impl CongestionControl for Always {
    fn begin(&mut self, window: &mut Window, _: u32) {
        self.set(window);
    }

    fn on_sent(&mut self, window: &mut Window, _: &Sent) {
        self.set(window);
    }

    fn on_ack(&mut self, window: &mut Window, _: &Ack) {
        self.set(window);
    }

    fn on_loss_event(&mut self, window: &mut Window, _: &Loss) {
        self.set(window);
    }

    fn on_recovered(&mut self, window: &mut Window, _: &Loss) {
        self.set(window);
    }

    fn on_rto(&mut self, window: &mut Window, _: &Timeout) {
        self.set(window);
    }

    fn on_idle(&mut self, window: &mut Window, _: u32) {
        self.set(window);
    }

    fn undo(&mut self, window: &mut Window, _: &Window) {
        self.set(window);
    }
}

/// A pair whose client sends by [`FourSegments`], and what that hears.
fn pair() -> (Pair, Arc<Mutex<Heard>>) {
    pair_with(false)
}

/// A pair whose client sends by [`FourSegments`], with or without samples of the delivery rate.
fn pair_with(samples_rate: bool) -> (Pair, Arc<Mutex<Heard>>) {
    // A loss probe may exceed the window by a segment.
    let tunables = Tunables { loss_probe: false, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let heard = Arc::<Mutex<Heard>>::default();
    let theirs = heard.clone();
    let make: MakeAlgorithm =
        Arc::new(move || Box::new(FourSegments { heard: theirs.clone(), samples_rate }));
    let client = &mut pair.client;
    let algorithm = client.cx.algorithms.add("four-segments", make).expect("there is room");
    client.connection.set_congestion_control(algorithm);
    (pair, heard)
}

#[test]
fn a_transfer_runs_by_the_window_of_another_algorithm() {
    let (mut pair, heard) = pair();
    let bytes = pattern(60_000);
    assert_eq!(pair.write(Which::Client, &bytes), bytes.len());
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
    let window = 4 * u32::from(pair.client.connection.mss());
    assert_eq!(pair.client.connection.cwnd(), window);
    let heard = heard.lock().expect("no panic while locked");
    assert_eq!((heard.sent, heard.delivered, heard.most_in_flight), (60_000, 60_000, window));
    assert!(heard.round_trips >= 10, "one for each window: {heard:?}");
    assert_eq!((heard.loss_events, heard.timeouts.len()), (0, 0));
}

#[test]
fn algorithm_is_told_of_each_byte_once_at_one_percent_loss() {
    for samples_rate in [false, true] {
        let (mut pair, heard) = pair_with(samples_rate);
        pair.lose = |number, flying| !flying.text.is_empty() && number % 100 == 5;
        let mut written = 0;
        for _ in 0..10 {
            written += pair.write(Which::Client, &pattern(60_000)) as u32;
            pair.run_for(Duration::from_secs(10));
        }
        let heard = heard.lock().expect("no panic");
        assert_eq!(
            (written, heard.delivered, heard.arrived),
            (600_000, written, written),
            "{heard:?}"
        );
        assert!(heard.loss_events >= 2, "{heard:?}");
        assert!(heard.in_recovery >= heard.loss_events, "{heard:?}");
        if samples_rate {
            assert_eq!(heard.lost, heard.sent - written, "what is lost is sent again: {heard:?}");
            assert!(heard.rates[0] >= 100 && heard.rates[1] >= 1, "{heard:?}");
        } else {
            assert_eq!((heard.lost, heard.rates), (0, [0; 2]));
        }
    }
}

#[test]
fn senseless_algorithm_harms_only_its_own_connection() {
    for window in [0, 1, 1_000, u32::MAX] {
        let mut pair = Pair::established(&Tunables::default());
        let make: MakeAlgorithm = Arc::new(move || Box::new(Always(window)));
        let client = &mut pair.client;
        let algorithm = client.cx.algorithms.add("always", make).expect("there is room");
        client.connection.set_congestion_control(algorithm);
        pair.lose = |number, flying| !flying.text.is_empty() && number % 17 == 5;
        let bytes = pattern(60_000);
        assert_eq!(pair.write(Which::Client, &bytes), bytes.len());
        pair.run_for(Duration::from_secs(600));
        assert!(pair.server.received == bytes, "{window}: {} bytes", pair.server.received.len());
    }
}

#[test]
fn another_algorithm_hears_of_losses_time_outs_and_pauses() {
    let (mut pair, heard) = pair();
    pair.lose = |number, flying| !flying.text.is_empty() && number == 2;
    pair.write(Which::Client, &pattern(30_000));
    pair.run_for(Duration::from_secs(1));
    let pauses = {
        let heard = heard.lock().expect("no panic while locked");
        assert_eq!((heard.loss_events, heard.recovered, heard.timeouts.len()), (1, 1, 0));
        assert!(heard.sent > 30_000, "what is sent again counts: {heard:?}");
        heard.pauses
    };
    pair.run_for(Duration::from_secs(60));
    pair.lose = |_, _| true;
    pair.write(Which::Client, b"anyone?");
    pair.run_for(Duration::from_secs(1));
    let heard = heard.lock().expect("no panic while locked");
    assert_eq!(heard.pauses, pauses + 1);
    assert_eq!(heard.timeouts[..2], [TimeoutKind::First, TimeoutKind::Repeated]);
}

#[test]
fn text_behind_a_repair_without_sack_measures_no_round_trip() {
    for timestamps in [true, false] {
        let tunables = Tunables { sack: false, timestamps, ..Tunables::default() };
        let mut pair = Pair::established(&tunables);
        // Three segments of a window are lost, of which one is repaired in each round trip.
        pair.lose = |number, flying| {
            let lost = [30, 36, 42].contains(&number);
            lost && !flying.text.is_empty()
        };
        let mut longest = Duration::ZERO;
        for _ in 0..300 {
            pair.write(Which::Client, &pattern(20_000));
            pair.run_for(Duration::from_millis(1));
            longest = longest.max(pair.client.connection.rtt().srtt().unwrap_or_default());
        }
        assert!(pair.client.cx.counters.fast_retrans >= 3);
        assert!(longest < Duration::from_millis(25), "{longest:?}, timestamps: {timestamps}");
    }
}
