//! Use of TSval and TSecr (RFC 7323).

use std::time::Duration;

use whimbrel_wire::tcp::{TcpFlags, Timestamps};

use super::pair::{Flying, Pair, Which, pattern};
use crate::conn::State;
use crate::tunables::MissingTimestamps;
use crate::{DropReason, Tunables, Verdict};

/// A segment of the client's at what the server expects, its TSval `newer` than the last.
fn stamped(pair: &mut Pair, newer: i32, text: &[u8]) -> Flying {
    let seq = pair.server.connection.recv_sequence().nxt;
    let recent = pair.server.connection.transfer.stamps.recent;
    let mut flying = pair.bare(Which::Client);
    flying.header.seq = seq;
    flying.text = text.to_vec();
    if let Some(stamps) = &mut flying.header.options.timestamps {
        stamps.val = recent.wrapping_add_signed(newer);
    }
    flying
}

fn take(pair: &mut Pair, flying: &Flying) -> Verdict {
    let now = pair.now;
    pair.server.take(now, flying)
}

/// TSecr of the server's next segment.
fn echoed(pair: &mut Pair) -> u32 {
    let segment = pair.bare(Which::Server);
    segment.header.options.timestamps.expect("timestamps").ecr
}

#[test]
fn newest_timestamp_at_or_before_the_last_ack_is_echoed() {
    let mut pair = Pair::established(&Tunables::default());
    let before = echoed(&mut pair);
    let next = stamped(&mut pair, 5, b"next");
    assert_eq!(take(&mut pair, &next), Verdict::Accepted);
    // Its acknowledgment is delayed: the segment behind it is not the earliest any more.
    let behind = stamped(&mut pair, 9, b"behind");
    assert_eq!(take(&mut pair, &behind), Verdict::Accepted);
    assert_eq!(echoed(&mut pair), before.wrapping_add(5));
    let mut beyond_a_gap = stamped(&mut pair, 20, b"beyond");
    beyond_a_gap.header.seq += 1_000;
    assert_eq!(take(&mut pair, &beyond_a_gap), Verdict::Accepted);
    assert_eq!(echoed(&mut pair), before.wrapping_add(5), "it did not move RCV.NXT");
}

#[test]
fn a_segment_that_is_refused_leaves_the_timestamp_to_echo_alone() {
    let far = 1 << 30;
    let cases: [(TcpFlags, u32, DropReason); 5] = [
        (TcpFlags::ACK, far, DropReason::AckUnsentData),
        (TcpFlags::ACK, far.wrapping_neg(), DropReason::TooOldAck),
        (TcpFlags::PSH, 0, DropReason::NoAck),
        (TcpFlags::SYN | TcpFlags::ACK, 0, DropReason::SynChallenged),
        (TcpFlags::RST, 0, DropReason::ResetChallenged),
    ];
    for (flags, ahead, reason) in cases {
        let mut pair = Pair::established(&Tunables::default());
        let before = echoed(&mut pair);
        let mut forged = stamped(&mut pair, 1 << 30, b"forged");
        forged.header.flags = flags;
        forged.header.ack += ahead;
        if flags.is_rst() {
            // At RCV.NXT it would be obeyed.
            forged.header.seq += 1;
        }
        assert_eq!(take(&mut pair, &forged), Verdict::Drop(reason));
        assert_eq!(echoed(&mut pair), before, "{flags:?}");
        let honest = stamped(&mut pair, 0, b"honest");
        assert_eq!(take(&mut pair, &honest), Verdict::Accepted);
    }
}

#[test]
fn an_old_acknowledgment_with_new_text_counts() {
    let mut pair = Pair::established(&Tunables::default());
    let mut old = stamped(&mut pair, 7, b"new");
    pair.write(Which::Server, &pattern(100));
    pair.run_until_quiet();
    old.header.seq = pair.server.connection.recv_sequence().nxt;
    let recent = pair.server.connection.transfer.stamps.recent.wrapping_add(7);
    old.header.options.timestamps = Some(Timestamps { val: recent, ecr: 0 });
    assert_eq!(take(&mut pair, &old), Verdict::Accepted);
    assert_eq!(echoed(&mut pair), recent);
}

