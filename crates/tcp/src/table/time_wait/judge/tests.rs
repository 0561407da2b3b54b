use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Tick;
use whimbrel_wire::tcp::{OptionsView, TcpFlags, TcpView, Timestamps};
use whimbrel_wire::{RawWindow, SeqNum, TrafficClass};

use super::{RefusalReason, ReuseBy, RstVerdict, SegmentVerdict, SynAnswer, SynVerdict, TakeOver};
use crate::segment::RxSegment;
use crate::table::time_wait::TimeWait;
use crate::table::time_wait::tests::{RCV_NXT, SND_NXT, TS_RECENT, plain, with_timestamps};
use crate::tunables::{
    AnswerInTimeWait, EmptyInTimeWait, MissingTimestamps, RstInTimeWait, SynInTimeWait, Tunables,
};
use crate::verdict::DropReason;
use whimbrel_base::packet::{Payload, SegMeta};

fn timestamps(val: u32) -> Option<Timestamps> {
    Some(Timestamps { val, ecr: 0 })
}

#[test]
fn a_syn_is_judged_as_the_table_says() {
    let table = include_str!("../../../../../../tests/tw_vectors.tsv");
    let mut judged = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("seven fields");
        let (old, tsval, _, gap, verdict, reason, linux) =
            (field(), field(), field(), field(), field(), field(), field());
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
            ("challenge", "older-timestamp") => SynVerdict::Refuse(RefusalReason::OlderTimestamp),
            ("challenge", "old-sequence") => SynVerdict::Refuse(RefusalReason::OldSequence),
            ("challenge", "undefined-order") => SynVerdict::Refuse(RefusalReason::UndefinedOrder),
            other => panic!("unknown verdict {other:?}"),
        };
        assert_eq!(record.judge_syn(seq, timestamps, SynInTimeWait::Rfc6191), expected, "{line}");
        let as_linux = record.judge_syn(seq, timestamps, SynInTimeWait::Linux);
        assert_eq!(matches!(as_linux, SynVerdict::Reuse(_)), linux == "reuse", "{line}");
        judged += 1;
    }
    assert_eq!(judged, 48);
}

#[test]
fn a_timestamp_half_a_circle_away_counts_as_older() {
    let seg = timestamps(TS_RECENT.wrapping_add(1 << 31));
    let verdict = with_timestamps().judge_syn(RCV_NXT + 1, seg, SynInTimeWait::Rfc6191);
    assert_eq!(verdict, SynVerdict::Refuse(RefusalReason::OlderTimestamp));
}

/// The window of the records: 2000 << 7.
const WINDOW: i64 = 256_000;
const HALF: i64 = 1 << 31;
/// The gaps at which stacks differ: SYN.SEQ - RCV.NXT.
const GAPS: [i64; 10] =
    [-HALF, -HALF + 1, -1_000_000, -1, 0, 1, WINDOW, WINDOW + 1, 1_000_000, HALF - 1];

/// The gaps at which `policy` accepts a SYN whose TSval is `newer_by` newer than TS.Recent.
fn accepted_gaps(policy: SynInTimeWait, newer_by: u32) -> Vec<i64> {
    let seg = timestamps(TS_RECENT.wrapping_add(newer_by));
    let accepts = |gap: &i64| {
        let verdict = with_timestamps().judge_syn(RCV_NXT + *gap as u32, seg, policy);
        matches!(verdict, SynVerdict::Reuse(_))
    };
    GAPS.into_iter().filter(accepts).collect()
}

const OLDER: u32 = u32::MAX;
const ABOVE: [i64; 5] = [1, WINDOW, WINDOW + 1, 1_000_000, HALF - 1];

#[test]
fn freebsd_and_gvisor_look_at_the_sequence_number_alone() {
    for newer_by in [0, 1, OLDER, 1 << 31] {
        assert_eq!(accepted_gaps(SynInTimeWait::BySequence, newer_by), ABOVE);
    }
}

