extern crate std;

use core::time::Duration;

use whimbrel_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{RawWindow, SeqNum};

use super::{ChallengeReason, ReuseBy, RstVerdict, SegmentVerdict, SynVerdict};
use crate::segment::{Payload, RxSegment, SegMeta};
use crate::table::time_wait::tests::{RCV_NXT, SND_NXT, TS_RECENT, plain, with_timestamps};
use crate::time::Tick;
use crate::verdict::DropReason;

fn timestamps(val: u32) -> Option<Timestamps> {
    Some(Timestamps { val, ecr: 0 })
}

#[test]
fn a_syn_is_judged_as_the_table_says() {
    let table = include_str!("../../../../tests/tw_vectors.tsv");
    let mut judged = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("six fields");
        let (old, tsval, _, gap, verdict, reason) =
            (field(), field(), field(), field(), field(), field());
        let record = if old == "plain" { plain() } else { with_timestamps() };
        let gap: i64 = gap.parse().expect("a number");
        let seq = RCV_NXT + gap as u32;
        let timestamps = match tsval {
            "absent" => None,
            "newer" => timestamps(TS_RECENT.wrapping_add(1)),
            "older" => timestamps(TS_RECENT.wrapping_sub(1)),
            _ => timestamps(TS_RECENT),
        };
        let expected = match (verdict, reason) {
            ("reuse", "timestamp") => SynVerdict::Reuse(ReuseBy::Timestamp),
            ("reuse", "sequence") => SynVerdict::Reuse(ReuseBy::Sequence),
            ("challenge", "older-timestamp") => {
                SynVerdict::ChallengeAck(ChallengeReason::OlderTimestamp)
            }
            ("challenge", "old-sequence") => SynVerdict::ChallengeAck(ChallengeReason::OldSequence),
            ("challenge", "undefined-order") => {
                SynVerdict::ChallengeAck(ChallengeReason::UndefinedOrder)
            }
            other => panic!("unknown verdict {other:?}"),
        };
        assert_eq!(record.judge_syn(seq, timestamps), expected, "{line}");
        judged += 1;
    }
    assert_eq!(judged, 48);
}

#[test]
fn a_timestamp_half_a_circle_away_counts_as_older() {
    let seg = timestamps(TS_RECENT.wrapping_add(1 << 31));
    let verdict = with_timestamps().judge_syn(RCV_NXT + 1, seg);
    assert_eq!(verdict, SynVerdict::ChallengeAck(ChallengeReason::OlderTimestamp));
}

const INTERVAL: Duration = Duration::from_millis(500);

#[test]
fn a_record_challenges_at_most_once_per_interval_and_at_least_every_530_ms() {
    // Also where 32-bit ticks and 16-bit stamps wrap.
    for start in [0, 1, 8, 65_535 * 8, 524_280, u32::MAX - 250, u32::MAX] {
        let mut record = plain();
        let at = |millis: u32| Tick::new(start.wrapping_add(millis));
        assert!(record.on_challenge(at(0), INTERVAL));
        for millis in 0..500 {
            assert!(!record.on_challenge(at(millis), INTERVAL), "{millis} ms after {start}");
        }
        assert!(record.on_challenge(at(530), INTERVAL));
    }
}

#[test]
fn forged_data_does_not_spend_the_answer_that_a_syn_needs() {
    let mut record = plain();
    assert!(record.on_reply(Tick::new(100), INTERVAL));
    assert!(!record.on_reply(Tick::new(200), INTERVAL));
    assert!(record.on_challenge(Tick::new(200), INTERVAL));
}

#[test]
fn an_interval_of_zero_limits_nothing() {
    let mut record = plain();
    assert!(record.on_challenge(Tick::new(7), Duration::ZERO));
    assert!(record.on_challenge(Tick::new(7), Duration::ZERO));
}

#[test]
fn only_the_reset_that_answers_a_recent_challenge_ends_a_record() {
    let mut record = plain();
    assert_eq!(record.judge_rst(RCV_NXT, Tick::new(1000)), RstVerdict::Ignore);
    assert!(record.on_challenge(Tick::new(1000), INTERVAL));
    assert_eq!(record.judge_rst(RCV_NXT, Tick::new(1000)), RstVerdict::End);
    assert_eq!(record.judge_rst(RCV_NXT, Tick::new(2000)), RstVerdict::End);
    assert_eq!(record.judge_rst(RCV_NXT + 1, Tick::new(1001)), RstVerdict::Ignore);
    assert_eq!(record.judge_rst(RCV_NXT - 1, Tick::new(1001)), RstVerdict::Ignore);
    assert_eq!(record.judge_rst(RCV_NXT, Tick::new(2020)), RstVerdict::Ignore);
}

