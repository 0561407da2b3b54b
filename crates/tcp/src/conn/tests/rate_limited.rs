//! Windows that the application does not fill (RFC 7661).

use core::time::Duration;

use whimbrel_recovery::cc::CongestionAlgorithm;
use whimbrel_wire::SeqNum;

use super::pair::{CLIENT_ISS, Pair, Which, pattern};
use crate::Tunables;

const MSS: u32 = 1_448;

fn cwnd(pair: &Pair) -> u32 {
    pair.client.connection.cwnd()
}

fn in_flight(pair: &Pair) -> u32 {
    pair.client.connection.transfer.tcb.sender.unacknowledged()
}

/// A client whose window has grown, whatever follows a pause.
fn grown(tunables: &Tunables) -> Pair {
    let mut pair = Pair::established(tunables);
    pair.max_text = MSS;
    for _ in 0..4 {
        pair.write(Which::Client, &pattern(100_000));
        pair.run_for(Duration::from_millis(150));
    }
    assert!(cwnd(&pair) > 100_000);
    pair
}

fn keeps() -> Tunables {
    Tunables { slow_start_after_idle: false, ..Tunables::default() }
}

#[test]
fn preserved_window_leaves_paced_after_a_pause() {
    let mut pair = grown(&keeps());
    let before = cwnd(&pair);
    pair.run_for(Duration::from_secs(10));
    pair.write(Which::Client, &pattern(100_000));
    pair.run_for(Duration::from_micros(100));
    assert_eq!(cwnd(&pair), before);
    // An initial window, and a millisecond of two windows in a round trip of 20 ms.
    let most = 10 * MSS + before / 8;
    assert!(in_flight(&pair) <= most, "{} of {before} at once", in_flight(&pair));
    pair.run_for(Duration::from_millis(9));
    assert_eq!(in_flight(&pair), 100_000);
    pair.run_until_quiet();
    assert_eq!(pair.server.received.len(), 500_000);
}

#[test]
fn window_that_carried_its_half_again_is_not_paced() {
    let mut pair = grown(&keeps());
    pair.run_for(Duration::from_secs(10));
    assert!(!pair.client.connection.transfer.tcb.sender.window.is_preserved());
    pair.write(Which::Client, &pattern(100_000));
    assert!(pair.client.connection.transfer.tcb.sender.window.is_preserved());
    for _ in 0..40 {
        pair.write(Which::Client, &pattern(400_000));
        pair.run_for(Duration::from_millis(10));
    }
    assert!(!pair.client.connection.transfer.tcb.sender.window.is_preserved());
}

#[test]
fn each_five_minutes_of_silence_halve_the_window() {
    for (minutes, halvings) in [(4, 0), (6, 1), (11, 2), (60 * 24, 30)] {
        let mut pair = grown(&keeps());
        let before = cwnd(&pair);
        pair.run_for(Duration::from_secs(60 * minutes));
        pair.write(Which::Client, &pattern(1));
        assert_eq!(cwnd(&pair), (before >> halvings).max(10 * MSS), "{minutes} minutes");
        let ssthresh = pair.client.connection.transfer.tcb.sender.ssthresh();
        assert!(ssthresh >= before / 4 * 3, "{ssthresh}");
        pair.run_until_quiet();
    }
}

#[test]
fn five_minutes_of_little_text_halve_the_window() {
    for tunables in [keeps(), Tunables::default()] {
        let mut pair = grown(&tunables);
        let before = cwnd(&pair);
        for tenths in 0..3_030 {
            assert!(tenths > 2_960 || cwnd(&pair) == before, "after {tenths} tenths of a second");
            pair.write(Which::Client, &pattern(100));
            pair.run_for(Duration::from_millis(100));
        }
        assert_eq!(cwnd(&pair), (before / 2).max(10 * MSS));
    }
}

/// The segment behind so many others of what is written next is lost once.
fn lose_one(pair: &mut Pair, behind: u32) {
    pair.lose_next = Some(SeqNum::new(CLIENT_ISS) + (1 + 400_000 + behind * MSS));
}

#[test]
fn loss_in_a_small_part_of_the_window_counts_twice() {
    for congestion_control in [CongestionAlgorithm::Reno, CongestionAlgorithm::Cubic] {
        let mut pair = grown(&Tunables { congestion_control, ..Tunables::default() });
        assert!(cwnd(&pair) > 2 * 30 * MSS);
        lose_one(&mut pair, 20);
        pair.write(Which::Client, &pattern(24 * MSS as usize));
        pair.run_until_quiet();
        assert_eq!(pair.lose_next, None, "it was not sent");
        // 20 of 24 segments were acknowledged before the loss was found; one was sent again.
        let most = (24 - 1) * MSS / 2;
        assert!((8 * MSS..=most).contains(&cwnd(&pair)), "{}", cwnd(&pair));
        assert_eq!(pair.client.connection.transfer.tcb.sender.ssthresh(), cwnd(&pair));
    }
}

/// The threshold after a loss among the last four of so many segments.
fn ssthresh_after_late_loss(share_of_cwnd: impl Fn(u32) -> u32) -> (u32, u32) {
    let congestion_control = CongestionAlgorithm::Reno;
    let mut pair = grown(&Tunables { congestion_control, ..Tunables::default() });
    let segments = share_of_cwnd(cwnd(&pair) / MSS);
    lose_one(&mut pair, segments - 4);
    pair.write(Which::Client, &pattern((segments * MSS) as usize));
    pair.run_until_quiet();
    assert_eq!(pair.lose_next, None, "it was not sent");
    (segments, pair.client.connection.transfer.tcb.sender.ssthresh() / MSS)
}

#[test]
fn loss_at_the_end_of_a_burst_counts_what_was_carried() {
    let (segments, ssthresh) = ssthresh_after_late_loss(|cwnd| cwnd * 2 / 5);
    assert!((segments * 2 / 5..=segments / 2).contains(&ssthresh), "{ssthresh} of {segments}");
}

#[test]
fn loss_in_a_validated_window_counts_what_is_in_flight() {
    let (_, ssthresh) = ssthresh_after_late_loss(|cwnd| cwnd * 4 / 5);
    assert_eq!(ssthresh, 2);
}