#[test]
fn linux_takes_newer_by_either_and_older_by_no_timestamp() {
    let and_half: Vec<i64> = [-HALF].into_iter().chain(ABOVE).collect();
    assert_eq!(accepted_gaps(SynInTimeWait::Linux, 0), and_half);
    assert_eq!(accepted_gaps(SynInTimeWait::Linux, 1), GAPS);
    assert_eq!(accepted_gaps(SynInTimeWait::Linux, 1 << 31), GAPS, "not old to PAWS");
    assert_eq!(accepted_gaps(SynInTimeWait::Linux, OLDER), []);
}

#[test]
fn illumos_takes_what_lies_beyond_the_whole_window() {
    for newer_by in [0, 1, OLDER] {
        let accepted = accepted_gaps(SynInTimeWait::Illumos, newer_by);
        assert_eq!(accepted, [WINDOW + 1, 1_000_000, HALF - 1]);
    }
}

#[test]
fn lwip_and_smoltcp_take_no_syn() {
    for newer_by in [0, 1, OLDER] {
        assert_eq!(accepted_gaps(SynInTimeWait::Never, newer_by), []);
    }
}

#[test]
fn only_the_default_tells_the_undefined_order() {
    let judge = |policy| plain().judge_syn(RCV_NXT + (1 << 31), None, policy);
    let undefined = SynVerdict::Refuse(RefusalReason::UndefinedOrder);
    assert_eq!(judge(SynInTimeWait::Rfc6191), undefined);
    assert_eq!(judge(SynInTimeWait::Linux), SynVerdict::Reuse(ReuseBy::Sequence));
    let old = SynVerdict::Refuse(RefusalReason::OldSequence);
    assert_eq!(judge(SynInTimeWait::BySequence), old);
    assert_eq!(judge(SynInTimeWait::Illumos), old);
}

#[test]
fn a_refused_syn_is_answered_as_the_policy_says() {
    let answers = |policy| GAPS.map(|gap| plain().judge_answer(RCV_NXT + gap as u32, policy));
    assert_eq!(answers(AnswerInTimeWait::ChallengeAck), [SynAnswer::ChallengeAck; 10]);
    assert_eq!(answers(AnswerInTimeWait::Silence), [SynAnswer::Silence; 10]);
    let reset = |gap: i64| (0..=WINDOW).contains(&gap);
    let expected =
        GAPS.map(|gap| if reset(gap) { SynAnswer::Reset } else { SynAnswer::ChallengeAck });
    assert_eq!(answers(AnswerInTimeWait::ResetInWindow), expected, "illumos and lwIP");
}

#[test]
fn resets_end_records_as_the_policy_says() {
    let ending = |policy| -> Vec<i64> {
        let ends = |gap: &i64| {
            let verdict = plain().judge_rst(RCV_NXT + *gap as u32, Tick::new(9), policy);
            verdict == RstVerdict::End
        };
        GAPS.into_iter().filter(ends).collect()
    };
    assert_eq!(ending(RstInTimeWait::Challenged), [], "nothing was challenged");
    assert_eq!(ending(RstInTimeWait::Ignore), []);
    assert_eq!(ending(RstInTimeWait::AtRcvNxt), [0]);
    assert_eq!(ending(RstInTimeWait::End), [0, 1]);
}

const INTERVAL: Duration = Duration::from_millis(500);