#[test]
fn an_acknowledgment_of_other_segments_does_not_invite_a_reset() {
    let mut record = plain();
    assert!(record.on_reply(Tick::new(1000), INTERVAL));
    assert_eq!(record.judge_rst(RCV_NXT, Tick::new(1001)), RstVerdict::Ignore);
}

fn segment(
    flags: TcpFlags,
    seq: SeqNum,
    text: &[u8],
    timestamps: Option<Timestamps>,
) -> RxSegment<'_> {
    let header = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq,
        ack: SND_NXT,
        flags,
        window: RawWindow::new(1000),
        urgent: 0,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
    };
    RxSegment { header, payload: Payload::Borrowed(text), meta: SegMeta::SINGLE }
}

const FIN_ACK: TcpFlags = TcpFlags::from_bits(TcpFlags::FIN.bits() | TcpFlags::ACK.bits());

#[test]
fn the_peers_fin_again_is_acknowledged_and_the_wait_begins_anew() {
    let fin = segment(FIN_ACK, RCV_NXT - 1, &[], None);
    assert_eq!(plain().judge_segment(&fin), SegmentVerdict::AckAndRestart);
    let with_text = segment(FIN_ACK, RCV_NXT - 5, b"last", None);
    assert_eq!(plain().judge_segment(&with_text), SegmentVerdict::AckAndRestart);
    let stamped = segment(FIN_ACK, RCV_NXT - 1, &[], timestamps(TS_RECENT));
    assert_eq!(with_timestamps().judge_segment(&stamped), SegmentVerdict::AckAndRestart);
}

#[test]
fn a_fin_with_an_older_timestamp_does_not_begin_the_wait_anew() {
    let fin = segment(FIN_ACK, RCV_NXT - 1, &[], timestamps(TS_RECENT.wrapping_sub(1)));
    assert_eq!(with_timestamps().judge_segment(&fin), SegmentVerdict::Ack(DropReason::Paws));
}

#[test]
fn what_lies_outside_the_window_is_acknowledged() {
    let ack = TcpFlags::ACK;
    for (seq, text, reason) in [
        (RCV_NXT - 100, &b"old"[..], DropReason::OldData),
        (RCV_NXT - 1, b"", DropReason::OldData),
        (RCV_NXT - 1, b"x", DropReason::OldData),
        (RCV_NXT + (2000 << 7), b"", DropReason::OverWindow),
        (RCV_NXT + (1 << 30), b"far", DropReason::OverWindow),
    ] {
        let verdict = plain().judge_segment(&segment(ack, seq, text, None));
        assert_eq!(verdict, SegmentVerdict::Ack(reason), "{seq}");
    }
}

#[test]
fn what_lies_in_the_window_needs_no_answer() {
    let ack = TcpFlags::ACK;
    for (seq, text) in [(RCV_NXT, &b""[..]), (RCV_NXT, b"new"), (RCV_NXT + (1999 << 7), b"")] {
        let verdict = plain().judge_segment(&segment(ack, seq, text, None));
        assert_eq!(verdict, SegmentVerdict::Drop(DropReason::TimeWait), "{seq}");
    }
}

#[test]
fn a_segment_without_ack_or_without_its_timestamp_is_dropped() {
    let no_ack = segment(TcpFlags::FIN, RCV_NXT - 1, &[], None);
    assert_eq!(plain().judge_segment(&no_ack), SegmentVerdict::Drop(DropReason::NoAck));
    let no_stamp = segment(FIN_ACK, RCV_NXT - 1, &[], None);
    let verdict = with_timestamps().judge_segment(&no_stamp);
    assert_eq!(verdict, SegmentVerdict::Drop(DropReason::TimestampMissing));
}

#[test]
fn its_acknowledgment_says_where_the_connection_ended() {
    let reply = with_timestamps().ack_reply(Some(77));
    assert_eq!((reply.seq, reply.ack, reply.flags), (SND_NXT, RCV_NXT, TcpFlags::ACK));
    assert_eq!(reply.window, RawWindow::new(2000));
    assert_eq!(reply.timestamps, Some(Timestamps { val: 77, ecr: TS_RECENT }));
    assert_eq!(plain().ack_reply(Some(77)).timestamps, None);
    assert_eq!(plain().iss_floor(), SND_NXT + 65_535);
}
