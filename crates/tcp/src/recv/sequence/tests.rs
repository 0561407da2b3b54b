//! The right edge of the receive window.

use proptest::prelude::*;
use whimbrel_wire::{SeqNum, WindowScale, WindowSize};

use super::RecvSequence;

#[test]
fn small_steps_of_the_edge_are_kept_back() {
    let rcv = RecvSequence::new(SeqNum::new(u32::MAX - 5), WindowSize::new(10_000));
    let edge = |free| rcv.judge_edge(free, 64_000, 1_460).offset_from(rcv.nxt);
    assert_eq!(edge(10_000 + 1_459), 10_000);
    assert_eq!(edge(10_000 + 1_460), 11_460);
    assert_eq!(rcv.judge_edge(10_100, 200, 1_460), rcv.nxt + 10_100, "half of a tiny buffer");
}

#[test]
fn a_buffer_that_fills_never_takes_back_what_was_announced() {
    let rcv = RecvSequence::new(SeqNum::new(7), WindowSize::new(10_000));
    assert_eq!(rcv.judge_edge(0, 64_000, 1_460), rcv.edge);
    assert_eq!(rcv.judge_edge(9_999, 64_000, 1_460), rcv.edge);
}

proptest! {
    #[test]
    fn the_edge_never_moves_left_nor_beyond_what_is_free(
        nxt: u32,
        wnd in 0u32..=1 << 30,
        free in 0u32..=1 << 30,
        buffer in 1u32..=1 << 30,
        mss in 36u32..=65_535,
    ) {
        let rcv = RecvSequence::new(SeqNum::new(nxt), WindowSize::new(wnd));
        let edge = rcv.judge_edge(free, buffer, mss);
        prop_assert!(edge.at_or_after(rcv.edge));
        prop_assert!(edge == rcv.edge || edge == rcv.nxt + free);
        let least = mss.min(buffer / 2).max(1);
        prop_assert!(edge == rcv.edge || edge.offset_from(rcv.edge) >= least);
        prop_assert!(free < wnd.saturating_add(least) || edge == rcv.nxt + free);
    }

    #[test]
    fn what_is_announced_is_the_window_rounded_down(nxt: u32, wnd in 0u32..=1 << 30, shift in 0u8..=14) {
        let rcv = RecvSequence::new(SeqNum::new(nxt), WindowSize::new(wnd));
        let scale = WindowScale::new(shift);
        let announced = rcv.raw_window(scale).scaled(scale).get();
        let most = 65_535u32 << shift;
        prop_assert!(announced <= rcv.wnd());
        prop_assert!(rcv.wnd().min(most) - announced < 1 << shift);
    }
}
