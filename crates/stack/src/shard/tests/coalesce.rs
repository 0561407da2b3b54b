//! A burst does what its segments do one by one, and what follows each other is taken at once.

use std::format;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};

use super::hosts::{Hosts, Over, drain, send};
use crate::{Handle, Recv, RxFrame, Shard, TxBatch};

/// A server, and the frames of a client's first flight to it, which it has not seen.
fn flight(text: &[u8]) -> (Shard, Handle, Instant, Vec<Vec<u8>>) {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    assert_eq!(send(&mut hosts.client, client, text), text.len());
    hosts.client.set_now(hosts.now);
    let mut batch = TxBatch::new(64);
    hosts.client.tx(&mut batch);
    let frames = batch.pending().iter().map(|segment| segment.to_vec()).collect();
    (hosts.server, server, hosts.now, frames)
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8)) as u8).collect()
}

fn arrive(server: &mut Shard, now: Instant, frames: &[&Vec<u8>]) {
    let lent: Vec<_> = frames.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    server.rx(now, &lent);
}

fn answers(server: &mut Shard) -> Vec<Vec<u8>> {
    let mut batch = TxBatch::new(64);
    server.tx(&mut batch);
    batch.pending().iter().map(|segment| segment.to_vec()).collect()
}

#[test]
fn full_segments_that_follow_each_other_are_taken_as_one() {
    let sent = text(14_000);
    let (mut server, handle, now, frames) = flight(&sent);
    assert_eq!(frames.len(), 10, "an initial window");
    let before = server.counters().accepted_segs;
    arrive(&mut server, now, &frames.iter().collect::<Vec<_>>());
    assert_eq!(server.counters().accepted_segs - before, 10, "each counts");
    assert_eq!(answers(&mut server).len(), 1, "one acknowledgment serves for all");
    let Recv::Data(first) = server.recv(handle) else { panic!("text is there") };
    assert_eq!(first, Bytes::from(sent), "in one chunk");
}

#[test]
fn a_burst_does_what_its_segments_do_one_by_one() {
    for seed in 1..=300_u64 {
        let sent = text(14_000);
        let (mut whole, first, now, frames) = flight(&sent);
        let (mut single, second, _, again) = flight(&sent);
        assert_eq!(frames, again, "the same client twice");
        let mut draws = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |most: usize| {
            draws ^= draws << 13;
            draws ^= draws >> 7;
            draws ^= draws << 17;
            (draws >> 33) as usize % most
        };
        // Mostly in order, and some lost, doubled, late, corrupted or of another window.
        let mut burst: Vec<Vec<u8>> = frames.clone();
        for _ in 0..below(4) {
            let (at, to) = (below(burst.len()), below(burst.len()));
            match below(5) {
                0 => _ = burst.remove(at),
                1 => burst.insert(to, burst[at].clone()),
                2 => burst.swap(at, to),
                3 => burst[at][100] ^= 1,
                _ => widen(&mut burst[at]),
            }
        }
        arrive(&mut whole, now, &burst.iter().collect::<Vec<_>>());
        burst.iter().for_each(|frame| arrive(&mut single, now, &[frame]));
        let counters = |shard: &Shard| format!("{:?}", shard.counters());
        assert_eq!(counters(&whole), counters(&single), "seed {seed}");
        assert_eq!(answers(&mut whole), answers(&mut single), "seed {seed}");
        assert_eq!(drain(&mut whole, first), drain(&mut single, second), "seed {seed}");
        whole.check_invariants().expect("what must hold");
    }
}

/// The frame announces another window than it did, and is right otherwise.
fn widen(frame: &mut [u8]) {
    let (window, checksum) = (20 + 14, 20 + 16);
    let old = u16::from_be_bytes([frame[window], frame[window + 1]]);
    let new = old ^ 1;
    let sum = u16::from_be_bytes([frame[checksum], frame[checksum + 1]]);
    let sum = whimbrel_wire::checksum::update(sum, old, new);
    frame[window..][..2].copy_from_slice(&new.to_be_bytes());
    frame[checksum..][..2].copy_from_slice(&sum.to_be_bytes());
}

/// The frame with so many bytes of text behind those it has, as a device joined them.
fn lengthened(frame: &[u8], text: &[u8]) -> Vec<u8> {
    let mut frame = [frame, text].concat();
    let [old, new] = [u16::from_be_bytes([frame[2], frame[3]]), frame.len() as u16];
    let sum = u16::from_be_bytes([frame[10], frame[11]]);
    let sum = whimbrel_wire::checksum::update(sum, old, new);
    frame[2..4].copy_from_slice(&new.to_be_bytes());
    frame[10..12].copy_from_slice(&sum.to_be_bytes());
    frame
}

const CHECKED: SegMeta = SegMeta { segs: 40, gso_size: 1400, checksum: RxChecksum::Verified };

#[test]
fn long_text_stays_in_its_chunk_and_other_text_is_copied() {
    let sent = text(56_000);
    for (len, stays) in [(56_000, true), (49_152, true), (49_151, false)] {
        let (mut server, handle, now, frames) = flight(&sent[..1_400]);
        let mut room = server.chunk_pool().take(1 << 16);
        room.extend_from_slice(&[0; 12]); // as an offload header
        room.extend_from_slice(&lengthened(&frames[0], &sent[1_400..len]));
        let chunk = room.freeze();
        let frame = RxFrame { bytes: &chunk[12..], meta: CHECKED, chunk: Some(&chunk) };
        server.rx(now, &[frame]);
        let Recv::Data(first) = server.recv(handle) else { panic!("{len}: text is there") };
        assert_eq!(first, sent[..len], "{len}");
        let stayed = chunk.as_ptr_range().contains(&first.as_ptr());
        assert_eq!(stayed, stays, "{len}");
        server.check_invariants().expect("what must hold");
        // What the application holds is in no one's way.
        drop(chunk);
        let next = server.chunk_pool().take(1 << 16);
        assert!(!next.as_ptr_range().contains(&first.as_ptr()), "{len}");
    }
}

#[test]
fn of_long_text_that_came_in_part_before_the_rest_is_copied() {
    let sent = text(60_000);
    let (mut server, handle, now, frames) = flight(&sent[..1_400]);
    arrive(&mut server, now, &[&frames[0]]);
    let chunk = Bytes::from(lengthened(&frames[0], &sent[1_400..]));
    server.rx(now, &[RxFrame { bytes: &chunk, meta: CHECKED, chunk: Some(&chunk) }]);
    assert_eq!(drain(&mut server, handle).0, sent);
}
