//! Data arrives whole and in order, whatever the sizes.

use std::time::Duration;
use std::vec::Vec;

use super::pair::{Pair, Which, fixed, pattern};
use crate::{Tunables, Verdict};

/// Writes all of `bytes`, running the pair whenever the buffer is full.
fn transfer(pair: &mut Pair, bytes: &[u8]) {
    let mut rest = bytes;
    let start = pair.now;
    while !rest.is_empty() {
        let taken = pair.write(Which::Client, rest);
        rest = &rest[taken..];
        pair.run_for(Duration::from_millis(20));
        assert!(pair.now.since(start) < Duration::from_secs(3_600), "no progress");
    }
    pair.run_until_quiet();
}

#[test]
fn a_request_and_a_response_cross() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, b"GET / HTTP/1.1\r\n\r\n");
    pair.run_until_quiet();
    pair.write(Which::Server, b"HTTP/1.1 200 OK\r\n\r\n");
    pair.run_until_quiet();
    assert_eq!(pair.server.received, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(pair.client.received, b"HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(pair.client.cx.pool.lent() + pair.server.cx.pool.lent(), 0);
}

#[test]
fn the_least_round_trip_is_forgotten_after_five_minutes() {
    let mut pair = Pair::established(&Tunables::default());
    let least =
        |pair: &Pair| pair.client.connection.transfer.tcb.counts.min_rtt().unwrap().get() / 1_000;
    assert_eq!(least(&pair), 20);
    // The path is longer from now on.
    pair.delay = Duration::from_millis(50);
    for (minutes, expected) in [(4, 20), (2, 100)] {
        pair.run_for(Duration::from_secs(60 * minutes));
        // Two segments, so that their acknowledgment is not delayed.
        pair.write(Which::Client, &pattern(2 * 1_448));
        pair.run_until_quiet();
        assert_eq!(least(&pair), expected);
    }
}

#[test]
fn a_megabyte_arrives_whole_without_a_retransmission() {
    for max_text in [0, 65_000] {
        let mut pair = Pair::established(&Tunables::default());
        pair.max_text = max_text;
        let bytes = pattern(1 << 20);
        transfer(&mut pair, &bytes);
        assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
        assert_eq!(pair.client.cx.counters.retrans_segs, 0);
        assert_eq!(pair.client.cx.pool.lent() + pair.server.cx.pool.lent(), 0);
    }
}

#[test]
fn a_megabyte_arrives_whole_whatever_is_negotiated() {
    for bits in 0..8 {
        let tunables = Tunables {
            timestamps: bits & 1 != 0,
            window_scaling: bits & 2 != 0,
            sack: bits & 4 != 0,
            ..Tunables::default()
        };
        let mut pair = Pair::established(&tunables);
        let bytes = pattern(1 << 20);
        transfer(&mut pair, &bytes);
        assert!(pair.server.received == bytes);
    }
}

#[test]
fn writes_of_every_small_size_arrive_in_order() {
    let mut pair = Pair::established(&Tunables::default());
    let bytes = pattern(200_000);
    let mut at = 0;
    for size in (1..700).cycle() {
        let end = (at + size).min(bytes.len());
        let taken = pair.write(Which::Client, &bytes[at..end]);
        at += taken;
        if at == bytes.len() {
            break;
        }
        if taken < size || size % 50 == 0 {
            pair.run_for(Duration::from_millis(30));
        }
    }
    pair.run_until_quiet();
    assert!(pair.server.received == bytes);
}

#[test]
fn small_writes_wait_for_ack_of_earlier_small_ones() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, b"a");
    let first = pair.poll(Which::Client).expect("the first goes out at once");
    assert_eq!(first.text, b"a");
    pair.write(Which::Client, b"b");
    assert!(pair.poll(Which::Client).is_none(), "the second waits");
    pair.client.connection.set_nodelay(crate::conn::Nagle::Off);
    assert!(pair.poll(Which::Client).is_some(), "unless the application is in a hurry");
}

#[test]
fn second_segment_is_acked_at_once_and_a_single_one_delayed() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(100));
    let sent = pair.now;
    pair.run_for(Duration::from_millis(45));
    assert_eq!(pair.client.connection.send_queued(), 100, "not acknowledged yet");
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.client.connection.send_queued(), 0);
    assert_eq!(pair.server.cx.counters.delayed_acks, 1);
    assert!(pair.now.since(sent) < Duration::from_millis(100));
}

