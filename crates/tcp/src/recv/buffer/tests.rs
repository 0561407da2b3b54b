//! A stream put together again, from pieces in any order.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{SackBlock, SackBlocks};

use super::{Held, RecvBuffer, Text};
use crate::recv::ChunkPool;
use whimbrel_base::packet::{ChunkText, LARGEST_CHUNK, Payload};

/// Close to the wrap.
const START: SeqNum = SeqNum::new(u32::MAX - 700);

/// A buffer and the stream that it is fed from.
struct Fed {
    buffer: RecvBuffer,
    pool: ChunkPool,
    stream: Vec<u8>,
    nxt: usize,
    read: Vec<u8>,
}

impl Fed {
    fn new(len: usize) -> Self {
        let stream = (0..len).map(|at| (at ^ (at >> 8) ^ 0x55) as u8).collect();
        Self {
            buffer: RecvBuffer::default(),
            pool: ChunkPool::default(),
            stream,
            nxt: 0,
            read: Vec::new(),
        }
    }

    /// The bytes `from .. to` of the stream arrive, as `payload` makes a payload of them.
    fn take_as(
        &mut self,
        from: usize,
        to: usize,
        payload: Payload<'_>,
        limit: usize,
    ) -> Option<Held> {
        let skip = self.nxt.saturating_sub(from).min(to - from);
        let text = Text { skip: skip as u32, take: (to - from - skip) as u32 };
        if text.take == 0 {
            return None;
        }
        if from + skip == self.nxt {
            self.nxt += self.buffer.append(&mut self.pool, payload, text.skip, text.take) as usize;
            return None;
        }
        let ahead = (from - self.nxt) as u32;
        Some(self.buffer.hold(ahead, payload, text, limit))
    }

    fn take(&mut self, from: usize, to: usize) -> Option<Held> {
        let bytes = self.stream[from..to].to_vec();
        self.take_as(from, to, Payload::borrowed(&bytes), 100)
    }

    fn drain(&mut self) {
        while let Some(chunk) = self.buffer.read(usize::MAX) {
            assert!(!chunk.is_empty());
            self.read.extend_from_slice(&chunk);
        }
    }

    /// The blocks named, as offsets into the stream.
    fn blocks(&self, most: usize) -> Vec<(usize, usize)> {
        let (mut blocks, nxt) = (SackBlocks::NONE, START + self.nxt as u32);
        self.buffer.sack_blocks(nxt, most, &mut blocks);
        let offset = |number: SeqNum| number.offset_from(START) as usize;
        let named = blocks.as_slice().iter();
        named.map(|SackBlock { left, right }| (offset(*left), offset(*right))).collect()
    }
}

#[test]
fn a_gap_that_is_filled_lets_all_behind_it_through() {
    let mut fed = Fed::new(400);
    assert_eq!(fed.take(100, 200), Some(Held::Kept));
    assert_eq!(fed.take(300, 400), Some(Held::Kept));
    assert_eq!(fed.take(120, 180), Some(Held::Duplicate));
    assert_eq!((fed.buffer.unread(), fed.nxt), (0, 0));
    fed.take(0, 150);
    assert_eq!((fed.buffer.unread(), fed.nxt), (200, 200));
    fed.take(180, 310);
    fed.drain();
    assert_eq!((fed.nxt, &fed.read), (400, &fed.stream));
    assert!(fed.buffer.is_empty());
}

#[test]
fn ranges_beyond_the_limit_are_refused_but_known_ones_grow() {
    let mut fed = Fed::new(2_000);
    let bytes = [0; 10];
    for at in [100, 200, 300] {
        let held = fed.take_as(at, at + 10, Payload::borrowed(&bytes), 3);
        assert_eq!(held, Some(Held::Kept));
    }
    let mut hold = |at| fed.take_as(at, at + 10, Payload::borrowed(&bytes), 3);
    assert_eq!(hold(400), Some(Held::Refused));
    assert_eq!(hold(310), Some(Held::Kept));
    assert_eq!(hold(195), Some(Held::Kept), "it begins before one, and makes none");
    assert_eq!(hold(205), Some(Held::Kept));
}

#[test]
fn growing_range_does_not_push_others_out_of_the_option() {
    let mut fed = Fed::new(10_000);
    for at in [1_000, 3_000, 5_000] {
        fed.take(at, at + 100);
    }
    for at in 1..20 {
        fed.take(5_000 + 100 * at, 5_100 + 100 * at);
    }
    assert_eq!(fed.blocks(4), [(5_000, 7_000), (3_000, 3_100), (1_000, 1_100)]);
    assert_eq!(fed.blocks(2), [(5_000, 7_000), (3_000, 3_100)]);
    assert_eq!(fed.blocks(0), []);
}

