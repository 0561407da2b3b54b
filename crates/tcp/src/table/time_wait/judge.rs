//! Judgement of a segment that meets a record in TIME-WAIT: RFC 9293 3.10.7.4, RFC 6191, RFC 1337.
//!
//! Stacks differ here, and the tunables `tw.syn`, `tw.answer`, `tw.rst` and `tw.empty` name how: each
//! is looked at in one place, [`TimeWait::judge_syn`], [`TimeWait::judge_answer`],
//! [`TimeWait::judge_rst`] and [`TimeWait::judge_segment`].
//!
//! Judging changes nothing; [`TimeWait::on_challenge`] and [`TimeWait::on_reply`] note an answer,
//! and limit it. Both limits are the record's own, so that no peer can read one flow's traffic from
//! another's silence, as a limit shared by all flows lets (CVE-2016-5696); and they are apart from
//! each other, so that forged data cannot spend the answer that an honest SYN needs.

use core::time::Duration;

use whimbrel_base::Tick;
use whimbrel_base::time::millis;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{TcpFlags, Timestamps};

use super::{Stamp, TimeWait};
use crate::segment::RxSegment;
use crate::tunables::{
    AnswerInTimeWait, EmptyInTimeWait, MissingTimestamps, RstInTimeWait, SynInTimeWait, Tunables,
};
use crate::verdict::{DropReason, Reply};

/// The reaction to a SYN that asks to open (without ACK and RST) and meets a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum SynVerdict {
    /// It is new: the connection is opened again.
    Reuse(ReuseBy),
    /// It looks old: [`TimeWait::judge_answer`] says what it is answered.
    Refuse(RefusalReason),
}

/// The answer to a SYN that looks old.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum SynAnswer {
    /// A challenge, if [`TimeWait::on_challenge`] allows one, else silence.
    ChallengeAck,
    /// A reset, as for a flow without a record.
    Reset,
    /// The segment is not answered.
    Silence,
}

/// The evidence that a SYN is new.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReuseBy {
    /// A newer TSval. It cannot be an old duplicate: the record may go at once.
    Timestamp,
    /// A sequence number above RCV.NXT. It may be an old duplicate all the same (RFC 1122
    /// 4.2.2.13 b): keep the record until the handshake is complete.
    Sequence,
}

/// The reason why a SYN looks old.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefusalReason {
    /// Its TSval is older than TS.Recent.
    OlderTimestamp,
    /// Its sequence number is not above RCV.NXT, or not as far above as it should be, and no TSval
    /// speaks for it.
    OldSequence,
    /// Its sequence number is 2^31 from RCV.NXT, where order is undefined (RFC 1982), and no TSval
    /// speaks for it.
    UndefinedOrder,
    /// No SYN is new enough.
    Policy,
}

/// The reaction to a reset that meets a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum RstVerdict {
    /// It answers our challenge: the record goes.
    End,
    /// It may be anybody's: ignored (RFC 1337) and counted.
    Ignore,
}

/// The verdict on a connection of ours that would take a record's place and port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum TakeOver {
    /// The port can be taken now.
    Safe,
    /// If nothing comes, in as many ms.
    After(u32),
    /// Not before 2 MSL are over: nothing tells an old duplicate from a new segment.
    Never,
}

/// The reaction to any other segment that meets a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum SegmentVerdict {
    /// The peer's FIN again: acknowledge it, and begin the 2 MSL anew
    /// ([`TimeWaits::restart`](super::TimeWaits::restart)).
    AckAndRestart,
    /// Not what both sides end with: acknowledge it, if [`TimeWait::on_reply`] allows, and drop it.
    Ack(DropReason),
    /// The segment is dropped for this reason.
    Drop(DropReason),
}

impl TimeWait {
    /// Judges a SYN by its sequence number and its timestamps.
    pub fn judge_syn(
        &self,
        seq: SeqNum,
        timestamps: Option<Timestamps>,
        policy: SynInTimeWait,
    ) -> SynVerdict {
        let gap = seq.distance_from(self.rcv_nxt);
        let newer_by = match (self.ts_recent(), timestamps) {
            (Some(recent), Some(seg)) => seg.val.wrapping_sub(recent).cast_signed(),
            _ => 0,
        };
        match policy {
            SynInTimeWait::Rfc6191 => judge_by_rfc6191(gap, newer_by),
            SynInTimeWait::BySequence => judge_by_gap(gap > 0),
            SynInTimeWait::Linux => judge_as_linux(gap, newer_by),
            SynInTimeWait::Illumos => judge_by_gap(gap > 0 && gap.unsigned_abs() > self.window()),
            SynInTimeWait::Never => SynVerdict::Refuse(RefusalReason::Policy),
        }
    }

