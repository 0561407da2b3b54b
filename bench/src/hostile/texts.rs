//! Streams of a peer within its window: text in any order.

use super::{BUFFER, BURST, Victim, numbers};

pub(super) fn ascending(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, 1..)
}

pub(super) fn descending(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, numbers().rev().map(|it| 1 + it))
}

pub(super) fn every_second(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, (1..).step_by(2))
}

pub(super) fn descending_second(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, numbers().rev().map(|it| 1 + 2 * it))
}

/// A hole at RCV.NXT, then three bytes of each four.
pub(super) fn triples(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(3, (1..).step_by(4))
}

pub(super) fn random(victim: &Victim) -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let draw = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (state >> 8) % (BUFFER - 2)
    };
    victim.texts(1, numbers().map(draw))
}

/// Each begins within the one before.
pub(super) fn overlapping(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(64, numbers().rev().map(|it| 1 + 16 * it))
}

/// Long enough to be joined, in order, and each nearly all of what came before.
pub(super) fn sliding_bursts(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(600, numbers().map(|it| 31 * it))
}

/// A burst that is joined, and the same again and again.
pub(super) fn bursts_again(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1_460, numbers().map(|it| 1_460 * (it % BURST as u32)))
}
