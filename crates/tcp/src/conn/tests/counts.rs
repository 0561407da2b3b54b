//! Counts of a connection, across the wraps of the small numbers that hold them.

use std::time::Duration;

use super::pair::{Pair, Which, fixed, pattern};
use crate::Tunables;
use crate::conn::Limit;

#[test]
fn counts_go_on_where_their_numbers_wrap() {
    let mut pair = Pair::established(&Tunables::default());
    let exchange = |pair: &mut Pair| {
        pair.write(Which::Client, &pattern(2_000));
        pair.run_until_quiet();
        pair.write(Which::Server, &pattern(3_000));
        pair.run_until_quiet();
    };
    exchange(&mut pair);
    let told = |pair: &mut Pair| {
        let now = pair.now;
        let tally = pair.client.connection.snapshot(now, &Tunables::default()).tally;
        [
            tally.bytes_acked,
            tally.bytes_received,
            tally.segs_in.into(),
            tally.segs_out.into(),
            tally.data_segs_in.into(),
            tally.data_segs_out.into(),
            tally.delivered.into(),
        ]
    };
    let before = told(&mut pair);
    assert_eq!(before[..2], [2_000, 3_000]);
    // As if so much had come before, of which the next exchange passes the end.
    pair.client.connection.transfer.tcb.counts.go_near_wraps(4_000);
    let begun = told(&mut pair);
    exchange(&mut pair);
    let after = told(&mut pair);
    for (place, (begun, after)) in begun.into_iter().zip(after).enumerate() {
        assert!(after > begun && after - begun <= 3_000, "{place}: {begun} {after}");
    }
    assert_eq!((after[0] - begun[0], after[1] - begun[1]), (2_000, 3_000));
    assert!(after[0] > 1 << 32 || after[1] > 1 << 32, "{after:?}");
    assert!(after[2..].iter().all(|count| *count > 1 << 16), "{after:?}");
}

#[test]
fn short_exchange_leaves_nothing_apart_from_the_record() {
    let mut pair = Pair::established(&Tunables::default());
    for _ in 0..3 {
        pair.write(Which::Client, b"GET / HTTP/1.1\r\n\r\n");
        pair.run_until_quiet();
        pair.write(Which::Server, &pattern(3_000));
        pair.run_until_quiet();
    }
    for which in [Which::Client, Which::Server] {
        let tcb = &pair.side(which).connection.transfer.tcb;
        assert!(tcb.buffers.is_none() && tcb.counts.stats.is_none());
    }
}

#[test]
fn time_under_the_network_is_counted_beyond_a_minute() {
    // A buffer each round trip, of a second: most of the time nothing but what is under way holds it up.
    let mut pair = Pair::established(&fixed(20_000, 20_000));
    pair.delay = Duration::from_millis(500);
    let begun = pair.now;
    for _ in 0..100 {
        pair.write(Which::Client, &pattern(1_000));
        pair.run_for(Duration::from_secs(1));
    }
    let (now, tunables) = (pair.now, Tunables::default());
    let limited = pair.client.connection.snapshot(now, &tunables).limited(Limit::Network);
    let passed = now.since(begun);
    assert!(limited > Duration::from_secs(90) && limited <= passed, "{limited:?} of {passed:?}");
    // The connection ends while something is under way: the next has its buffers, and not its limit.
    pair.write(Which::Client, &pattern(1_000));
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.abort(cx));
    assert!(pair.client.connection.transfer.tcb.buffers.is_none());
    let kept = pair.client.cx.pool.take();
    assert_eq!(kept.limit.limit, Limit::Application);
    pair.client.cx.pool.give(kept);
}