    /// Judges what a SYN is answered that looks old.
    pub fn judge_answer(&self, seq: SeqNum, policy: AnswerInTimeWait) -> SynAnswer {
        match policy {
            AnswerInTimeWait::ChallengeAck => SynAnswer::ChallengeAck,
            // illumos and lwIP count the byte behind the window as in it.
            AnswerInTimeWait::ResetInWindow if seq.offset_from(self.rcv_nxt) <= self.window() => {
                SynAnswer::Reset
            }
            AnswerInTimeWait::ResetInWindow => SynAnswer::ChallengeAck,
            AnswerInTimeWait::Silence => SynAnswer::Silence,
        }
    }

    /// Judges a reset. A client whose SYN was challenged answers `<SEQ=RCV.NXT><CTL=RST>`: by
    /// default only that one ends the record, and only within a second of the challenge. Any other
    /// would be TIME-WAIT assassination (RFC 1337).
    pub fn judge_rst(&self, seq: SeqNum, now: Tick, policy: RstInTimeWait) -> RstVerdict {
        let ends = match policy {
            RstInTimeWait::Challenged => {
                let since = self.challenged.millis_to(now);
                seq == self.rcv_nxt && since.is_some_and(|(_, millis)| millis <= 1000)
            }
            RstInTimeWait::Ignore => false,
            RstInTimeWait::AtRcvNxt => seq == self.rcv_nxt,
            RstInTimeWait::End => seq == self.rcv_nxt || seq.in_window(self.rcv_nxt, self.window()),
        };
        if ends { RstVerdict::End } else { RstVerdict::Ignore }
    }

    /// Judges whether a connection of ours may begin in this one's place: if timestamps tell their
    /// segments apart, and the last one is `delay` old.
    ///
    /// RFC 7323 B.2: what arrives of the old connection has a TSval less than TS.Recent, which the
    /// new one inherits, if the clocks of both sides have ticked since. Ours has when the tick is
    /// another; but two ticks that follow each other may be a microsecond apart, in which no clock
    /// of the peer's has. So it takes one more than `delay` has, and a delay of 1 ms is enough
    /// towards a peer that ticks each ms, however short the path.
    pub fn judge_take_over(&self, now: Tick, delay: Duration) -> TakeOver {
        if self.ts_recent().is_none() {
            return TakeOver::Never;
        }
        let silent = now.millis_since(self.spoke(now));
        match (millis(delay).min(DAY) + 1).saturating_sub(silent) {
            0 => TakeOver::Safe,
            left => TakeOver::After(left),
        }
    }

    /// When it last sent anything, to some ms and never too early: as it entered, or in answer to
    /// something that came since.
    pub fn spoke(&self, now: Tick) -> Tick {
        let answered = [self.challenged, self.replied].map(|stamp| stamp.millis_to(now));
        let answered = answered.into_iter().flatten().map(|(millis, _)| millis);
        let silent = answered.fold(now.millis_since(self.entered), u32::min);
        Tick::new(now.raw().wrapping_sub(silent))
    }

    /// Judges a segment that neither resets nor asks to open.
    pub fn judge_segment(&self, seg: &RxSegment<'_>, rules: &Tunables) -> SegmentVerdict {
        let header = &seg.header;
        if header.flags.contains(TcpFlags::SYN) {
            // RFC 5961 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST
            // send an ACK (also referred to as challenge ACK) to the remote peer". It is no honest
            // client's, so its answer does not invite a reset.
            return SegmentVerdict::Ack(DropReason::SynChallenged);
        }
        match (self.ts_recent(), header.options.timestamps) {
            // RFC 7323 3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD
            // silently drop the segment."
            (Some(_), None) if rules.missing_timestamps != MissingTimestamps::Take => {
                return SegmentVerdict::Drop(DropReason::TimestampMissing);
            }
            // RFC 7323 5.3 R1: an older TSval is not acceptable, and is acknowledged.
            (Some(recent), Some(seg)) if seg.val.wrapping_sub(recent).cast_signed() < 0 => {
                return SegmentVerdict::Ack(DropReason::Paws);
            }
            _ => {}
        }
        let (seq, len) = (header.seq, seg.len());
        if header.flags.contains(TcpFlags::FIN | TcpFlags::ACK) && seq + len == self.rcv_nxt {
            // RFC 9293 3.10.7.4: "The only thing that can arrive in this state is a retransmission
            // of the remote FIN. Acknowledge it, and restart the 2 MSL timeout." It lies before
            // RCV.NXT, so it must be known before the test of the window.
            return SegmentVerdict::AckAndRestart;
        }
        if let Some(reason) = self.judge_window(seq, len) {
            return SegmentVerdict::Ack(reason);
        }
        if !header.flags.contains(TcpFlags::ACK) {
            // RFC 9293 3.10.7.4: "if the ACK bit is off, drop the segment and return".
            return SegmentVerdict::Drop(DropReason::NoAck);
        }
        // Nothing can follow the peer's FIN: RFC 9293 3.10.7.4 has text ignored. Who sends some all the
        // same, or acknowledges something else, learns where both streams ended.
        if self.needs_no_answer(seg, rules.tw_empty) {
            SegmentVerdict::Drop(DropReason::TimeWait)
        } else {
            SegmentVerdict::Ack(DropReason::TimeWait)
        }
    }

