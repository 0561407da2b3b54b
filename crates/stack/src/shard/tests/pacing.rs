//! Text of a paced flow leaves spread over time; all else leaves at once.

use core::num::NonZeroU64;
use std::boxed::Box;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::{Ack, CongestionControl, Loss, Timeout, Window};
use whimbrel_tcp::conn::{SocketOptions, SocketOverrides};

use super::hosts::{Hosts, Over, drain, send};
use crate::{Handle, TxBatch};

/// So many bytes may be in flight, and so many leave each second, whatever happens.
#[derive(Debug)]
struct FixedRate {
    rate: u64,
    cwnd: u32,
}

impl CongestionControl for FixedRate {
    fn pacing_rate(&self, _: &Window) -> Option<u64> {
        Some(self.rate)
    }

    fn begin(&mut self, window: &mut Window, _: u32) {
        window.cwnd = self.cwnd;
    }

    fn on_ack(&mut self, _: &mut Window, _: &Ack) {}

    fn on_loss_event(&mut self, window: &mut Window, _: &Loss) {
        window.ssthresh = window.cwnd;
    }

    fn on_rto(&mut self, _: &mut Window, _: &Timeout) {}
}

/// Hosts whose client sends at a fixed rate, with its connection and the server's.
fn at_rate(rate: u64) -> (Hosts, Handle, Handle) {
    let mut hosts = Hosts::new();
    set_rate(&mut hosts, rate);
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    (hosts, client, server)
}

/// Connections of the client that begin from now on send at this rate.
fn set_rate(hosts: &mut Hosts, rate: u64) {
    set_fixed(hosts, rate, 500_000);
}

/// Connections of the client that begin from now on send at this rate, within this window.
fn set_fixed(hosts: &mut Hosts, rate: u64, cwnd: u32) {
    let make = Arc::new(move || Box::new(FixedRate { rate, cwnd }) as Box<dyn CongestionControl>);
    let algorithm = hosts.client.add_congestion_control("fixed", make).expect("a name");
    hosts.client.set_usual_congestion_control(algorithm);
}

const MEGABYTE: u64 = 1_000_000;

/// The bytes that arrive in each of so many steps, of a client that always has text to send.
fn arrivals(
    hosts: &mut Hosts,
    client: Handle,
    server: Handle,
    step: Duration,
    count: usize,
) -> Vec<usize> {
    let mut arrived = Vec::new();
    for _ in 0..count {
        while send(&mut hosts.client, client, &[7; 20_000]) > 0 {}
        hosts.run(step);
        arrived.push(drain(&mut hosts.server, server).0.len());
    }
    arrived
}

#[test]
fn algorithm_with_a_rate_is_paced() {
    for rate in [MEGABYTE / 8, MEGABYTE, 10 * MEGABYTE] {
        let (mut hosts, client, server) = at_rate(rate);
        let step = Duration::from_millis(50);
        let arrived = arrivals(&mut hosts, client, server, step, 20);
        let (each, quantum) = ((rate / 20) as usize, (rate / 1_000).max(2 * 1_448) as usize);
        // More than the initial window left at once, and is made up for.
        let paced = &arrived[4..];
        for bytes in paced {
            assert!(bytes.abs_diff(each) <= quantum + each / 10, "{bytes} of {each}: {arrived:?}");
        }
        let all: usize = paced.iter().sum();
        assert!(all.abs_diff(paced.len() * each) <= quantum + each / 10, "{all} at {rate}");
    }
}

