use super::*;

const SIZE: u32 = 256 << 10;
const MSS: u32 = 1_448;
const RTT: u32 = 70_000;

fn clock(now: u32) -> RoundTripEnd {
    RoundTripEnd::Clock { now, rtt: Some(RTT) }
}

/// One whose first round trip began at 0, when nothing had been read.
fn begun() -> RightSizing {
    let mut sizing = RightSizing::default();
    assert_eq!(sizing.on_text(0, SIZE, MSS, clock(0)), None);
    sizing
}

#[test]
fn what_a_short_connection_receives_is_not_looked_at() {
    assert!(!RightSizing::is_due(None, SIZE / 8 - 1, SIZE));
    assert!(RightSizing::is_due(None, SIZE / 8, SIZE));
}

#[test]
fn nothing_is_known_before_a_round_trip_is_over() {
    let mut sizing = begun();
    assert_eq!(sizing.on_text(200_000, SIZE, MSS, clock(RTT - 1)), None);
    assert!(sizing.on_text(200_000, SIZE, MSS, clock(RTT)).is_some());
}

#[test]
fn a_round_trip_like_the_one_before_needs_twice_what_was_read() {
    let mut sizing = begun();
    let _first = sizing.on_text(200_000, SIZE, MSS, clock(RTT));
    let needed = sizing.on_text(400_000, SIZE, MSS, clock(2 * RTT));
    assert_eq!(needed, Some(2 * 200_000 + 16 * MSS));
}

#[test]
fn in_slow_start_six_times_what_was_read_is_needed() {
    let mut sizing = begun();
    let _first = sizing.on_text(200_000, SIZE, MSS, clock(RTT));
    let needed = sizing.on_text(600_000, SIZE, MSS, clock(2 * RTT));
    assert_eq!(needed, Some(3 * (2 * 400_000 + 16 * MSS)));
    // However much more it is: after a pause of the sender it is no news about the path.
    let needed = sizing.on_text(1_800_000, SIZE, MSS, clock(3 * RTT));
    assert_eq!(needed, Some(3 * (2 * 1_200_000 + 16 * MSS)));
}

#[test]
fn a_reader_that_is_slow_needs_no_more_than_it_reads() {
    let mut sizing = begun();
    let needed = sizing.on_text(10_000, SIZE, MSS, clock(RTT));
    assert_eq!(needed, Some(0), "not even what is added for what is late");
}

#[test]
fn an_echo_of_what_was_sent_since_ends_a_round_trip() {
    let mut sizing = RightSizing::default();
    let tsval = u32::MAX - 10;
    assert_eq!(
        sizing.on_text(0, SIZE, MSS, RoundTripEnd::Echo { now: tsval, echo: tsval - 70 }),
        None
    );
    // Up to the millisecond in which it began it may be an answer to what was sent before.
    for echo in [tsval - 30, tsval] {
        let now = tsval.wrapping_add(60);
        assert_eq!(sizing.on_text(90_000, SIZE, MSS, RoundTripEnd::Echo { now, echo }), None);
    }
    let (now, echo) = (tsval.wrapping_add(71), tsval.wrapping_add(1));
    let needed = sizing.on_text(100_000, SIZE, MSS, RoundTripEnd::Echo { now, echo });
    assert!(needed.is_some(), "across 2^32");
}

#[test]
fn reading_the_whole_buffer_ends_an_unmeasured_round_trip() {
    let mut sizing = RightSizing::default();
    let trip = |now| RoundTripEnd::Clock { now, rtt: None };
    assert_eq!(sizing.on_text(0, SIZE, MSS, trip(0)), None);
    assert_eq!(sizing.on_text(SIZE - 1, SIZE, MSS, trip(9_000_000)), None);
    let needed = sizing.on_text(SIZE, SIZE, MSS, trip(9_000_001));
    assert!(needed.is_some_and(|needed| needed > 2 * SIZE));
}

#[test]
fn bytes_are_counted_across_their_wrap() {
    let mut sizing = RightSizing::default();
    let before = u32::MAX - 1_000;
    assert_eq!(sizing.on_text(before, SIZE, MSS, clock(0)), None);
    assert!(RightSizing::is_due(Some(&sizing), 199_999, SIZE));
    let _first = sizing.on_text(before.wrapping_add(200_000), SIZE, MSS, clock(RTT));
    let needed = sizing.on_text(before.wrapping_add(400_000), SIZE, MSS, clock(2 * RTT));
    assert_eq!(needed, Some(2 * 200_000 + 16 * MSS));
}

#[test]
fn no_amount_overflows() {
    let mut sizing = begun();
    assert_eq!(sizing.on_text(u32::MAX, u32::MAX, 65_535, clock(RTT)), Some(u32::MAX));
    let half = 1 << 31;
    let mut sizing = begun();
    assert!(sizing.on_text(half, SIZE, MSS, clock(RTT)).is_some());
    assert_eq!(sizing.on_text(half - 1, SIZE, MSS, clock(2 * RTT)), Some(u32::MAX));
}