    /// True if an acceptable segment is the acknowledgment that both sides end with: two hosts in
    /// TIME-WAIT would answer each other's for ever.
    fn needs_no_answer(&self, seg: &RxSegment<'_>, policy: EmptyInTimeWait) -> bool {
        let empty = seg.is_empty() && seg.header.seq == self.rcv_nxt;
        match policy {
            EmptyInTimeWait::Answer => {
                empty && seg.header.flags == TcpFlags::ACK && seg.header.ack == self.snd_nxt
            }
            EmptyInTimeWait::Silence => empty,
        }
    }

    /// True if to send the challenge that a SYN is due: no more than one in `interval`.
    pub fn on_challenge(&mut self, now: Tick, interval: Duration) -> bool {
        self.challenged.renew(now, interval)
    }

    /// True if to send the acknowledgment that another segment is due: no more than one in
    /// `interval`.
    pub fn on_reply(&mut self, now: Tick, interval: Duration) -> bool {
        self.replied.renew(now, interval)
    }

    /// Every acknowledgment of a record: `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`. `tsval` is this
    /// host's timestamp for the peer; it is used if the connection used timestamps.
    pub fn ack_reply(&self, tsval: Option<u32>) -> Reply {
        let both = self.ts_recent().zip(tsval);
        Reply {
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: TcpFlags::ACK,
            window: self.window,
            timestamps: both.map(|(ecr, val)| Timestamps { val, ecr }),
        }
    }

    /// The least ISS of a connection that takes this one's place. RFC 1122 4.2.2.13:
    /// "assigns its initial sequence number for the new connection to be larger than the largest
    /// sequence number it used on the previous connection incarnation"; beyond an unscaled window
    /// more (65,535), so that nothing of the old one can be taken for the new one's.
    pub fn iss_floor(&self) -> SeqNum {
        self.snd_nxt + 65_536
    }

    /// Why a segment is not acceptable, if it is not.
    fn judge_window(&self, seq: SeqNum, len: u32) -> Option<DropReason> {
        let window = self.window();
        // RFC 9293 3.10.7.4, the four cases of the acceptability test: the first or the last byte
        // lies in the window; an empty segment counts as its SEQ, and RCV.NXT as in a window of 0.
        let last = if len == 0 { seq } else { seq + (len - 1) };
        let acceptable = seq.in_window(self.rcv_nxt, window)
            || last.in_window(self.rcv_nxt, window)
            || (len == 0 && seq == self.rcv_nxt);
        let old = seq.before(self.rcv_nxt);
        let reason = if old { DropReason::OldData } else { DropReason::OverWindow };
        (!acceptable).then_some(reason)
    }

    /// RCV.WND as it was announced last, in bytes.
    fn window(&self) -> u32 {
        self.window.scaled(self.scale()).get()
    }
}

/// RFC 6191: the timestamps decide, and the sequence number where they do not.
fn judge_by_rfc6191(gap: i32, newer_by: i32) -> SynVerdict {
    // RFC 6191 2: a SYN whose timestamp is greater than the last one seen is honoured, whatever
    // its sequence number; at a distance of 2^31 it counts as older.
    if newer_by > 0 {
        return SynVerdict::Reuse(ReuseBy::Timestamp);
    }
    if newer_by < 0 {
        return SynVerdict::Refuse(RefusalReason::OlderTimestamp);
    }
    match gap {
        i32::MIN => SynVerdict::Refuse(RefusalReason::UndefinedOrder),
        // RFC 9293 3.6.1, MAY-2: "it MAY accept a new SYN from the remote TCP endpoint to reopen
        // the connection directly from TIME-WAIT state".
        _ => judge_by_gap(gap > 0),
    }
}

/// Linux: PAWS first, by which a distance of 2^31 is not old but new; then either is enough.
fn judge_as_linux(gap: i32, newer_by: i32) -> SynVerdict {
    let newer = newer_by > 0 || newer_by == i32::MIN;
    if newer {
        SynVerdict::Reuse(ReuseBy::Timestamp)
    } else if newer_by < 0 {
        SynVerdict::Refuse(RefusalReason::OlderTimestamp)
    } else {
        judge_by_gap(gap > 0 || gap == i32::MIN)
    }
}

fn judge_by_gap(is_new: bool) -> SynVerdict {
    if is_new {
        SynVerdict::Reuse(ReuseBy::Sequence)
    } else {
        SynVerdict::Refuse(RefusalReason::OldSequence)
    }
}

impl Stamp {
    /// True if `interval` has passed since the last time this returned true.
    fn renew(&mut self, now: Tick, interval: Duration) -> bool {
        let since = self.millis_to(now).map(|(since, _)| since);
        let passed = since.is_none_or(|since| since >= millis(interval));
        if passed {
            *self = Self::new(now);
        }
        passed
    }
}

/// A day in milliseconds.
const DAY: u32 = 86_400_000;

#[cfg(test)]
mod tests;
