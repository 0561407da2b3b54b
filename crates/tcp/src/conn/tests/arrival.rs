//! Effects of single segments: duplicates, gaps, urgent marks, data on a SYN-ACK.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};

use super::pair::{Flying, Pair, Which, fixed, pattern};
use crate::conn::{Read, Signals, State};
use crate::{CloseReason, DropReason, Tunables, Verdict};

/// A segment of the client's, `ahead` bytes beyond what the server expects.
fn from_client(pair: &mut Pair, ahead: i32, text: &[u8]) -> Flying {
    let seq = pair.server.connection.recv_sequence().nxt;
    let mut flying = pair.bare(Which::Client);
    flying.header.seq = if ahead < 0 { seq - ahead.unsigned_abs() } else { seq + ahead as u32 };
    flying.header.flags = TcpFlags::ACK | TcpFlags::PSH;
    flying.text = text.to_vec();
    flying
}

fn take(pair: &mut Pair, flying: &Flying) -> Verdict {
    let now = pair.now;
    pair.server.take(now, flying)
}

/// The blocks of the server's next acknowledgment, relative to what it acknowledges.
fn blocks(pair: &mut Pair) -> Vec<(i32, i32)> {
    let ack = pair.poll(Which::Server).expect("an acknowledgment").header;
    let relative = |number: SeqNum| number.distance_from(ack.ack);
    let blocks = ack.options.sack.as_slice().iter();
    blocks.map(|SackBlock { left, right }| (relative(*left), relative(*right))).collect()
}

#[test]
fn the_block_that_changed_last_is_named_first() {
    let mut pair = Pair::established(&Tunables::default());
    for ahead in [1_000, 3_000, 5_000] {
        let flying = from_client(&mut pair, ahead, &[0; 500]);
        assert_eq!(take(&mut pair, &flying), Verdict::Accepted);
        assert_eq!(blocks(&mut pair)[0], (ahead, ahead + 500));
    }
    let between = from_client(&mut pair, 1_500, &[0; 1_500]);
    let _ = take(&mut pair, &between);
    assert_eq!(blocks(&mut pair), [(1_000, 3_500), (5_000, 5_500)]);
}

#[test]
fn every_second_segment_of_a_large_window_is_held() {
    let mut pair = Pair::established(&fixed(4 << 20, 4 << 20));
    let mss = i32::from(pair.server.connection.transfer.tcb.sender.mss());
    for ahead in (0..4 << 20).step_by(2 * mss as usize).skip(1) {
        let flying = from_client(&mut pair, ahead - mss, &pattern(mss as usize));
        assert_eq!(take(&mut pair, &flying), Verdict::Accepted, "{ahead}");
        let _ = pair.poll(Which::Server);
    }
}

#[test]
fn text_that_came_twice_is_named_before_all_else() {
    let mut pair = Pair::established(&Tunables::default());
    let text = from_client(&mut pair, 0, &pattern(100));
    let _ = take(&mut pair, &text);
    assert_eq!(take(&mut pair, &text), Verdict::Drop(DropReason::OldData));
    assert_eq!(blocks(&mut pair), [(-100, 0)]);
    let held = from_client(&mut pair, 1_000, &[0; 200]);
    let _ = take(&mut pair, &held);
    assert_eq!(blocks(&mut pair), [(1_000, 1_200)]);
    assert_eq!(take(&mut pair, &held), Verdict::Drop(DropReason::OldData));
    assert_eq!(blocks(&mut pair), [(1_000, 1_200), (1_000, 1_200)]);
    let overlapping = from_client(&mut pair, -50, &[0; 60]);
    let _ = take(&mut pair, &overlapping);
    assert_eq!(blocks(&mut pair), [(-60, -10), (990, 1_190)]);
}

#[test]
fn of_text_that_came_twice_in_part_the_first_part_is_named() {
    let mut pair = Pair::established(&Tunables::default());
    for (at, len) in [(1_000, 200), (2_000, 200)] {
        let held = from_client(&mut pair, at, &vec![0; len]);
        let _ = take(&mut pair, &held);
    }
    assert_eq!(blocks(&mut pair), [(2_000, 2_200), (1_000, 1_200)]);
    let over_one = from_client(&mut pair, 900, &[0; 200]);
    assert_eq!(take(&mut pair, &over_one), Verdict::Accepted);
    assert_eq!(blocks(&mut pair), [(1_000, 1_100), (900, 1_200), (2_000, 2_200)]);
    let over_both = from_client(&mut pair, 0, &[0; 2_100]);
    assert_eq!(take(&mut pair, &over_both), Verdict::Accepted);
    assert_eq!(blocks(&mut pair), [(900 - 2_200, 1_200 - 2_200)]);
}

