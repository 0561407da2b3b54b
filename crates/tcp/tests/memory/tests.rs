//! Every order, every size of pieces, every size of buffer: the bound holds after every packet.

use crate::allocator::held;
use crate::feed::Feed;
use crate::orders::Order;

const ORDERS: [Order; 7] = [
    Order::Straight,
    Order::Ascending,
    Order::Descending,
    Order::EverySecond,
    Order::Triples,
    Order::Random,
    Order::Overlapping,
];

/// As many packets as tell: a buffer of 6 MiB takes six million of a byte.
const PACKETS: usize = 6_000;

/// Pieces of `len` bytes in this order, then what was missing, then reading.
fn run(order: Order, len: usize, buffer: usize, limit: usize) {
    let before = held();
    let starts = order.starts(len, ((buffer - 1) / len).clamp(1, PACKETS));
    let case = format!("{order:?}, pieces of {len} in {buffer}, {limit} ranges");
    let mut feed = Feed::new(buffer, limit, case);
    for start in &starts {
        feed.take(*start, start + len);
    }
    // The first gap is filled, and half of what is in order read; then the others.
    feed.take(0, 1);
    feed.drain(1_000);
    while feed.nxt() < buffer {
        let nxt = feed.nxt();
        feed.take(nxt, nxt + 1_460);
        if nxt.is_multiple_of(7) {
            feed.drain(1_460);
        }
    }
    feed.drain(100);
    drop((feed, starts));
    assert_eq!(held(), before, "all of it was released");
}

fn run_all(buffer: usize) {
    for order in ORDERS {
        for len in [1, 3, 64, 512, 1_448] {
            run(order, len, buffer, 256);
        }
    }
}

#[test]
fn pieces_take_twice_their_text_in_a_buffer_of_64_kib() {
    run_all(64 << 10);
}

#[test]
fn pieces_take_twice_their_text_in_a_buffer_of_256_kib() {
    run_all(256 << 10);
}

#[test]
fn pieces_take_twice_their_text_in_a_buffer_of_6_mib() {
    run_all(6 << 20);
}

#[test]
fn as_many_ranges_as_may_be_take_64_bytes_each() {
    for len in [1, 3] {
        for order in [Order::EverySecond, Order::Random, Order::Overlapping] {
            run(order, len, 256 << 10, 4_096);
        }
    }
}

#[test]
fn super_segments_in_any_order_take_twice_their_text() {
    for len in [40_000, 50_000, 60_000, 65_535] {
        for order in ORDERS {
            run(order, len, 6 << 20, 256);
        }
    }
}

#[test]
fn a_buffer_that_was_read_empty_keeps_less_than_a_page() {
    let starts = Order::Straight.starts(1_448, ((6 << 20) / 1_448).min(PACKETS));
    let mut feed = Feed::new(6 << 20, 256, String::new());
    for start in &starts {
        feed.take(*start, *start + 1_448);
    }
    feed.drain(usize::MAX);
    assert!(feed.allocated() < 4_096, "{}", feed.allocated());
}

/// However many segments are unread: the last chunk is what a reader keeps who waits for the rest of a message,
/// and in some of these cases it was opened for a part of the last segment.
#[test]
fn kept_parts_of_a_stream_pin_four_times_themselves_at_most() {
    for segments in 1..=180 {
        let len = segments * 1_448;
        let mut feed = Feed::new(len, 256, format!("{segments} segments"));
        for from in (0..len).step_by(1_448) {
            feed.take(from, from + 1_448);
        }
        let kept = feed.read_and_keep_last();
        let (pinned, bound) = (feed.allocated(), 4 * kept.len() + 4_096);
        assert!(pinned <= bound, "{pinned} bytes stay for {} of {segments} segments", kept.len());
    }
}