#[test]
fn older_timestamp_is_acknowledged_and_dropped_except_on_reset() {
    let mut pair = Pair::established(&Tunables::default());
    let mut old = stamped(&mut pair, -2, b"old");
    assert_eq!(take(&mut pair, &old), Verdict::Drop(DropReason::Paws));
    assert!(pair.poll(Which::Server).is_some());
    assert_eq!(pair.server.connection.unread(), 0);
    old.text.clear();
    old.header.flags = TcpFlags::RST;
    assert!(matches!(take(&mut pair, &old), Verdict::Closed(_)));
}

#[test]
fn text_one_tick_older_is_taken_and_its_timestamp_not_echoed() {
    let mut pair = Pair::established(&Tunables::default());
    let late = stamped(&mut pair, -1, b"late");
    let before = pair.server.connection.transfer.stamps.recent;
    assert_eq!(take(&mut pair, &late), Verdict::Accepted);
    assert_eq!(pair.server.connection.unread(), 4);
    assert_eq!(echoed(&mut pair), before);
}

/// Returns the outcome of a segment of the server's that is `late` ticks older than its last one, with
/// `change` made to it, once 3,000 bytes of the client's are acknowledged.
fn late_by(late: i32, change: impl FnOnce(&mut Flying)) -> (Verdict, Option<Flying>, u64) {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(3_000));
    pair.run_until_quiet();
    let client = &pair.client.connection;
    let (recent, seq) = (client.transfer.stamps.recent, client.recv_sequence().nxt);
    let mut flying = pair.bare(Which::Server);
    flying.header.seq = seq;
    flying.header.ack = pair.client.connection.send_sequence().una;
    let stamps = flying.header.options.timestamps.as_mut().expect("negotiated");
    stamps.val = recent.wrapping_sub_signed(late);
    change(&mut flying);
    let now = pair.now;
    let verdict = pair.client.take(now, &flying);
    (verdict, pair.poll(Which::Client), pair.client.cx.counters.paws_old_acks)
}

#[test]
fn overtaken_acknowledgment_draws_no_answer_within_rto() {
    let pair = Pair::established(&Tunables::default());
    let rto = pair.client.connection.rtt().rto(&Tunables::default()).as_millis() as i32;
    let overtaken = Verdict::Drop(DropReason::PawsAck);
    let old = |it: &mut Flying| it.header.ack = it.header.ack - 1_000;
    let before = |it: &mut Flying| it.header.seq = it.header.seq - 1;
    for late in [2, rto / 2] {
        assert!(matches!(late_by(late, |_| ()), (it, None, 1) if it == overtaken), "{late}");
        assert!(matches!(late_by(late, old), (it, None, 1) if it == overtaken), "{late}");
        assert!(matches!(late_by(late, before), (it, None, 1) if it == overtaken), "{late}");
    }
    let refused = Verdict::Drop(DropReason::Paws);
    let is_answered = |(verdict, answer, overtaken): (_, Option<Flying>, u64)| {
        verdict == refused && answer.is_some() && overtaken == 0
    };
    assert!(is_answered(late_by(20 * rto, |_| ())), "later than that");
    assert!(is_answered(late_by(2, |it| it.header.ack += 1)), "something new is acknowledged");
    assert!(is_answered(late_by(2, |it| it.header.seq += 1)), "from where the peer has not sent");
    assert!(is_answered(late_by(2, |it| it.text = b"text".to_vec())));
    assert!(is_answered(late_by(2, |it| it.header.flags = TcpFlags::ACK | TcpFlags::FIN)));
    assert!(is_answered(late_by(2, |it| it.header.flags = TcpFlags::ACK | TcpFlags::SYN)));
    assert!(is_answered(late_by(2, |it| it.header.flags = TcpFlags::PSH)));
}