#[test]
fn of_several_duplicates_in_a_burst_the_first_is_named() {
    let mut pair = Pair::established(&Tunables::default());
    for at in [1_000, 3_000] {
        let held = from_client(&mut pair, at, &[0; 200]);
        let _ = take(&mut pair, &held);
    }
    assert_eq!(blocks(&mut pair), [(3_000, 3_200), (1_000, 1_200)]);
    for at in [1_100, 3_100] {
        let again = from_client(&mut pair, at, &[0; 50]);
        assert_eq!(take(&mut pair, &again), Verdict::Drop(DropReason::OldData));
    }
    assert_eq!(blocks(&mut pair), [(1_100, 1_150), (1_000, 1_200), (3_000, 3_200)]);
}

#[test]
fn without_sack_nothing_is_named() {
    let mut pair = Pair::established(&Tunables { sack: false, ..Tunables::default() });
    let text = from_client(&mut pair, 1_000, &[0; 200]);
    let _ = take(&mut pair, &text);
    let _ = take(&mut pair, &text);
    assert_eq!(blocks(&mut pair), []);
}

#[test]
fn urgent_data_stay_in_the_stream_and_a_read_stops_at_their_end() {
    let mut pair = Pair::established(&Tunables::default());
    let mut urgent = from_client(&mut pair, 0, b"now! later");
    urgent.header.flags |= TcpFlags::URG;
    urgent.header.urgent = 4;
    let _ = take(&mut pair, &urgent);
    assert!(pair.server.connection.signals_mut().take(Signals::URGENT));
    assert_eq!(pair.server.connection.urgent_mark(), Some(4));
    let now = pair.now;
    let mut read = || pair.server.with(now, |connection, cx| connection.read(cx));
    assert_eq!(read(), Read::Data(bytes::Bytes::from_static(b"now!")));
    assert_eq!(read(), Read::Data(bytes::Bytes::from_static(b" later")));
    assert_eq!(read(), Read::Pending);
    assert_eq!(pair.server.connection.urgent_mark(), None);
    assert_eq!(pair.server.cx.pool.lent(), 0);
}

#[test]
fn urgent_data_before_their_pointer_are_marked_until_read() {
    let mut pair = Pair::established(&Tunables::default());
    let text = from_client(&mut pair, 0, b"now! later");
    let _ = take(&mut pair, &text);
    let mut pointer = from_client(&mut pair, -6, b"");
    pointer.header.flags |= TcpFlags::URG;
    let _ = take(&mut pair, &pointer);
    assert!(pair.server.connection.signals_mut().take(Signals::URGENT));
    assert_eq!(pair.server.connection.urgent_mark(), Some(4));
    let _ = take(&mut pair, &pointer);
    assert!(!pair.server.connection.signals_mut().take(Signals::URGENT), "told once");
    let now = pair.now;
    pair.server.drain(now);
    assert_eq!(pair.server.received, b"now! later");
    let _ = take(&mut pair, &pointer);
    assert!(!pair.server.connection.signals_mut().take(Signals::URGENT), "it was read");
    assert_eq!(pair.server.cx.pool.lent(), 0);
}

#[test]
fn urgent_data_end_with_the_stream_wherever_the_pointer_is() {
    for text in [&b"last"[..], b""] {
        let mut pair = Pair::established(&Tunables::default());
        let mut last = from_client(&mut pair, 0, text);
        last.header.flags |= TcpFlags::URG | TcpFlags::FIN;
        last.header.urgent = u16::MAX;
        assert_eq!(take(&mut pair, &last), Verdict::Accepted);
        assert!(pair.server.connection.signals_mut().take(Signals::URGENT));
        let len = text.len() as u32;
        assert_eq!(pair.server.connection.urgent_mark(), Some(len).filter(|len| *len > 0));
        let now = pair.now;
        pair.server.drain(now);
        assert!(pair.server.ended);
        assert_eq!((pair.server.connection.urgent_mark(), pair.server.cx.pool.lent()), (None, 0));
    }
}

