//! Chunks that come back, and those that do not.

use std::vec::Vec;

use bytes::Bytes;

use super::{ChunkPool, SIZES};

/// Text in a chunk of the pool, as an application has it.
fn text(pool: &mut ChunkPool, bytes: usize) -> Bytes {
    let mut chunk = pool.take(bytes);
    chunk.extend_from_slice(&std::vec![7; bytes]);
    chunk.freeze()
}

#[test]
fn chunk_is_at_least_and_less_than_twice_the_size_of_its_text() {
    let mut pool = ChunkPool::default();
    for bytes in [1, 4_096, 4_097, 8_192, 33_000, 65_535, 65_536, 1 << 20] {
        let room = pool.take(bytes).capacity();
        assert!(room >= bytes.min(64 << 10), "{room} for {bytes}");
        assert!(room == 4_096 || room < 2 * bytes, "{room} for {bytes}");
    }
}

#[test]
fn a_chunk_of_which_all_was_dropped_is_lent_again() {
    let mut pool = ChunkPool::default();
    let first = text(&mut pool, 60_000);
    let (at, mut parts) = (first.as_ptr(), first);
    let front = parts.split_to(10_000);
    drop(parts);
    let second = pool.take(60_000);
    assert_ne!(second.as_ptr(), at, "its first part is held");
    drop(front);
    assert_eq!(pool.take(60_000).as_ptr(), at);
    assert_eq!(pool.bytes(), 128 << 10);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "an application has threads")]
fn what_an_application_drops_on_another_thread_is_lent_again() {
    let mut pool = ChunkPool::default();
    let held = text(&mut pool, 60_000);
    let at = held.as_ptr();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(held));
    });
    assert_eq!(pool.take(60_000).as_ptr(), at);
}

#[test]
fn stream_read_as_it_comes_allocates_only_its_first_chunks() {
    let mut pool = ChunkPool::default();
    for _ in 0..1_000 {
        let burst: Vec<_> = (0..8).map(|_| text(&mut pool, 60_000)).collect();
        drop(burst);
    }
    assert_eq!(pool.bytes(), 8 * (64 << 10));
}

#[test]
fn chunks_that_are_held_do_not_keep_others_from_being_found() {
    let mut pool = ChunkPool::default();
    let _held: Vec<_> = (0..5).map(|_| text(&mut pool, 60_000)).collect();
    for _ in 0..1_000 {
        drop(text(&mut pool, 60_000));
    }
    // Those that are held are asked in vain now and then, and given up in the end.
    assert!(pool.bytes() <= 16 * (64 << 10), "{}", pool.bytes());
}

#[test]
fn beyond_its_bound_a_pool_forgets_what_it_lent_first() {
    let mut pool = ChunkPool::default();
    pool.set_most(256 << 10);
    let held: Vec<_> = (0..100).map(|_| text(&mut pool, 60_000)).collect();
    assert_eq!(pool.bytes(), 256 << 10);
    assert!(held.iter().all(|text| text.iter().all(|byte| *byte == 7)), "the text stays");
}

/// In each of 1,000 bursts, as many as ten seconds have, four unread texts come, and one that is read
/// at once. It always has room, and needs no more once they are gone.
#[test]
fn reader_has_chunks_amid_flood_of_text_that_is_held() {
    let mut pool = ChunkPool::default();
    pool.set_most(1 << 20);
    let mut held = Vec::new();
    for burst in 0..1_000 {
        // What connections may hold is bounded elsewhere: the first ones give up.
        held.drain(..if held.len() > 64 { 4 } else { 0 });
        held.extend((0..4).map(|_| text(&mut pool, 60_000)));
        let mut honest = pool.take(60_000);
        assert!(honest.is_empty() && honest.capacity() >= 60_000, "{burst}");
        honest.extend_from_slice(&[8; 60_000]);
        assert!(pool.bytes() <= 1 << 20, "{burst}");
        assert!(honest.iter().all(|byte| *byte == 8), "{burst}");
        assert!(held.iter().all(|text| text[0] == 7 && text[59_999] == 7), "{burst}");
        // What was read is used again, as the first ones went beyond the bound.
        drop(honest);
        let last = pool.sizes[SIZES - 1].lent.back_mut().expect("it was lent");
        assert!(last.handle.try_reclaim(64 << 10), "{burst}");
    }
    // Those that are held for long are left to their holders. What is counted is what there is.
    (0..1_000).for_each(|_| drop(text(&mut pool, 60_000)));
    let chunks = pool.sizes.iter().enumerate().map(|(at, chunks)| chunks.len() << (12 + at));
    assert_eq!(chunks.sum::<usize>(), pool.bytes());
    drop(held);
    for _ in 0..100 {
        drop(text(&mut pool, 60_000));
        assert!(pool.bytes() <= 1 << 20);
    }
}

#[test]
fn large_chunk_replaces_many_small_ones_beyond_the_bound() {
    let mut pool = ChunkPool::default();
    pool.set_most(1 << 20);
    let mut held = Vec::new();
    for bytes in [4_096, 8_192, 65_536, 16_384, 32_768, 4_096, 65_536] {
        for _ in 0..256 {
            held.push(text(&mut pool, bytes));
            assert!(pool.bytes() <= 1 << 20, "{} with chunks of {bytes}", pool.bytes());
        }
    }
    drop(held);
    // A bound that becomes less is kept to as chunks are taken, some at a time.
    pool.set_most(128 << 10);
    for _ in 0..64 {
        drop(text(&mut pool, 4_096));
    }
    assert!(pool.bytes() <= 128 << 10, "{}", pool.bytes());
}

#[test]
fn what_was_not_needed_between_two_looks_is_given_back() {
    let mut pool = ChunkPool::default();
    drop((0..100).map(|_| text(&mut pool, 60_000)).collect::<Vec<_>>());
    while pool.trim() {}
    assert_eq!(pool.bytes(), 100 * (64 << 10), "all were needed since the last look");
    let use_two = |pool: &mut ChunkPool| {
        for _ in 0..200 {
            drop([text(pool, 60_000), text(pool, 60_000)]);
        }
    };
    use_two(&mut pool);
    while pool.trim() {}
    use_two(&mut pool);
    while pool.trim() {}
    assert!(pool.bytes() <= 4 * (64 << 10), "two were needed since: {}", pool.bytes());
    let held = text(&mut pool, 60_000);
    while pool.trim() {}
    while pool.trim() {}
    assert!(pool.is_empty());
    assert_eq!(held.len(), 60_000, "what is held is its holder's");
}

#[test]
fn what_went_since_nobody_needed_it_does_not_go_twice() {
    let mut pool = ChunkPool::default();
    drop((0..8).map(|_| text(&mut pool, 60_000)).collect::<Vec<_>>());
    // All become idle, and the second look finds them unneeded.
    for _ in 0..8 {
        drop(text(&mut pool, 60_000));
    }
    while pool.trim() {}
    // Then the pool is to be smaller, and takes of the largest what it has.
    pool.set_most(64 << 10);
    drop((0..4).map(|_| text(&mut pool, 5_000)).collect::<Vec<_>>());
    while pool.trim() {}
    assert!(pool.bytes() <= 64 << 10, "{}", pool.bytes());
    while pool.trim() {}
    while pool.trim() {}
    assert!(pool.is_empty());
}