#[test]
fn a_closed_window_is_probed_and_reopens() {
    let mut pair = Pair::established(&fixed(256 << 10, 256 << 10));
    let bytes = pattern(400_000);
    // The server does not read: play the receiving application by hand.
    let mut rest: &[u8] = &bytes;
    let mut unread = Vec::new();
    for _ in 0..200 {
        let taken = pair.write(Which::Client, rest);
        rest = &rest[taken..];
        while let Some(flying) = pair.poll(Which::Client) {
            deliver(&mut pair, Which::Server, &flying);
        }
        while let Some(flying) = pair.poll(Which::Server) {
            deliver(&mut pair, Which::Client, &flying);
        }
        unread.push(pair.server.connection.unread());
    }
    let left = pair.server.connection.recv_sequence().wnd();
    assert!(left < 1448, "{left} bytes of window are left: too little for a segment");
    let before = pair.client.cx.counters.window_probes;
    for _ in 0..8 {
        let deadline = pair.client.connection.next_deadline();
        pair.now = pair.now.max(deadline);
        let now = pair.now;
        pair.client.with(now, |connection, cx| connection.on_deadline(cx));
        let probe = pair.poll(Which::Client).expect("a probe");
        assert!(probe.text.len() <= left.max(1) as usize);
        deliver(&mut pair, Which::Server, &probe);
        // What fits in the rest of the window may be acknowledged later, what does not is
        // answered at once.
        if let Some(answer) = pair.poll(Which::Server) {
            deliver(&mut pair, Which::Client, &answer);
        }
    }
    assert!(pair.client.cx.counters.window_probes > before);
    let now = pair.now;
    pair.server.drain(now);
    transfer(&mut pair, rest);
    assert!(pair.server.received == bytes, "{} of {}", pair.server.received.len(), bytes.len());
}

fn deliver(pair: &mut Pair, to: Which, flying: &super::pair::Flying) {
    let now = pair.now;
    let _ = pair.side(to).take(now, flying);
}

#[test]
fn initial_window_tunable_sets_first_and_restart_window() {
    for (initial_window, cwnd) in [(1, 1_448), (3, 4_344), (10, 14_480), (100, 144_800)] {
        let mut pair = Pair::established(&Tunables { initial_window, ..Tunables::default() });
        assert_eq!(pair.client.connection.cwnd(), cwnd, "{initial_window}");
        for _ in 0..8 {
            pair.write(Which::Client, &pattern(200_000));
            pair.run_for(Duration::from_millis(150));
        }
        assert!(pair.client.connection.cwnd() > cwnd, "{initial_window}");
        pair.run_for(Duration::from_secs(5));
        pair.write(Which::Client, &pattern(1));
        assert_eq!(pair.client.connection.cwnd(), cwnd, "{initial_window}");
        pair.run_until_quiet();
    }
}

#[test]
fn initial_window_is_sent_after_a_pause_unless_set_otherwise() {
    for slow_start_after_idle in [true, false] {
        let mut pair =
            Pair::established(&Tunables { slow_start_after_idle, ..Tunables::default() });
        for _ in 0..4 {
            pair.write(Which::Client, &pattern(100_000));
            pair.run_for(Duration::from_millis(150));
        }
        let grown = pair.client.connection.cwnd();
        assert!(grown > 100_000, "{grown}: pauses shorter than RTO change nothing");
        pair.run_for(Duration::from_secs(1));
        pair.write(Which::Client, &pattern(100_000));
        let expected = if slow_start_after_idle { 10 * 1_448 } else { grown };
        assert_eq!(pair.client.connection.cwnd(), expected);
        pair.run_until_quiet();
        assert_eq!(pair.server.received.len(), 500_000);
    }
}

#[test]
fn a_window_that_opens_after_long_is_not_filled_in_one_burst() {
    let mut pair = Pair::established(&fixed(256 << 10, 256 << 10));
    for _ in 0..4 {
        pair.write(Which::Client, &pattern(100_000));
        pair.run_for(Duration::from_millis(150));
    }
    pair.server.reads = false;
    for _ in 0..6 {
        pair.write(Which::Client, &pattern(100_000));
        pair.run_for(Duration::from_millis(150));
    }
    pair.run_for(Duration::from_secs(30));
    assert!(pair.client.connection.cwnd() > 100_000);
    let now = pair.now;
    pair.server.reads = true;
    pair.server.drain(now);
    let update = pair.poll(Which::Server).expect("a window update");
    assert_eq!(pair.client.take(now, &update), Verdict::Accepted);
    assert_eq!(pair.client.connection.cwnd(), 10 * 1_448);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.connection.send_queued(), 0);
}
