//! Tests that a list written anew is complete.

use std::vec::Vec;

use super::*;

/// A byte of the stream that tells where it stands.
fn byte(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

/// Numbers that look random, the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// Text of lengths below `most` arrives within `span` bytes, and now and then what is missing in front.
fn everything_is_there(draws: &mut Draws, span: u64, most: u64) {
    let (mut held, mut ready, mut nxt) = (OutOfOrder::default(), ChunkQueue::default(), 0);
    let mut pool = ChunkPool::default();
    for _ in 0..60 {
        if draws.below(6) == 0 {
            let filled = nxt + draws.below(most);
            nxt = held.release(filled, &mut pool, &mut ready);
            let read: Vec<u8> =
                core::iter::from_fn(|| ready.pop_up_to(usize::MAX)).flatten().collect();
            let expected: Vec<u8> = (nxt - read.len() as u64..nxt).map(byte).collect();
            assert_eq!(read, expected);
            assert!(nxt - read.len() as u64 >= filled.min(nxt), "only what was held");
            assert_eq!(nxt - filled, read.len() as u64, "and all of it");
        } else {
            let start = nxt + 1 + draws.below(span);
            let end = start + 1 + draws.below(most);
            if held.around(start).is_none_or(|(_, held_end)| held_end < end) {
                let text: Vec<u8> = (start..end).map(byte).collect();
                held.insert(start, end, Payload::borrowed(&text), 0);
                assert!(held.around(start).is_some_and(|(_, held_end)| held_end >= end));
            }
        }
        assert_eq!(held.ranges(), held.iter().count());
    }
}

#[test]
fn short_and_long_pieces_in_a_kept_chunk_lose_no_text() {
    let mut draws = Draws(0x1234_5678_9abc_def1);
    for _ in 0..500 {
        for span in [40, 400, 20_000, 300_000] {
            for most in [5, 64, 3_000, 20_000] {
                everything_is_there(&mut draws, span, most);
            }
        }
    }
}
