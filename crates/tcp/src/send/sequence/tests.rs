//! Acknowledgments and windows, wherever on the circle they lie.

use proptest::prelude::*;
use whimbrel_wire::{SeqNum, WindowSize};

use super::{AckPlace, SendSequence};

/// A space at `una` with so much sent, some of it again, and so large a window once seen.
fn space(una: u32, again: u32, sent: u32, max_wnd: u32) -> SendSequence {
    let una = SeqNum::new(una);
    SendSequence {
        nxt: una + again.min(sent),
        max: una + sent,
        wnd: WindowSize::new(max_wnd),
        max_wnd: WindowSize::new(max_wnd),
        ..SendSequence::new(una, SeqNum::new(0))
    }
}

#[test]
fn an_acknowledgment_has_one_place() {
    let snd = space(u32::MAX - 9, 0, 20, 1_000);
    let judge = |offset: i32| {
        let ack =
            if offset < 0 { snd.una - offset.unsigned_abs() } else { snd.una + offset as u32 };
        snd.judge_ack(ack)
    };
    assert_eq!(judge(0), AckPlace::Current);
    assert_eq!((judge(1), judge(20)), (AckPlace::New(1), AckPlace::New(20)));
    assert_eq!((judge(21), judge(i32::MAX)), (AckPlace::Unsent, AckPlace::Unsent));
    assert_eq!((judge(-1), judge(-1_000)), (AckPlace::Old, AckPlace::Old));
    assert_eq!((judge(-1_001), judge(i32::MIN)), (AckPlace::TooOld, AckPlace::TooOld));
}

#[test]
fn after_a_timeout_what_was_sent_before_is_still_acknowledged() {
    let mut snd = space(100, 0, 5_000, 10_000);
    assert_eq!(snd.judge_ack(SeqNum::new(4_100)), AckPlace::New(4_000));
    snd.advance(SeqNum::new(4_100));
    assert_eq!((snd.una, snd.nxt, snd.max), (snd.nxt, SeqNum::new(4_100), SeqNum::new(5_100)));
    assert_eq!(snd.usable(), 6_000);
}

#[test]
fn only_newer_segments_move_the_window() {
    let mut snd = SendSequence::new(SeqNum::new(0), SeqNum::new(u32::MAX));
    let mut update = |seq, ack, wnd| {
        snd.update_window(SeqNum::new(seq), SeqNum::new(ack), WindowSize::new(wnd));
        snd.wnd.get()
    };
    assert_eq!(update(0, 0, 500), 500, "a later number, across the wrap");
    assert_eq!(update(u32::MAX, 10, 9), 500, "an earlier one");
    assert_eq!(update(0, 10, 600), 600, "the same, and more acknowledged");
    assert_eq!(update(0, 9, 9), 600, "the same, and less");
    assert_eq!(update(0, 10, 0), 0, "a window may close");
    assert_eq!(snd.max_wnd.get(), 600);
}

#[test]
fn a_window_that_shrank_below_what_was_sent_admits_nothing() {
    let mut snd = space(0, 5_000, 5_000, 10_000);
    snd.update_window(SeqNum::new(1), SeqNum::new(0), WindowSize::new(100));
    assert_eq!(snd.usable(), 0);
}

proptest! {
    #[test]
    fn judging_depends_on_distances_alone(
        una: u32,
        again in 0u32..1 << 30,
        sent in 0u32..1 << 30,
        max_wnd in 0u32..1 << 30,
        ahead: i32,
    ) {
        let snd = space(una, again, sent, max_wnd);
        let place = snd.judge_ack(SeqNum::new(una.wrapping_add_signed(ahead)));
        let expected = match i64::from(ahead) {
            0 => AckPlace::Current,
            ahead if ahead > i64::from(sent) => AckPlace::Unsent,
            ahead if ahead > 0 => AckPlace::New(ahead as u32),
            ahead if ahead < -i64::from(max_wnd) => AckPlace::TooOld,
            _ => AckPlace::Old,
        };
        prop_assert_eq!(place, expected);
        if let AckPlace::New(numbers) = place {
            let (mut after, edge) = (snd, snd.una + snd.wnd.get());
            after.advance(SeqNum::new(una) + numbers);
            prop_assert!(after.una.at_or_before(after.nxt) && after.nxt.at_or_before(after.max));
            prop_assert_eq!(after.una + after.wnd.get(), after.una.later(edge));
        }
    }
}