#[test]
fn old_unchanged_range_is_named_again_when_there_is_room() {
    let mut fed = Fed::new(10_000);
    for at in [9_000, 1_000, 3_000, 5_000, 7_000] {
        fed.take(at, at + 100);
    }
    assert_eq!(fed.blocks(3), [(7_000, 7_100), (5_000, 5_100), (3_000, 3_100)]);
    fed.take(0, 8_000);
    assert_eq!(fed.blocks(3), [(9_000, 9_100)]);
}

#[test]
fn a_fin_that_comes_early_waits_for_the_text_before_it() {
    let mut fed = Fed::new(100);
    fed.take(50, 100);
    fed.buffer.note_fin(100);
    assert!(!fed.buffer.take_fin());
    fed.take(0, 40);
    assert!(!fed.buffer.take_fin());
    fed.take(40, 50);
    assert!(fed.buffer.take_fin());
    assert!(!fed.buffer.take_fin(), "once");
    fed.drain();
    assert!(fed.buffer.is_empty());
}

#[test]
fn a_fin_that_waits_is_named_with_the_text_before_it_or_alone() {
    let mut fed = Fed::new(100);
    fed.buffer.note_fin(100);
    assert!(fed.buffer.has_held());
    assert_eq!(fed.blocks(3), [(100, 101)]);
    fed.take(50, 60);
    assert_eq!(fed.blocks(3), [(50, 60), (100, 101)]);
    fed.take(80, 100);
    assert_eq!(fed.blocks(3), [(80, 101), (50, 60)]);
    fed.take(0, 80);
    assert!(!fed.buffer.has_held() && fed.buffer.take_fin());
}

#[test]
fn of_several_places_of_a_fin_that_counts_which_came_first() {
    let mut fed = Fed::new(100);
    assert!(fed.buffer.note_fin(60));
    assert!(!fed.buffer.note_fin(100) && !fed.buffer.note_fin(40));
    assert!(fed.buffer.note_fin(60), "it came again");
    assert_eq!(fed.blocks(3), [(60, 61)], "what was named is not forgotten");
    fed.take(0, 60);
    assert!(fed.buffer.take_fin());
}

#[test]
fn a_fin_in_front_of_text_that_is_held_is_not_kept() {
    let mut fed = Fed::new(100);
    fed.take(60, 80);
    assert!(!fed.buffer.note_fin(60) && !fed.buffer.note_fin(79));
    assert_eq!(fed.blocks(3), [(60, 80)]);
    assert!(fed.buffer.note_fin(80));
    assert_eq!(fed.blocks(3), [(60, 81)]);
}

#[test]
fn text_behind_a_fin_is_not_of_the_stream() {
    let mut fed = Fed::new(100);
    let text = Text { skip: 3, take: 20 };
    assert_eq!(fed.buffer.up_to_fin(50, text), text);
    fed.buffer.note_fin(60);
    assert_eq!(fed.buffer.up_to_fin(50, text), Text { skip: 3, take: 10 });
    assert_eq!(fed.buffer.up_to_fin(60, text), Text { skip: 3, take: 0 });
    assert_eq!(fed.buffer.up_to_fin(61, text), Text { skip: 3, take: 0 });
    assert_eq!(fed.buffer.up_to_fin(40, text), text);
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from: usize,
    len: usize,
    /// In how many slices; 0: in one, as most segments come.
    slices: usize,
    then_read: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    let from = prop_oneof![0usize..300, 0usize..3_000];
    let len = prop_oneof![3 => 1usize..60, 1 => 500usize..2_500];
    (from, len, 0usize..=3, any::<bool>()).prop_map(|(from, len, slices, then_read)| Piece {
        from,
        len,
        slices,
        then_read,
    })
}

/// The runs of a set of bytes.
fn runs(bytes: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for byte in bytes {
        match runs.last_mut() {
            Some(run) if run.1 == *byte => run.1 += 1,
            _ => runs.push((*byte, *byte + 1)),
        }
    }
    runs
}

/// The runs in the order in which one of their bytes arrived last.
fn by_age(held: &BTreeSet<usize>, arrivals: &[usize]) -> Vec<(usize, usize)> {
    let (runs, mut ordered) = (runs(held), Vec::new());
    for at in arrivals.iter().rev() {
        let around = runs.iter().find(|run| (run.0..run.1).contains(at));
        ordered.extend(around.filter(|run| !ordered.contains(*run)).copied().as_slice());
    }
    ordered
}

