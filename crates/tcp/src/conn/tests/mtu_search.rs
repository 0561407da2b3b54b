//! Paths that drop large segments in silence, and outages, which look alike at first (RFC 4821).

use std::time::Duration;

use super::pair::{Flying, Pair, Which, pattern};
use crate::conn::PathFinding;
use crate::tunables::MtuProbing;
use crate::{Context, Tunables};

fn narrow(_: u64, flying: &Flying) -> bool {
    flying.text.len() > 1_148 * usize::from(flying.segs)
}

fn very_narrow(_: u64, flying: &Flying) -> bool {
    flying.text.len() > 300 * usize::from(flying.segs)
}

fn down(_: u64, _: &Flying) -> bool {
    true
}

fn mss(pair: &Pair) -> u16 {
    pair.client.connection.mss()
}

/// Writes all of it as there is room. Returns what was found of the path last.
fn transfer(pair: &mut Pair, bytes: &[u8]) -> Option<PathFinding> {
    let (mut written, from) = (0, pair.server.received.len());
    for _ in 0..2_000 {
        written += pair.write(Which::Client, &bytes[written..]);
        pair.run_for(Duration::from_millis(10));
        if pair.server.received.len() == from + bytes.len() {
            break;
        }
    }
    assert!(pair.server.received[from..] == *bytes, "{} bytes", pair.server.received.len());
    pair.client.found
}

/// Sends until the search has ended: each lost probe is followed by a wait.
fn search(pair: &mut Pair) {
    for _ in 0..30 {
        let _ = transfer(pair, &pattern(100_000));
        pair.run_for(Duration::from_secs(5));
    }
}

fn counts(cx: &Context) -> (u64, u64, u64) {
    let counters = &cx.counters;
    (counters.path_mtu_suspected, counters.mtu_probe_failures, counters.mtu_probe_successes)
}

#[test]
fn silent_narrow_path_is_left_after_two_timeouts() {
    for max_text in [0, 65_000] {
        let mut pair = Pair::established(&Tunables::default());
        pair.max_text = max_text;
        let bytes = pattern(400_000);
        let _ = transfer(&mut pair, &bytes);
        assert_eq!(counts(&pair.client.cx), (0, 0, 0));
        pair.lose = narrow;
        let _ = transfer(&mut pair, &bytes);
        let news = transfer(&mut pair, &bytes);
        assert_eq!(pair.client.cx.counters.timeouts, 2);
        let (suspected, failures, _) = counts(&pair.client.cx);
        assert_eq!((suspected, failures > 0), (1, true));
        assert!((1_024..=1_148).contains(&mss(&pair)), "{}", mss(&pair));
        assert_eq!(news, Some(PathFinding::Narrow(mss(&pair) + 52)));
    }
}

#[test]
fn lost_probe_of_the_path_leaves_cwnd_as_it_is() {
    for sack in [true, false] {
        let tunables = Tunables { mtu_probing: MtuProbing::Always, sack, ..Tunables::default() };
        let mut pair = Pair::established(&tunables);
        pair.lose = narrow;
        let _ = transfer(&mut pair, &pattern(1_000));
        let cwnd = pair.client.connection.cwnd();
        pair.write(Which::Client, &pattern(14_000));
        pair.run_for(Duration::from_millis(70));
        assert_eq!(pair.server.received.len(), 15_000, "{sack}");
        assert_eq!(counts(&pair.client.cx), (0, 1, 0), "{sack}");
        assert!(pair.client.connection.cwnd() >= cwnd, "{sack}");
        let counters = &pair.client.cx.counters;
        assert_eq!((counters.timeouts, counters.sack_recovery, counters.reno_recovery), (0, 0, 0));
        let ssthresh = pair.client.connection.transfer.tcb.sender.ssthresh();
        search(&mut pair);
        assert!(counts(&pair.client.cx).1 > 2, "more probes were lost");
        assert_eq!(pair.client.connection.transfer.tcb.sender.ssthresh(), ssthresh);
        let counters = &pair.client.cx.counters;
        assert_eq!((counters.timeouts, counters.sack_recovery, counters.reno_recovery), (0, 0, 0));
    }
}

#[test]
fn full_segments_return_soon_after_an_outage() {
    for (sack, mtu_probe_floor) in [(true, 48), (false, 48), (true, 1_024)] {
        let tunables = Tunables { sack, mtu_probe_floor, ..Tunables::default() };
        let mut pair = Pair::established(&tunables);
        pair.lose = down;
        assert_eq!(pair.write(Which::Client, &pattern(14_480)), 14_480);
        pair.run_for(Duration::from_secs(7));
        assert_eq!(pair.client.connection.state(), crate::conn::State::Established);
        assert!((mtu_probe_floor..mtu_probe_floor.max(512) + 1).contains(&mss(&pair)));
        pair.lose = |_, _| false;
        pair.run_for(Duration::from_secs(20));
        let news = transfer(&mut pair, &pattern(100_000));
        assert_eq!((mss(&pair), news), (1_448, Some(PathFinding::Wide)), "{sack}");
        assert_eq!(counts(&pair.client.cx).1, 0);
        assert!(pair.client.connection.transfer.tcb.cold().mtu_search().is_none());
    }
}