#[test]
fn quanta_of_many_flows_leave_within_a_tenth_of_their_time() {
    let mut hosts = Hosts::new();
    set_rate(&mut hosts, MEGABYTE / 8);
    let listener = hosts.listen(Over::V4, 16);
    let flows: Vec<_> = (0..12).map(|_| hosts.connected(Over::V4, listener)).collect();
    // Two segments at a megabit per second.
    let (quantum, period) = (2 * 1_448, Duration::from_nanos(23_168_000));
    let step = Duration::from_micros(200);
    let mut last = std::vec![None; flows.len()];
    let mut seen = 0;
    for number in 0..2_500 {
        for ((client, server), last) in flows.iter().zip(&mut last) {
            while send(&mut hosts.client, *client, &[7; 20_000]) > 0 {}
            let arrived = drain(&mut hosts.server, *server).0.len();
            // An initial window leaves at once, and is made up for.
            if arrived == 0 || number < 1_000 {
                continue;
            }
            assert_eq!(arrived, quantum);
            if let Some(last) = last.replace(hosts.now) {
                let since = hosts.now.since(last);
                assert!(since.abs_diff(period) <= period / 10, "{since:?} after the one before");
                seen += 1;
            }
        }
        hosts.run(step);
    }
    assert!(seen >= 11 * flows.len(), "{seen} quanta of {} flows in 300 ms", flows.len());
}

#[test]
fn wakes_60_us_late_keep_95_percent_of_10_gb_per_second() {
    const RATE: u64 = 1_250 * MEGABYTE;
    const BUFFER: u32 = 16 << 20;
    let tunables = Tunables { send_buffer: BUFFER, recv_buffer: BUFFER, ..Tunables::default() };
    let mut hosts = Hosts::with(&tunables);
    hosts.late = Duration::from_micros(60);
    set_fixed(&mut hosts, RATE, BUFFER / 2);
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    let arrived = arrivals(&mut hosts, client, server, Duration::from_millis(1), 60);
    let (all, expected) = (arrived[20..].iter().sum::<usize>(), (RATE / 25) as usize);
    // All quanta of a wake-up leave at once, so that the ends of the time may have one more.
    assert!((expected / 100 * 95..expected / 100 * 101).contains(&all), "{all} of {expected}");
}

#[test]
fn acknowledgments_leave_while_text_waits() {
    let (mut hosts, client, server) = at_rate(10_000);
    arrivals(&mut hosts, client, server, Duration::from_millis(5), 1);
    let waits = hosts.client.tcp.work.pacing.next_deadline().expect("text waits");
    // Two segments: the second is acknowledged at once.
    assert_eq!(send(&mut hosts.server, server, &[9; 2_896]), 2_896);
    hosts.run(Duration::from_millis(3));
    assert!(hosts.now < waits);
    assert_eq!(drain(&mut hosts.client, client).0.len(), 2_896);
    hosts.run(Duration::from_millis(3));
    assert_eq!(hosts.server.snapshot(server).expect("it lives").send_queued, 0);
}

#[test]
fn flow_that_writes_after_its_wait_sends_in_the_same_turn() {
    let (mut hosts, client, server) = at_rate(100_000);
    // The first leaves whole, as no rate is known yet; the next waits for that.
    for _ in 0..2 {
        send(&mut hosts.client, client, &[7; 10_000]);
        hosts.run(Duration::from_millis(1));
    }
    let waits = hosts.client.tcp.work.pacing.next_deadline().expect("text waits");
    assert_eq!(drain(&mut hosts.server, server).0.len(), 10_000);
    // `advance` is called long after the end of the wait, and behind the write, as a worker does.
    let now = waits + Duration::from_millis(40);
    hosts.client.set_now(now);
    assert!(send(&mut hosts.client, client, &[8; 100]) > 0);
    while hosts.client.advance(now, 64) {}
    let mut batch = TxBatch::new(8);
    hosts.client.tx(&mut batch);
    assert!(!batch.is_empty(), "text waits for a timer");
}

#[test]
fn what_is_lost_is_repaired_at_the_rate() {
    let (mut hosts, client, server) = at_rate(MEGABYTE);
    hosts.lose = |number| number % 50 == 7;
    let arrived = arrivals(&mut hosts, client, server, Duration::from_millis(50), 40);
    let all: usize = arrived.iter().sum();
    // A packet in 50 is lost, of text or of acknowledgments, and nothing waits for a time-out.
    assert!((1_850_000..2_050_000).contains(&all), "{arrived:?}");
}