#[test]
fn segment_without_timestamps_is_taken_unless_rule_drops_it() {
    let missing_timestamps = MissingTimestamps::Drop;
    let strict = Tunables { missing_timestamps, ..Tunables::default() };
    for (rules, expected, unread) in [
        (Tunables::default(), Verdict::Accepted, 4),
        (strict, Verdict::Drop(DropReason::TimestampMissing), 0),
    ] {
        let mut pair = Pair::established(&rules);
        let mut bare = stamped(&mut pair, 0, b"bare");
        bare.header.options.timestamps = None;
        assert_eq!(take(&mut pair, &bare), expected);
        assert!(pair.poll(Which::Server).is_none(), "delayed, or none");
        assert_eq!(pair.server.connection.state(), State::Established);
        assert_eq!(pair.server.connection.unread(), unread);
    }
}

#[test]
fn after_timestamp_of_zero_any_is_taken() {
    let mut pair = Pair::established(&Tunables::default());
    pair.server.connection.transfer.stamps.recent = 0;
    let far = stamped(&mut pair, i32::MIN + 9, b"far");
    assert_eq!(take(&mut pair, &far), Verdict::Accepted);
    assert_eq!(pair.server.connection.transfer.stamps.recent, old_val(&far));
    let old = stamped(&mut pair, -2, b"old");
    assert_eq!(take(&mut pair, &old), Verdict::Drop(DropReason::Paws), "no longer");
}

#[test]
fn after_24_days_of_silence_any_timestamp_is_taken() {
    let mut pair = Pair::established(&Tunables::default());
    let day = Duration::from_secs(24 * 3600);
    pair.now = pair.now + 23 * day;
    let old = stamped(&mut pair, -2, b"old");
    assert_eq!(take(&mut pair, &old), Verdict::Drop(DropReason::Paws));
    pair.now = pair.now + day;
    let old = stamped(&mut pair, -2, b"old");
    assert_eq!(take(&mut pair, &old), Verdict::Accepted);
    assert_eq!(pair.server.connection.transfer.stamps.recent, old_val(&old));
}

#[test]
fn after_24_days_first_of_two_segments_may_come_late() {
    let mut pair = Pair::established(&Tunables::default());
    pair.now = pair.now + Duration::from_secs(24 * 24 * 3600);
    let first = stamped(&mut pair, -9, b"first");
    let mut second = stamped(&mut pair, -9, b"second");
    second.header.seq = first.header.seq + 5;
    assert_eq!(take(&mut pair, &second), Verdict::Accepted);
    pair.now = pair.now + Duration::from_secs(1);
    assert_eq!(take(&mut pair, &first), Verdict::Accepted);
    assert_eq!(pair.server.connection.unread(), 11);
}

fn old_val(flying: &Flying) -> u32 {
    flying.header.options.timestamps.expect("timestamps").val
}

#[test]
fn an_echo_measures_what_a_retransmission_made_ambiguous() {
    let tunables = Tunables { loss_probe: false, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let srtt = |pair: &Pair| pair.client.connection.rtt().srtt().expect("a measurement");
    let before = srtt(&pair);
    pair.write(Which::Client, b"text");
    let lost = pair.poll(Which::Client).expect("text");
    assert_eq!(lost.text, b"text");
    // Sent again after a time-out, only the echo tells which copy is acknowledged.
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.cx.counters.timeouts, 1);
    let sample = 8 * (srtt(&pair) - before) + before;
    assert!((19..=62).contains(&sample.as_millis()), "{sample:?}: one round trip, not two");
    assert_eq!(pair.client.connection.rtt().back_offs(), 0);
}

#[test]
fn the_echo_for_text_that_came_twice_is_not_measured() {
    let tunables = Tunables { loss_probe: false, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let rtt =
        |pair: &Pair| (pair.client.connection.rtt().srtt(), pair.client.connection.rtt().rttvar());
    let before = rtt(&pair);
    pair.write(Which::Client, b"text");
    pair.lose = |_, flying| flying.text.is_empty();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.received, b"text", "only its acknowledgment was lost");
    // The second copy lies below the window: what it says does not become TS.Recent, and its
    // acknowledgment echoes the first, a whole time-out ago.
    pair.lose = |_, _| false;
    pair.run_until_quiet();
    assert_eq!((pair.client.cx.counters.timeouts, pair.client.connection.send_queued()), (1, 0));
    assert_eq!((rtt(&pair), pair.client.connection.rtt().back_offs()), (before, 1));
}