#[test]
fn reset_behind_urgent_pointer_and_gap_leaves_nothing_held() {
    let mut pair = Pair::established(&Tunables::default());
    let mut beyond = from_client(&mut pair, 1_000, b"beyond a gap");
    beyond.header.flags |= TcpFlags::URG;
    beyond.header.urgent = 5_000;
    assert_eq!(take(&mut pair, &beyond), Verdict::Accepted);
    assert_eq!(pair.server.cx.pool.lent(), 1);
    let mut reset = from_client(&mut pair, 0, b"");
    reset.header.flags = TcpFlags::RST;
    assert!(matches!(take(&mut pair, &reset), Verdict::Closed(_)));
    assert_eq!((pair.server.connection.urgent_mark(), pair.server.cx.pool.lent()), (None, 0));
}

#[test]
fn each_step_refuses_what_it_must() {
    let cases: [(TcpFlags, i32, Verdict); 7] = [
        (TcpFlags::RST, 1, Verdict::Drop(DropReason::ResetChallenged)),
        (TcpFlags::RST, -1, Verdict::Drop(DropReason::ResetOutsideWindow)),
        (TcpFlags::SYN, 0, Verdict::Drop(DropReason::SynChallenged)),
        (TcpFlags::SYN | TcpFlags::ACK, 0, Verdict::Drop(DropReason::SynChallenged)),
        (TcpFlags::PSH, 0, Verdict::Drop(DropReason::NoAck)),
        (TcpFlags::ACK, -1, Verdict::Drop(DropReason::OldData)),
        (TcpFlags::ACK, 1 << 24, Verdict::Drop(DropReason::OverWindow)),
    ];
    for (flags, ahead, verdict) in cases {
        let mut pair = Pair::established(&Tunables::default());
        let mut flying = from_client(&mut pair, ahead, b"");
        flying.header.flags = flags;
        assert_eq!(take(&mut pair, &flying), verdict, "{flags:?} {ahead}");
        assert_eq!(pair.server.connection.state(), State::Established);
        let challenged =
            !matches!(verdict, Verdict::Drop(DropReason::ResetOutsideWindow | DropReason::NoAck));
        assert_eq!(pair.poll(Which::Server).is_some(), challenged, "{flags:?} {ahead}");
    }
}

#[test]
fn ten_challenges_go_out_at_once_and_then_one_in_each_interval() {
    let mut pair = Pair::established(&Tunables::default());
    let mut syn = from_client(&mut pair, 0, b"");
    syn.header.flags = TcpFlags::SYN;
    let mut challenged = |millis: u64| {
        pair.now = pair.now + Duration::from_millis(millis);
        assert_eq!(take(&mut pair, &syn), Verdict::Drop(DropReason::SynChallenged));
        pair.poll(Which::Server).is_some()
    };
    assert!((0..10).all(|_| challenged(0)));
    assert!(!challenged(0));
    assert!(!challenged(499));
    assert!(challenged(1));
    assert!(!challenged(1));
    assert!((0..10).all(|number| challenged(if number == 0 { 60_000 } else { 0 })));
    assert!(!challenged(0));
}

#[test]
fn ack_outside_the_sent_range_is_refused_and_answered() {
    let cases = [(1, DropReason::AckUnsentData), (-(1 << 30), DropReason::TooOldAck)];
    for (beyond, reason) in cases {
        let mut pair = Pair::established(&Tunables::default());
        let mut flying = from_client(&mut pair, 0, b"text");
        let max = pair.server.connection.send_sequence().max;
        flying.header.ack = if beyond < 0 { max - (1 << 30) } else { max + 1 };
        assert_eq!(take(&mut pair, &flying), Verdict::Drop(reason));
        assert_eq!(pair.server.connection.unread(), 0, "the text goes with the segment");
        assert!(pair.poll(Which::Server).is_some());
    }
}

#[test]
fn unsent_numbers_cannot_be_acknowledged_at_any_window() {
    for (below, verdict) in [(0, Verdict::Accepted), (1, Verdict::Drop(DropReason::TooOldAck))] {
        let mut pair = Pair::established(&Tunables::default());
        let mut flying = from_client(&mut pair, 0, b"text");
        flying.header.ack = pair.server.connection.send_sequence().una - below;
        assert_eq!(take(&mut pair, &flying), verdict);
    }
}

#[test]
fn a_connection_that_is_over_takes_nothing_more() {
    let mut pair = Pair::established(&Tunables::default());
    let text = from_client(&mut pair, 0, &pattern(100));
    let mut reset = from_client(&mut pair, 0, &[]);
    reset.header.flags = TcpFlags::RST;
    assert_eq!(take(&mut pair, &reset), Verdict::Closed(CloseReason::Reset));
    assert_eq!(take(&mut pair, &text), Verdict::Drop(DropReason::Closed));
    assert!(pair.poll(Which::Server).is_none());
}