#[test]
fn segments_are_halved_down_to_the_floor() {
    for floor in [48, 200] {
        let mut pair =
            Pair::established(&Tunables { mtu_probe_floor: floor, ..Tunables::default() });
        pair.lose = very_narrow;
        let _ = transfer(&mut pair, &pattern(3_000));
        assert_eq!((mss(&pair), counts(&pair.client.cx).0), (256, 3));
    }
    let narrower = Tunables { mtu_probe_floor: 400, ..Tunables::default() };
    for (tunables, floor) in [(narrower, 400), (Tunables::default(), 1_024)] {
        let mut pair = Pair::established(&tunables);
        pair.lose = very_narrow;
        pair.write(Which::Client, &pattern(3_000));
        pair.run_for(Duration::from_secs(30));
        assert_eq!((mss(&pair), pair.server.received.len()), (floor, 0));
    }
}

#[test]
fn probing_that_is_off_leaves_a_narrow_path_stuck() {
    let mut pair =
        Pair::established(&Tunables { mtu_probing: MtuProbing::Off, ..Tunables::default() });
    pair.lose = narrow;
    pair.write(Which::Client, &pattern(14_480));
    pair.run_for(Duration::from_secs(20));
    assert_eq!((pair.server.received.len(), mss(&pair)), (0, 1_448));
    assert_eq!(counts(&pair.client.cx), (0, 0, 0));
}

#[test]
fn probing_from_the_beginning_grows_to_what_the_path_carries() {
    let tunables = Tunables { mtu_probing: MtuProbing::Always, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    assert_eq!((mss(&pair), pair.server.connection.mss()), (1_024, 1_024));
    let _ = transfer(&mut pair, &pattern(100_000));
    assert_eq!((mss(&pair), counts(&pair.client.cx)), (1_448, (0, 0, 1)));

    let mut pair = Pair::established(&tunables);
    pair.lose = narrow;
    search(&mut pair);
    assert!((1_140..=1_148).contains(&mss(&pair)), "{}", mss(&pair));
    assert_eq!(pair.client.cx.counters.timeouts, 0);
}

#[test]
fn short_segments_that_are_lost_make_no_path_suspect() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = down;
    pair.write(Which::Client, &pattern(700));
    pair.run_for(Duration::from_secs(7));
    assert_eq!((mss(&pair), counts(&pair.client.cx).0), (1_448, 0));
}

#[test]
fn path_that_became_wide_is_used_ten_minutes_later() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = narrow;
    search(&mut pair);
    let narrow = mss(&pair);
    assert!((1_140..=1_148).contains(&narrow), "{narrow}");
    pair.lose = |_, _| false;
    let _ = transfer(&mut pair, &pattern(100_000));
    assert_eq!(mss(&pair), narrow);
    pair.run_for(Duration::from_secs(600));
    let news = transfer(&mut pair, &pattern(100_000));
    assert_eq!((mss(&pair), news), (1_448, Some(PathFinding::Wide)));
}

#[test]
fn loss_probe_behind_many_segments_counts_as_first_timeout() {
    for (segments, suspected) in [(9, 0), (10, 1)] {
        let mut pair = Pair::established(&Tunables::default());
        let _ = transfer(&mut pair, &pattern(100_000));
        pair.lose = down;
        pair.write(Which::Client, &pattern(1_448 * segments));
        while pair.client.cx.counters.timeouts == 0 {
            pair.run_for(Duration::from_millis(1));
        }
        let found = (pair.client.cx.counters.loss_probes, counts(&pair.client.cx).0);
        assert_eq!(found, (1, suspected), "{segments}");
    }
}

#[test]
fn full_segments_that_were_only_late_end_the_suspicion() {
    for sack in [true, false] {
        let mut pair = Pair::established(&Tunables { sack, ..Tunables::default() });
        pair.delay = Duration::from_secs(5);
        assert_eq!(pair.write(Which::Client, &pattern(14_480)), 14_480);
        pair.run_for(Duration::from_secs(8));
        assert_eq!((counts(&pair.client.cx).0, mss(&pair)), (1, 1_024), "{sack}");
        pair.run_for(Duration::from_secs(4));
        assert_eq!((pair.client.cx.counters.path_mtu_refuted, mss(&pair)), (1, 1_448), "{sack}");
    }
}

#[test]
fn answered_segments_that_are_not_taken_make_no_path_suspect() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = |_, flying| !flying.text.is_empty();
    assert_eq!(pair.write(Which::Client, &pattern(5_000)), 5_000);
    while pair.client.cx.counters.timeouts < 6 {
        let timeouts = pair.client.cx.counters.timeouts;
        while pair.client.cx.counters.timeouts == timeouts {
            pair.run_for(Duration::from_millis(1));
        }
        let (answer, now) = (pair.bare(Which::Server), pair.now);
        let _ = pair.client.take(now, &answer);
    }
    assert_eq!((counts(&pair.client.cx).0, mss(&pair)), (0, 1_448));
}