#[test]
fn record_challenges_once_per_interval_530_ms_at_least() {
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

fn challenged(record: &TimeWait, seq: SeqNum, millis: u32) -> RstVerdict {
    record.judge_rst(seq, Tick::new(millis), RstInTimeWait::Challenged)
}

#[test]
fn only_the_reset_that_answers_a_recent_challenge_ends_a_record() {
    let mut record = plain();
    assert_eq!(challenged(&record, RCV_NXT, 1000), RstVerdict::Ignore);
    assert!(record.on_challenge(Tick::new(1000), INTERVAL));
    assert_eq!(challenged(&record, RCV_NXT, 1000), RstVerdict::End);
    assert_eq!(challenged(&record, RCV_NXT, 2000), RstVerdict::End);
    assert_eq!(challenged(&record, RCV_NXT + 1, 1001), RstVerdict::Ignore);
    assert_eq!(challenged(&record, RCV_NXT - 1, 1001), RstVerdict::Ignore);
    assert_eq!(challenged(&record, RCV_NXT, 2020), RstVerdict::Ignore);
}

#[test]
fn an_acknowledgment_of_other_segments_does_not_invite_a_reset() {
    let mut record = plain();
    assert!(record.on_reply(Tick::new(1000), INTERVAL));
    assert_eq!(challenged(&record, RCV_NXT, 1001), RstVerdict::Ignore);
}

fn segment(
    flags: TcpFlags,
    seq: SeqNum,
    text: &[u8],
    timestamps: Option<Timestamps>,
) -> RxSegment<'_> {
    let header = TcpView {
        src_port: 1,
        dst_port: 2,
        seq,
        ack: SND_NXT,
        flags,
        window: RawWindow::new(1000),
        urgent: 0,
        options: OptionsView::only(timestamps),
    };
    RxSegment {
        header,
        payload: Payload::borrowed(text),
        meta: SegMeta::SINGLE,
        class: TrafficClass::default(),
    }
}

const FIN_ACK: TcpFlags = TcpFlags::from_bits(TcpFlags::FIN.bits() | TcpFlags::ACK.bits());

#[test]
fn the_peers_fin_again_is_acknowledged_and_the_wait_begins_anew() {
    let fin = segment(FIN_ACK, RCV_NXT - 1, &[], None);
    assert_eq!(plain().judge_segment(&fin, &Tunables::default()), SegmentVerdict::AckAndRestart);
    let with_text = segment(FIN_ACK, RCV_NXT - 5, b"last", None);
    assert_eq!(
        plain().judge_segment(&with_text, &Tunables::default()),
        SegmentVerdict::AckAndRestart
    );
    let stamped = segment(FIN_ACK, RCV_NXT - 1, &[], timestamps(TS_RECENT));
    assert_eq!(
        with_timestamps().judge_segment(&stamped, &Tunables::default()),
        SegmentVerdict::AckAndRestart
    );
}

#[test]
fn a_fin_with_an_older_timestamp_does_not_begin_the_wait_anew() {
    let fin = segment(FIN_ACK, RCV_NXT - 1, &[], timestamps(TS_RECENT.wrapping_sub(1)));
    assert_eq!(
        with_timestamps().judge_segment(&fin, &Tunables::default()),
        SegmentVerdict::Ack(DropReason::Paws)
    );
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
        let verdict = plain().judge_segment(&segment(ack, seq, text, None), &Tunables::default());
        assert_eq!(verdict, SegmentVerdict::Ack(reason), "{seq}");
    }
}

#[test]
fn syn_that_opens_nothing_is_challenged_wherever_it_lies() {
    for flags in [TcpFlags::SYN_ACK, TcpFlags::SYN | TcpFlags::FIN] {
        for seq in [RCV_NXT - 1, RCV_NXT, RCV_NXT + 1_000, RCV_NXT + (1 << 30)] {
            let syn = segment(flags, seq, &[], None);
            let challenged = SegmentVerdict::Ack(DropReason::SynChallenged);
            assert_eq!(plain().judge_segment(&syn, &Tunables::default()), challenged, "{flags:?}");
            assert_eq!(
                with_timestamps().judge_segment(&syn, &Tunables::default()),
                challenged,
                "{flags:?}"
            );
        }
    }
}

