//! Loss, silence, and peers that lie.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_wire::tcp::SackBlock;

use super::pair::{Pair, Which, pattern};
use crate::conn::State;
use crate::{CloseReason, Tunables, Verdict};

#[test]
fn data_survives_the_loss_of_every_tenth_segment() {
    for (sack, max_text) in [(true, 0), (false, 0), (true, 65_000)] {
        let mut pair = Pair::established(&Tunables { sack, ..Tunables::default() });
        pair.max_text = max_text;
        pair.lose = |number, _| number % 10 == 7;
        let bytes = pattern(500_000);
        let mut rest: &[u8] = &bytes;
        for _ in 0..6_000 {
            rest = &rest[pair.write(Which::Client, rest)..];
            pair.run_for(Duration::from_millis(50));
            if pair.server.received.len() == bytes.len() {
                break;
            }
        }
        assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
        assert!(pair.client.cx.counters.retrans_segs > 0);
        pair.run_for(Duration::from_secs(200));
        assert_eq!(pair.client.cx.pool.lent() + pair.server.cx.pool.lent(), 0);
    }
}

#[test]
fn lost_part_of_super_segment_goes_again_in_one() {
    let mut pair = Pair::established(&Tunables::default());
    pair.max_text = 65_000;
    let mss = u32::from(pair.client.connection.mss());
    pair.write(Which::Client, &pattern(10 * mss as usize));
    let whole = pair.poll(Which::Client).expect("the super-segment");
    assert_eq!((whole.segs, whole.text.len() as u32), (10, 10 * mss));
    pair.now = pair.now + 2 * pair.delay;
    // Of ten segments the first, and from the fifth on three, are missing.
    let mut named = pair.bare(Which::Server);
    for (from, to) in [(7, 10), (1, 4)] {
        let [left, right] = [from, to].map(|segs| whole.header.seq + segs * mss);
        named.header.options.sack.push(SackBlock { left, right });
    }
    let now = pair.now;
    assert_eq!(pair.client.take(now, &named), Verdict::Accepted);
    let mut again = Vec::new();
    while let Some(repair) = pair.poll(Which::Client) {
        let ahead = repair.header.seq.offset_from(whole.header.seq) / mss;
        again.push((ahead, repair.text.len() as u32 / mss, repair.segs));
    }
    assert_eq!(again, [(0, 1, 1), (4, 3, 3)]);
}

#[test]
fn overtaking_segments_count_each_and_their_connection_once() {
    let mut pair = Pair::established(&Tunables::default());
    let mss = u32::from(pair.client.connection.mss());
    for turn in 1..=2 {
        let una = pair.client.connection.send_sequence().una;
        pair.write(Which::Client, &pattern(4 * mss as usize));
        while pair.poll(Which::Client).is_some() {}
        pair.now = pair.now + 2 * pair.delay;
        // The second is there before the first, then those two, then all.
        let mut named = pair.bare(Which::Server);
        let block = SackBlock { left: una + mss, right: una + 2 * mss };
        named.header.ack = una;
        named.header.options.sack.push(block);
        let now = pair.now;
        assert_eq!(pair.client.take(now, &named), Verdict::Accepted);
        for segs in [2, 4] {
            let mut acknowledging = pair.bare(Which::Server);
            acknowledging.header.ack = una + segs * mss;
            assert_eq!(pair.client.take(now, &acknowledging), Verdict::Accepted);
        }
        let counters = &pair.client.cx.counters;
        assert_eq!((counters.sack_reorder, counters.retrans_segs), (1, 0));
        assert_eq!(pair.client.connection.transfer.tcb.cold().info_counts().reorderings, turn);
    }
}

#[test]
fn one_loss_is_mended_within_a_round_trip_without_a_timeout() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = |number, flying| !flying.text.is_empty() && number == 4;
    let bytes = pattern(14_600);
    pair.write(Which::Client, &bytes);
    pair.run_for(Duration::from_millis(150));
    let counters = &pair.client.cx.counters;
    assert_eq!((counters.fast_retrans, counters.slow_start_retrans), (1, 0));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
    assert_eq!(pair.client.cx.counters.timeouts, 0);
}