#[test]
fn connection_that_ends_while_its_text_waits_leaves_nothing() {
    let (mut hosts, client, server) = at_rate(1_000);
    arrivals(&mut hosts, client, server, Duration::from_millis(5), 1);
    assert!(hosts.client.tcp.work.pacing.next_deadline().is_some());
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
    assert_eq!(hosts.client.tcp.work.pacing.next_deadline(), None);
}

/// The time that the client takes for 2 MB over a round trip of 2 ms, and true if text waited.
fn transfer(tunables: &Tunables) -> (Duration, bool) {
    let mut hosts = Hosts::with(tunables);
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    let (begun, mut left, mut waited) = (hosts.now, 2_000_000, false);
    let mut arrived = 0;
    while arrived < 2_000_000 {
        left -= send(&mut hosts.client, client, &std::vec![7; left.min(100_000)]);
        hosts.run(Duration::from_millis(1));
        arrived += drain(&mut hosts.server, server).0.len();
        waited |= hosts.client.tcp.work.pacing.next_deadline().is_some();
    }
    (hosts.now.since(begun), waited)
}

#[test]
fn window_is_paced_if_the_tunable_says_so() {
    let (plain, waits) = transfer(&Tunables::default());
    assert!(!waits);
    let paced = Tunables { pacing: true, ..Tunables::default() };
    let (spread, waits) = transfer(&paced);
    assert!(waits);
    assert!(spread <= plain + Duration::from_millis(4), "{spread:?} instead of {plain:?}");
    let slow = Tunables { pacing_slow_start: 10, pacing_avoidance: 10, ..paced };
    let (slow, _) = transfer(&slow);
    assert!(slow > spread * 3, "{slow:?} by a tenth of the window, {spread:?} by all of it");
}

/// The connection may have at most so many bytes per second.
fn limit(hosts: &mut Hosts, client: Handle, most: u64) {
    let max_pacing_rate = NonZeroU64::new(most);
    let overrides = SocketOverrides { max_pacing_rate, ..SocketOverrides::default() };
    hosts.client.set_options(client, &SocketOptions { overrides, ..SocketOptions::default() });
}

#[test]
fn connection_keeps_the_rate_that_was_set_for_it() {
    for rate in [MEGABYTE / 8, MEGABYTE] {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(Over::V4, 8);
        let (client, server) = hosts.connected(Over::V4, listener);
        limit(&mut hosts, client, rate);
        let step = Duration::from_millis(5);
        let in_time = |hosts: &mut Hosts, steps| -> usize {
            arrivals(hosts, client, server, step, steps).iter().sum()
        };
        let expected = rate as usize;
        in_time(&mut hosts, 100);
        let all = in_time(&mut hosts, 200);
        assert!(all.abs_diff(expected) <= expected / 50, "{all} of {expected}");
        limit(&mut hosts, client, 2 * rate);
        in_time(&mut hosts, 100);
        let all = in_time(&mut hosts, 200);
        assert!(all.abs_diff(2 * expected) <= expected / 25, "{all} of twice {expected}");
        limit(&mut hosts, client, 0);
        let free = in_time(&mut hosts, 40);
        assert!(free > rate as usize, "{free} without a limit of {rate}");
    }
}

#[test]
fn rate_is_kept_while_the_application_writes_little() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    limit(&mut hosts, client, MEGABYTE);
    let mut arrived = 0;
    for _ in 0..1_000 {
        // All of it is acknowledged before more comes: eight segments, of which no acknowledgment is delayed.
        if hosts.client.snapshot(client).is_some_and(|it| it.send_queued == 0) {
            send(&mut hosts.client, client, &[7; 8 * 1_448]);
        }
        hosts.run(Duration::from_millis(1));
        arrived += drain(&mut hosts.server, server).0.len();
    }
    assert!((500_000..=1_034_600).contains(&arrived), "{arrived} in a second");
}
