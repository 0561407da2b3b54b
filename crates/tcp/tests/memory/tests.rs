//! Every order, every size of pieces, every size of buffer: the bound holds after every packet.

use crate::allocator::held;
use crate::feed::{Feed, Form};

/// The order in which pieces come.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Nothing is missing.
    InOrder,
    Ascending,
    Descending,
    /// Between two there is a gap of the same size.
    EverySecond,
    /// A gap of an octet in front of each three that touch.
    Triples,
    Random,
    /// From the middle of one to the middle of the next, at random.
    Overlapping,
}

const PATTERNS: [Pattern; 7] = [
    Pattern::InOrder,
    Pattern::Ascending,
    Pattern::Descending,
    Pattern::EverySecond,
    Pattern::Triples,
    Pattern::Random,
    Pattern::Overlapping,
];

/// As many packets as tell: a buffer of 6 MiB takes six million of an octet.
const PACKETS: usize = 6_000;

/// Where pieces of `len` octets begin, in the order in which they are sent; the first octet of the
/// stream is missing but in order.
fn starts(pattern: Pattern, len: usize, buffer: usize) -> Vec<usize> {
    let places = ((buffer - 1) / len).clamp(1, PACKETS);
    let all = (0..places).map(|place| 1 + place * len);
    match pattern {
        Pattern::InOrder => all.map(|at| at - 1).collect(),
        Pattern::Ascending => all.collect(),
        Pattern::Descending => all.rev().collect(),
        Pattern::EverySecond => all.map(|at| 2 * at - 1).collect(),
        Pattern::Triples => all.enumerate().map(|(place, at)| at + place / 3).collect(),
        Pattern::Random => shuffled(all.collect()),
        Pattern::Overlapping => {
            let whole = all.clone();
            shuffled(whole.chain(all.map(|at| at + len / 2)).collect())
        }
    }
}

fn shuffled(mut places: Vec<usize>) -> Vec<usize> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..places.len()).rev() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        places.swap(last, (state >> 33) as usize % (last + 1));
    }
    places
}

/// Pieces of `len` octets in this order, then what was missing, then reading.
fn run(pattern: Pattern, len: usize, buffer: usize, form: Form, limit: usize) {
    let before = held();
    let starts = starts(pattern, len, buffer);
    let case = format!("{pattern:?}, pieces of {len} in {buffer}, {form:?}, {limit} ranges");
    let mut feed = Feed::new(buffer, limit, case);
    for start in &starts {
        feed.take(*start, start + len, form);
    }
    // The first gap is filled, and half of what is in order read; then the others.
    feed.take(0, 1, form);
    feed.drain(1_000);
    while feed.nxt() < buffer {
        let nxt = feed.nxt();
        feed.take(nxt, nxt + 1_460, form);
        if nxt.is_multiple_of(7) {
            feed.drain(1_460);
        }
    }
    feed.drain(100);
    drop((feed, starts));
    assert_eq!(held(), before, "all of it was let go");
}

fn run_all(buffer: usize, form: Form) {
    for pattern in PATTERNS {
        for len in [1, 3, 64, 512, 1_448] {
            run(pattern, len, buffer, form, 256);
        }
    }
}

#[test]
fn pieces_in_any_order_take_twice_their_text_in_a_buffer_of_64_kib() {
    run_all(64 << 10, Form::Copied);
    run_all(64 << 10, Form::Shared);
}

#[test]
fn pieces_in_any_order_take_twice_their_text_in_a_buffer_of_256_kib() {
    run_all(256 << 10, Form::Copied);
    run_all(256 << 10, Form::Shared);
}

#[test]
fn pieces_in_any_order_take_twice_their_text_in_a_buffer_of_6_mib() {
    run_all(6 << 20, Form::Copied);
}

#[test]
fn slices_of_super_segments_in_any_order_take_twice_their_text_in_a_buffer_of_6_mib() {
    run_all(6 << 20, Form::Shared);
}

#[test]
fn as_many_ranges_as_may_be_take_64_octets_each() {
    for len in [1, 3] {
        for pattern in [Pattern::EverySecond, Pattern::Random, Pattern::Overlapping] {
            run(pattern, len, 256 << 10, Form::Copied, 4_096);
        }
    }
}

#[test]
fn super_segments_count_whole_and_what_is_cut_of_them_does_not_pin_the_rest() {
    for len in [40_000, 50_000, 60_000, 65_535] {
        for pattern in PATTERNS {
            run(pattern, len, 6 << 20, Form::Shared, 256);
            run(pattern, len, 6 << 20, Form::Copied, 256);
        }
    }
}

#[test]
fn a_buffer_that_was_read_empty_keeps_less_than_a_page() {
    let starts = starts(Pattern::InOrder, 1_448, 6 << 20);
    let mut feed = Feed::new(6 << 20, 256, String::new());
    for start in &starts {
        feed.take(*start, *start + 1_448, Form::Copied);
    }
    feed.drain(usize::MAX);
    assert!(feed.allocated() < 4_096, "{}", feed.allocated());
}
