//! Tests of `mtu_search`.

use std::vec::Vec;

use super::*;

const HEADERS: u16 = 52;
const LOSS_INTERVAL: Duration = Duration::from_secs(4);
const INTERVAL: Duration = Duration::from_secs(600);

fn view(millis: u64, mss: u16) -> SearchView {
    let now = Instant::from_millis(millis);
    let (loss_interval, interval) = (LOSS_INTERVAL, INTERVAL);
    SearchView { now, mss, headers: HEADERS, loss_interval, interval }
}

/// A search after segments of 1,448 bytes were not answered.
fn suspected() -> MtuSearch {
    let mut search = MtuSearch::new(1_448, Instant::ZERO);
    search.on_suspicion(1_448, Instant::ZERO);
    search
}

fn probe(search: &mut MtuSearch, at: &SearchView, outcome: MtuProbeOutcome) -> ProbeVerdict {
    let size = search.poll_size(at).expect("a probe is due");
    search.on_sent(size);
    assert_eq!(search.poll_size(at), None, "one is out");
    search.on_outcome(outcome, at)
}

#[test]
fn size_that_was_in_use_is_tried_first_and_ends_the_search() {
    let mut search = suspected();
    assert_eq!(search.poll_size(&view(0, 1_024)), Some(1_448));
    let verdict = probe(&mut search, &view(0, 1_024), MtuProbeOutcome::Arrived);
    assert_eq!(verdict, ProbeVerdict::Fits(1_448));
    assert_eq!(search.take_news(), Some(PathFinding::Wide));
    assert!(search.is_over(1_448) && !search.has_news());
}

#[test]
fn failures_and_successes_halve_the_range_until_it_is_small() {
    let (mut search, mut mss, mut now) = (suspected(), 1_024, 0);
    let mut sizes = Vec::new();
    while let Some(size) = search.poll_size(&view(now, mss)) {
        sizes.push(size);
        let fits = size <= 1_148;
        let outcome = if fits { MtuProbeOutcome::Arrived } else { MtuProbeOutcome::Lost };
        match probe(&mut search, &view(now, mss), outcome) {
            ProbeVerdict::Fits(size) => mss = size,
            verdict => {
                assert_eq!(verdict, ProbeVerdict::TooLarge);
                assert_eq!(search.poll_size(&view(now + 3_999, mss)), None, "{size}");
                now += 4_000;
            }
        }
        assert_eq!(search.take_news(), Some(PathFinding::Narrow(mss + HEADERS)));
    }
    assert_eq!(sizes, [1_448, 1_236, 1_130, 1_183, 1_156, 1_143, 1_149]);
    assert_eq!(mss, 1_143);
    assert!(!search.is_over(mss));
    // Ten minutes later all of it is searched again, from the largest size on.
    assert_eq!(search.poll_size(&view(now + 599_999, mss)), None);
    assert_eq!(search.poll_size(&view(now + 600_000, mss)), Some(1_448));
}

#[test]
fn size_in_use_before_an_outage_is_tried_before_larger_ones() {
    let mut search = suspected();
    let _ = probe(&mut search, &view(0, 1_024), MtuProbeOutcome::Lost);
    search.on_suspicion(1_200, Instant::from_millis(10));
    search.on_suspicion(1_024, Instant::from_millis(30));
    assert_eq!(search.poll_size(&view(30, 512)), Some(1_200));
    assert_eq!(
        probe(&mut search, &view(30, 512), MtuProbeOutcome::Arrived),
        ProbeVerdict::Fits(1_200)
    );
    assert_eq!(search.poll_size(&view(30, 1_200)), Some(1_324));
}

#[test]
fn probe_that_is_unanswered_twice_has_failed() {
    let mut search = suspected();
    for (now, verdict) in [(0, ProbeVerdict::Unknown), (20_000, ProbeVerdict::TooLarge)] {
        assert_eq!(search.poll_size(&view(now, 1_024)), Some(1_448));
        let said = probe(&mut search, &view(now, 1_024), MtuProbeOutcome::TimedOut);
        assert_eq!(said, verdict);
        assert_eq!(search.poll_size(&view(now + 19_999, 1_024)), None);
    }
    assert_eq!(search.poll_size(&view(40_000, 1_024)), Some(1_236));
}

#[test]
fn inconclusive_probe_goes_again_at_once() {
    let mut search = suspected();
    let verdict = probe(&mut search, &view(5, 1_024), MtuProbeOutcome::Inconclusive);
    assert_eq!((verdict, search.has_news()), (ProbeVerdict::Unknown, false));
    assert_eq!(search.poll_size(&view(5, 1_024)), Some(1_448));
}

#[test]
fn reports_and_links_bound_what_is_tried() {
    let mut search = suspected();
    search.on_report(1_200, &view(0, 1_024));
    assert_eq!(search.poll_size(&view(599_999, 1_024)), None);
    assert_eq!(search.poll_size(&view(600_000, 1_024)), Some(1_448));

    let mut search = suspected();
    search.limit(1_100);
    assert_eq!(search.poll_size(&view(0, 1_024)), Some(1_100));
    assert!(search.is_over(1_100));
}
