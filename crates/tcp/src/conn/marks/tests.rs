use super::*;

const MSS: u32 = 1_000;

fn counters() -> MarkCounters {
    MarkCounters::new(Ecn::NotEct, Report::Over)
}

/// The option of a peer at which so many bytes arrived marked.
fn told(ce: u32) -> Option<AccurateEcn> {
    Some(AccurateEcn::new(AccurateEcnOrder::Ect0First, &[1, ce]))
}

#[test]
fn least_increment_is_taken_while_nothing_says_more() {
    let mut marks = counters();
    for (ace, segs, packets) in [(5, 2, 0), (6, 2, 1), (6, 1, 0), (1, 3, 3), (0, 7, 7)] {
        assert_eq!(marks.take(ace, None, segs, MSS), (packets, true), "{ace}");
    }
}

#[test]
fn counter_that_may_have_wrapped_has_wrapped_among_marks_only() {
    let mut marks = counters();
    assert_eq!(marks.take(5, None, 40, MSS), (0, true), "nothing was ever marked");
    assert_eq!(marks.take(6, None, 17, MSS), (17, true), "1, 9 or 17 of 17");
    assert_eq!(marks.take(6, None, 17, MSS), (16, true), "0, 8 or 16 of 17");
    assert_eq!(marks.take(6, None, 7, MSS), (0, true), "fewer than 8 segments");
    assert_eq!(marks.take(6, None, 17, MSS), (0, true), "and no marks before");
}

#[test]
fn option_says_how_often_the_counter_wrapped() {
    let mut marks = counters();
    assert_eq!(marks.take(6, told(900), 40, MSS), (1, true));
    assert_eq!(marks.take(7, told(10_000), 40, MSS), (9, true));
    assert_eq!(marks.take(7, told(10_000), 40, MSS), (0, true));
    assert_eq!(marks.take(7, told(26_000), 40, MSS), (16, true));
    // Whatever it says: no more than were acknowledged.
    assert_eq!(marks.take(7, told(0xff_ffff), 10, MSS), (8, true));
    let mut marks = MarkCounters { peer_ce_bytes: 0xff_ff00, ..counters() };
    assert_eq!(marks.take(6, told(0x1e8), 40, MSS), (1, true), "it wraps at 2^24");
}

#[test]
fn marked_bytes_without_marked_packets_contradict_each_other() {
    assert_eq!(counters().take(5, told(1_000), 7, MSS), (0, false));
    assert_eq!(counters().take(5, told(8_000), 8, MSS), (8, true), "8 packets look like none");
}

#[test]
fn option_has_each_counter_that_changed_and_no_other() {
    let shown = |bytes| {
        let (option, room) = MarkCounters { bytes, ..counters() }.option();
        ([option.ect0_bytes(), option.ce_bytes(), option.ect1_bytes()], room)
    };
    assert_eq!(shown([1, 0, 1]), ([Some(1), Some(0), Some(1)], 12), "a trial");
    assert_eq!(shown([9, 0, 1]), ([Some(9), None, None], 8));
    assert_eq!(shown([9, 7, 1]), ([Some(9), Some(7), None], 8));
    assert_eq!(shown([1, 7, 1]), ([Some(1), Some(7), None], 8));
    assert_eq!(shown([1, 0, 8]), ([None, None, Some(8)], 8));
    assert_eq!(shown([1, 7, 8]), ([None, Some(7), Some(8)], 8));
    assert_eq!(shown([9, 0, 8]), ([Some(9), Some(0), Some(8)], 12));
}