#[test]
fn only_the_final_ack_in_the_window_is_not_answered() {
    let (ack, push, urgent) =
        (TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH, TcpFlags::ACK | TcpFlags::URG);
    // SEQ less RCV.NXT, ACK less SND.NXT; and whether it is answered, by default and where `tw.empty`
    // is `silence`.
    for (flags, seq, number, text, by_default, under_silence) in [
        (ack, 0, 0, &b""[..], false, false),
        (ack, 0, u32::MAX, b"", true, false),
        (ack, 0, 1, b"", true, false),
        (ack, 0, 1 << 31, b"", true, false),
        (push, 0, 0, b"", true, false),
        (urgent, 0, 0, b"", true, false),
        (ack | TcpFlags::ECE, 0, 0, b"", true, false),
        (ack, 1, 0, b"", true, true),
        (ack, 1999 << 7, 0, b"", true, true),
        (ack, 0, 0, b"new", true, true),
        (ack, 5, 0, b"new", true, true),
        (FIN_ACK, 0, 0, b"", true, true),
    ] {
        let mut segment = segment(flags, RCV_NXT + seq, text, None);
        segment.header.ack = SND_NXT + number;
        for (tw_empty, answered) in
            [(EmptyInTimeWait::Answer, by_default), (EmptyInTimeWait::Silence, under_silence)]
        {
            let rules = Tunables { tw_empty, ..Tunables::default() };
            let expected = match answered {
                true => SegmentVerdict::Ack(DropReason::TimeWait),
                false => SegmentVerdict::Drop(DropReason::TimeWait),
            };
            let verdict = plain().judge_segment(&segment, &rules);
            assert_eq!(verdict, expected, "{tw_empty:?} {flags:?} {seq} {number} {text:?}");
        }
    }
}

#[test]
fn segment_without_ack_drops_and_without_timestamp_by_rule() {
    let no_ack = segment(TcpFlags::FIN, RCV_NXT, &[], None);
    assert_eq!(
        plain().judge_segment(&no_ack, &Tunables::default()),
        SegmentVerdict::Drop(DropReason::NoAck)
    );
    let old = segment(TcpFlags::FIN, RCV_NXT - 1, &[], None);
    let verdict = plain().judge_segment(&old, &Tunables::default());
    assert_eq!(verdict, SegmentVerdict::Ack(DropReason::OldData), "the window is looked at first");
    let strict = Tunables { missing_timestamps: MissingTimestamps::Drop, ..Tunables::default() };
    let no_stamp = segment(FIN_ACK, RCV_NXT - 1, &[], None);
    let verdict = with_timestamps().judge_segment(&no_stamp, &strict);
    assert_eq!(verdict, SegmentVerdict::Drop(DropReason::TimestampMissing));
    let verdict = with_timestamps().judge_segment(&no_stamp, &Tunables::default());
    assert_eq!(verdict, SegmentVerdict::AckAndRestart);
}

#[test]
fn its_acknowledgment_says_where_the_connection_ended() {
    let reply = with_timestamps().ack_reply(Some(77));
    assert_eq!((reply.seq, reply.ack, reply.flags), (SND_NXT, RCV_NXT, TcpFlags::ACK));
    assert_eq!(reply.window, RawWindow::new(2000));
    assert_eq!(reply.timestamps, Some(Timestamps { val: 77, ecr: TS_RECENT }));
    assert_eq!(plain().ack_reply(Some(77)).timestamps, None);
    assert_eq!(plain().iss_floor(), SND_NXT + 65_536);
}

#[test]
fn a_successor_waits_until_the_delay_is_over_by_every_clock() {
    let left = |delay: u64, millis: u32| {
        with_timestamps().judge_take_over(Tick::new(millis), Duration::from_millis(delay))
    };
    // A host's own clock resolves no less than a tick; a tick away is one microsecond or a millisecond.
    for (delay, waits) in [(0, 1), (1, 2), (10, 11), (1_000, 1_001)] {
        assert_eq!(left(delay, 0), TakeOver::After(waits));
        assert_eq!(left(delay, waits - 1), TakeOver::After(1));
        assert_eq!(left(delay, waits), TakeOver::Safe);
    }
    assert_eq!(plain().judge_take_over(Tick::new(9_000), Duration::ZERO), TakeOver::Never);
}

#[test]
fn a_successor_waits_for_what_the_record_itself_answered() {
    for answer in [TimeWait::on_challenge, TimeWait::on_reply] {
        let mut record = with_timestamps();
        assert!(answer(&mut record, Tick::new(5_000), INTERVAL));
        let judge = |millis| record.judge_take_over(Tick::new(millis), Duration::from_secs(1));
        assert!(matches!(judge(5_999), TakeOver::After(_)));
        // What is remembered of it is coarse, and never earlier than it was.
        assert_eq!(judge(6_030), TakeOver::Safe);
    }
}