proptest! {
    #[test]
    fn any_pieces_in_any_order_give_the_stream_and_its_sack_ranges(
        pieces in vec(piece(), 1..150),
        limit in 1usize..=8,
        most in 0usize..=4,
    ) {
        let mut fed = Fed::new(3_000);
        let (mut held, mut arrivals) = (BTreeSet::new(), Vec::new());
        for Piece { from, len, slices, then_read } in pieces {
            let to = (from + len).min(3_000);
            let bytes = fed.stream[from..to].to_vec();
            let cut: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(slices.max(1))).collect();
            let gathered = Payload::gathered(&cut);
            let payload = if slices == 0 { Payload::borrowed(&bytes) } else { gathered };
            let again = (from..to).find(|at| held.contains(at)).map(|first| {
                (first, (first..to).find(|at| !held.contains(at)).unwrap_or(to))
            });
            let beyond = from.max(fed.nxt).min(to);
            let overlap = fed.buffer.overlap((beyond.saturating_sub(fed.nxt)) as u32, (to - beyond) as u32);
            let overlap = overlap.map(|(first, end)| (fed.nxt + first as usize, fed.nxt + end as usize));
            prop_assert_eq!(overlap, again);
            let verdict = fed.take_as(from, to, payload, limit);
            let new = (from..to).any(|at| at >= fed.nxt && !held.contains(&at));
            match verdict {
                Some(Held::Kept) => prop_assert!(new),
                Some(Held::Duplicate) => prop_assert!(!new),
                Some(Held::Refused) => prop_assert!(new && runs(&held).len() >= limit),
                None => {}
            }
            if matches!(verdict, Some(Held::Kept | Held::Duplicate)) {
                held.extend(from..to);
                arrivals.push(from);
            }
            held.retain(|at| *at >= fed.nxt);
            prop_assert!(!held.contains(&fed.nxt), "held text at RCV.NXT is in order");
            prop_assert!(runs(&held).len() <= limit);
            prop_assert_eq!(fed.buffer.has_held(), !held.is_empty());
            let (named, expected) = (fed.blocks(most), by_age(&held, &arrivals));
            prop_assert_eq!(named.len(), most.min(expected.len()));
            for (place, block) in named.iter().enumerate() {
                prop_assert!(expected.contains(block) && !named[..place].contains(block));
            }
            let recent = if limit <= super::RECENT {
                named.len()
            } else {
                usize::from(matches!(verdict, Some(Held::Kept | Held::Duplicate))).min(most)
            };
            prop_assert_eq!(&named[..recent], &expected[..recent], "of {:?}", expected);
            let text = held.len() + fed.buffer.unread() as usize;
            prop_assert!(fed.buffer.pinned() <= 2 * text + 64 * runs(&held).len() + 4_096);
            if then_read {
                fed.drain();
                prop_assert_eq!(fed.read.len(), fed.nxt);
            }
        }
        fed.take(0, 3_000);
        fed.drain();
        prop_assert!(fed.read == fed.stream);
        prop_assert!(fed.buffer.is_empty());
    }
}

#[test]
fn text_in_its_chunk_pins_at_most_twice_itself() {
    let least = LARGEST_CHUNK / 4 * 3;
    for (len, step) in [(least, 1), (least, 700), (LARGEST_CHUNK, 9_000), (LARGEST_CHUNK, 40_000)] {
        let (mut buffer, mut pool) = (RecvBuffer::default(), ChunkPool::default());
        let chunk = bytes::Bytes::from(std::vec![7; len]);
        let text = ChunkText::find(&chunk, &chunk).unwrap();
        for _ in 0..3 {
            buffer.append(&mut pool, Payload::in_chunk(text), 0, len as u32);
        }
        while buffer.unread() > 0 {
            let bound = 2 * buffer.unread() as usize + 4_096;
            assert!(buffer.pinned() <= bound, "{} of {bound}", buffer.pinned());
            assert!(buffer.read(step).is_some_and(|text| text.iter().all(|byte| *byte == 7)));
        }
    }
}

#[test]
fn chunk_too_large_or_with_little_text_is_not_kept() {
    let chunk = bytes::Bytes::from(std::vec![7; LARGEST_CHUNK + 1]);
    assert!(ChunkText::find(&chunk, &chunk[..LARGEST_CHUNK]).is_none(), "too large");
    let chunk = chunk.slice(1..);
    assert!(ChunkText::find(&chunk, &chunk[..LARGEST_CHUNK / 4 * 3 - 1]).is_none(), "too little");
    assert!(ChunkText::find(&chunk, &std::vec![7; LARGEST_CHUNK]).is_none(), "elsewhere");
}