#[test]
fn small_end_of_a_wholly_lost_flight_does_not_wait_for_itself() {
    let tunables = Tunables { loss_probe: false, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.lose = |number, flying| !flying.text.is_empty() && number < 6;
    let bytes = pattern(5_000);
    pair.write(Which::Client, &bytes);
    pair.run_for(Duration::from_secs(5));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
    let counters = &pair.client.cx.counters;
    assert_eq!((counters.timeouts, counters.fast_retrans), (1, 0));
    // One, then two more, and the small end.
    assert_eq!(counters.slow_start_retrans, 4);
}

#[test]
fn a_peer_that_falls_silent_times_the_connection_out() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = |_, _| true;
    pair.write(Which::Client, b"anyone?");
    // RFC 9293 3.8.3, SHLD-11.
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.client.connection.state(), State::Established);
    pair.run_for(Duration::from_secs(1_200));
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut));
    assert_eq!(pair.client.cx.counters.abort_on_timeout, 1);
    assert_eq!(pair.client.cx.pool.lent(), 0);
}

#[test]
fn user_timeout_tunable_ends_neither_opening_nor_silent_ones() {
    for (millis, alive, over) in
        [(0, 400, Some(1_200)), (60_000, 55, Some(65)), (86_400_000, 3_000, None)]
    {
        let user_timeout = Duration::from_millis(millis);
        let mut pair = Pair::established(&Tunables { user_timeout, ..Tunables::default() });
        // Nothing waits to be acknowledged: nothing is given up.
        pair.run_for(Duration::from_secs(300));
        pair.lose = |_, _| true;
        pair.write(Which::Client, b"anyone?");
        pair.run_for(Duration::from_secs(alive));
        assert_eq!(pair.client.connection.state(), State::Established, "{millis} ms");
        if let Some(over) = over {
            pair.run_for(Duration::from_secs(over - alive));
            assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut), "{millis}");
        }
    }
}

#[test]
fn keep_alive_finds_out_that_the_peer_is_gone() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.start_keep_alive(cx));
    // RFC 9293 3.8.4, MUST-28: two hours at least.
    pair.run_for(Duration::from_secs(7_199));
    assert_eq!(pair.client.cx.counters.keep_alives, 0);
    pair.run_for(Duration::from_secs(101));
    assert_eq!(pair.client.connection.state(), State::Established, "the peer answered");
    assert_eq!(pair.client.cx.counters.keep_alives, 1);
    pair.lose = |_, _| true;
    pair.run_for(Duration::from_secs(7_200 + 10 * 75));
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut));
}

#[test]
fn unanswered_keep_alive_probes_do_not_shorten_retries_of_text() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.start_keep_alive(cx));
    pair.lose = |_, _| true;
    pair.run_for(Duration::from_secs(7_200 + 5 * 75));
    assert_eq!(
        pair.client.connection.snapshot(pair.now, &Tunables::default()).keep_alive_probes,
        6
    );
    pair.write(Which::Client, &pattern(14_480));
    pair.run_for(Duration::from_secs(1_200));
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut));
    assert_eq!(pair.client.cx.counters.timeouts, 15, "each of net.ipv4.tcp_retries2");
    assert_eq!(pair.client.cx.counters.keep_alives, 6);
}

#[test]
fn an_answered_keep_alive_probe_begins_the_count_anew() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.start_keep_alive(cx));
    pair.lose = |_, _| true;
    pair.run_for(Duration::from_secs(7_200 + 7 * 75));
    pair.lose = |_, _| false;
    pair.run_for(Duration::from_secs(76));
    let snapshot = pair.client.connection.snapshot(pair.now, &Tunables::default());
    assert_eq!((snapshot.state, snapshot.keep_alive_probes), (State::Established, 0));
}
