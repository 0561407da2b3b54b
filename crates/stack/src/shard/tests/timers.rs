//! Deadlines that come, and those that nothing lives to see.

use whimbrel_base::Instant;
use whimbrel_tcp::Tunables;

use super::hosts::{Over, client_addr, host, server_at};
use crate::{Shard, TxBatch};

/// Segments that a host has to send at `millis` once what was due then is done.
fn sent_at(shard: &mut Shard, millis: u64) -> usize {
    while shard.advance(Instant::from_millis(millis), 64) {}
    let mut batch = TxBatch::new(64);
    shard.tx(&mut batch);
    let count = batch.drain(|_| ());
    shard.check_invariants().expect("what must hold");
    count
}

#[test]
fn a_deadline_far_ahead_is_looked_at_once_and_kept() {
    let mut shard = host(client_addr, 1, &Tunables::default());
    shard.connect(server_at(Over::V4), None).expect("a port is free");
    assert_eq!(sent_at(&mut shard, 0), 1, "the SYN");
    assert_eq!(shard.census().timers, 1);
    let look = shard.next_deadline().expect("its retransmission");
    assert!(look < Instant::from_millis(1_000), "it is looked at before");
    // Nothing is due then, nor at any time up to its time-out, and it stays armed.
    for millis in [look.as_nanos() / 1_000_000 + 1, 500, 999] {
        assert_eq!(sent_at(&mut shard, millis), 0, "at {millis} ms");
        assert_eq!(shard.census().timers, 1);
    }
    assert_eq!(sent_at(&mut shard, 1_002), 1, "the SYN again");
}

#[test]
fn what_is_over_before_it_is_looked_at_leaves_no_timer() {
    let mut shard = host(client_addr, 1, &Tunables::default());
    for _ in 0..3 {
        // The same place, used again within the time of the first look.
        let client = shard.connect(server_at(Over::V4), None).expect("a port is free");
        assert_eq!(sent_at(&mut shard, 0), 1);
        assert_eq!(shard.census().timers, 1);
        shard.abort(client);
        assert_eq!(shard.census().timers, 0);
        assert_eq!(shard.next_deadline(), None);
    }
    let client = shard.connect(server_at(Over::V4), None).expect("a port is free");
    assert_eq!(sent_at(&mut shard, 0), 1);
    assert_eq!(sent_at(&mut shard, 999), 0);
    assert_eq!(shard.census().timers, 1, "of four that stood in the queue");
    assert_eq!(sent_at(&mut shard, 1_002), 1);
    shard.abort(client);
    assert_eq!((shard.census().timers, shard.next_deadline()), (0, None));
}
