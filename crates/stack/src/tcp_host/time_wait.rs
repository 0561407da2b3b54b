//! TIME-WAIT: how records begin, what segments do to them, how they end.

use whimbrel_base::cold_path;
use whimbrel_tcp::Context;
use whimbrel_tcp::table::{
    Identity, Kind, Record, RefusalReason, RstVerdict, SegmentVerdict, SynAnswer, SynVerdict,
    TimeWait,
};
use whimbrel_tcp::{Counters, DropReason, Reply, Tunables, Verdict};
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::TcpFlags;

use super::TcpHost;
use super::found::{FoundSegment, ReusedFlow};
use crate::ip::{Arrival, FlowKey};
use crate::net::Net;
use crate::net::replies::PendingReply;

/// Flows in TIME-WAIT: how they begin, what segments do to them, how they end.
impl TcpHost {
    /// A record takes the connection's place. Returns where the table is to lead.
    #[inline]
    pub(crate) fn start_waiting(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        wait: TimeWait,
        key: &FlowKey,
    ) -> Record {
        if self.records.waits.is_full(cx.tunables.max_time_wait) || cx.pool.budget.is_full() {
            self.make_room_for_wait(cx, net);
        }
        let class = net.ip.addresses.path_class(&key.remote);
        self.active.on_own_wait(&net.ip.addresses, &wait);
        let index = self.records.waits.enter(class, wait);
        Record::new(Kind::TimeWait, index)
    }

    #[cold]
    #[inline(never)]
    fn make_room_for_wait(&mut self, cx: &mut Context, net: &mut Net) {
        // Two: a ring may have used up its numbers, too. Above a bound that was lowered, the clock
        // takes out the rest.
        for _ in 0..2 {
            if !self.records.waits.is_full(cx.tunables.max_time_wait) {
                break;
            }
            self.recycle_wait(cx, net);
        }
        // Memory for this one, from the one that has waited longest.
        if cx.pool.budget.is_full() {
            self.recycle_wait(cx, net);
        }
    }

    /// A segment for a flow in TIME-WAIT.
    #[inline(always)]
    pub(crate) fn on_waiting_segment(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> WaitStep {
        let arrival = &found.arrival;
        // A copy: what follows changes the ring that it lies in.
        let Some(wait) = self.records.waits.get(index).copied() else {
            return WaitStep::Verdict(Verdict::Drop(DropReason::TimeWait));
        };
        let header = &arrival.segment.header;
        if header.flags.contains(TcpFlags::RST) {
            return WaitStep::Verdict(
                self.on_reset_in_time_wait(cx, net, index, &wait, header.seq),
            );
        }
        if asks_to_open(header.flags, &cx.tunables) {
            return self.on_syn_in_time_wait(cx, net, index, &wait, arrival);
        }
        WaitStep::Verdict(match wait.judge_segment(&arrival.segment, &cx.tunables) {
            SegmentVerdict::AckAndRestart => {
                // Before the restart, which gives the record another number.
                let marking = self.marking_of(cx, Some(Record::new(Kind::TimeWait, index)));
                self.restart_wait(cx, net, index, found);
                let ack = self.wait_ack(cx, net, &wait);
                net.reply_from(
                    cx,
                    arrival.key.local_index,
                    PendingReply::Reply(arrival.key, ack, marking),
                );
                Verdict::Accepted
            }
            SegmentVerdict::Drop(DropReason::TimeWait) => {
                if let Some(wait) = self.records.waits.get_mut(index) {
                    wait.on_acceptable(header.seq, header.options.timestamps);
                }
                Verdict::Drop(DropReason::TimeWait)
            }
            SegmentVerdict::Ack(reason) => {
                let interval = cx.tunables.challenge_interval;
                let now = cx.tick;
                let wait = self.records.waits.get_mut(index);
                let answer = wait.is_some_and(|wait| wait.on_reply(now, interval)).into();
                self.answer_from_wait(cx, net, index, answer, reason)
            }
            SegmentVerdict::Drop(reason) => Verdict::Drop(reason),
        })
    }

    fn on_reset_in_time_wait(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        wait: &TimeWait,
        seq: SeqNum,
    ) -> Verdict {
        match wait.judge_rst(seq, cx.tick, cx.tunables.tw_rst) {
            RstVerdict::End => {
                cx.counters.time_wait_killed += 1;
                self.end_wait(net, index);
                Verdict::Accepted
            }
            RstVerdict::Ignore => Verdict::Drop(DropReason::TimeWaitReset),
        }
    }

    /// A SYN: a new connection of the same ends, or an old duplicate (RFC 6191, RFC 1122
    /// 4.2.2.13).
    fn on_syn_in_time_wait(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        wait: &TimeWait,
        arrival: &Arrival<'_>,
    ) -> WaitStep {
        let header = &arrival.segment.header;
        let stamps = header.options.timestamps;
        match wait.judge_syn(header.seq, stamps, cx.tunables.tw_syn) {
            SynVerdict::Reuse(by) => {
                let iss_floor = Some(wait.iss_floor());
                WaitStep::Reopen(ReusedFlow { iss_floor, replaces: Some((index, by)) })
            }
            SynVerdict::Refuse(reason) => {
                count_refusal(&mut cx.counters, reason);
                WaitStep::Verdict(self.refuse_syn_in_time_wait(cx, net, index, wait, arrival))
            }
        }
    }

    /// A SYN that looks old, or that no listener takes.
    fn refuse_syn_in_time_wait(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        wait: &TimeWait,
        arrival: &Arrival<'_>,
    ) -> Verdict {
        match wait.judge_answer(arrival.segment.header.seq, cx.tunables.tw_answer) {
            SynAnswer::ChallengeAck => {
                let (interval, now) = (cx.tunables.challenge_interval, cx.tick);
                let wait = self.records.waits.get_mut(index);
                let answer = wait.is_some_and(|wait| wait.on_challenge(now, interval)).into();
                self.answer_from_wait(cx, net, index, answer, DropReason::TimeWaitSyn)
            }
            SynAnswer::Reset => {
                Verdict::Reply(Reply::reset_for(&arrival.segment), DropReason::TimeWaitSyn)
            }
            SynAnswer::Silence => Verdict::Drop(DropReason::TimeWaitSyn),
        }
    }

    /// A SYN that no listener takes.
    pub(crate) fn refuse_reopening(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        arrival: &Arrival<'_>,
    ) -> Verdict {
        match self.records.waits.get(index).copied() {
            Some(wait) => self.refuse_syn_in_time_wait(cx, net, index, &wait, arrival),
            None => Verdict::Drop(DropReason::TimeWait),
        }
    }

    /// Acknowledges on behalf of a record, if it did not do so just now.
    fn answer_from_wait(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        answer: AckAllowance,
        reason: DropReason,
    ) -> Verdict {
        match (answer, self.records.waits.get(index)) {
            (AckAllowance::Now, Some(wait)) => {
                let reply = self.wait_ack(cx, net, wait);
                cx.counters.challenge_acks += 1;
                Verdict::Reply(reply, reason)
            }
            _ => {
                cx.counters.time_wait_acks_skipped += 1;
                Verdict::Drop(reason)
            }
        }
    }

    fn wait_ack(&self, cx: &Context, net: &Net, wait: &TimeWait) -> Reply {
        let ended = wait.ended();
        let local = net.ip.addresses.get(ended.local_index);
        let offset = local.map(|local| self.identity.timestamp_offset(local, &ended.remote));
        let mut ack = wait.ack_reply(offset.map(|offset| Identity::tsval(cx.tick, offset)));
        if let Some(marking) = self.records.markings.get(wait.marking()) {
            ack.flags |= marking.flags();
        }
        ack
    }

    /// The peer repeated its FIN: 2 MSL begin again.
    fn restart_wait(&mut self, cx: &Context, net: &Net, index: u32, found: &FoundSegment<'_>) {
        let tsval = found.arrival.segment.header.options.timestamps.map(|stamps| stamps.val);
        let moved = self.records.waits.restart(index, cx.tick, tsval);
        let Some(moved) = moved else { return };
        if let Some(wait) = self.records.waits.get(moved).copied() {
            self.active.on_wait_anew(&net.ip.addresses, &wait);
        }
        let (old, new) = (Record::new(Kind::TimeWait, index), Record::new(Kind::TimeWait, moved));
        self.records.flows.replace(found.hash, old, new);
    }

    /// A record goes before its time.
    pub(crate) fn end_wait(&mut self, net: &mut Net, index: u32) -> Option<TimeWait> {
        let wait = self.records.remove_wait(index)?;
        self.active.on_wait_gone(&mut net.ip.addresses, &wait);
        Some(wait)
    }

    /// A record is gone: neither the flow table nor its port should know of it.
    pub(crate) fn forget_wait(&mut self, net: &mut Net, index: u32, wait: &TimeWait) {
        self.active.on_wait_gone(&mut net.ip.addresses, wait);
        self.records.unlink_wait(index, wait);
    }

    /// At the bound the oldest record goes early.
    fn recycle_wait(&mut self, cx: &mut Context, net: &mut Net) {
        if let Some((index, wait)) = self.records.waits.recycle_oldest() {
            cx.counters.time_wait_overflow += 1;
            self.forget_wait(net, index, &wait);
        }
    }

    /// Records that are too many go, and those that expired; each takes one of what is `left`.
    pub(crate) fn advance_waits(&mut self, cx: &mut Context, net: &mut Net, left: &mut usize) {
        if self.records.waits.is_empty() {
            return;
        }
        while *left > 0 && self.records.has_surplus_waits(cx.tunables.max_time_wait) {
            cold_path();
            self.recycle_wait(cx, net);
            *left -= 1;
        }
        while *left > 0
            && let Some((index, wait)) =
                self.records.waits.pop_expired(cx.tick, &self.records.lifetimes)
        {
            self.forget_wait(net, index, &wait);
            *left -= 1;
        }
    }
}

/// The decision of the limit on a record's acknowledgments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckAllowance {
    Now,
    NotYet,
}

impl From<bool> for AckAllowance {
    fn from(may: bool) -> Self {
        if may { Self::Now } else { Self::NotYet }
    }
}

/// The outcome of a segment for a record in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitStep {
    Verdict(Verdict),
    /// It is a SYN that may open a connection in place of the record.
    Reopen(ReusedFlow),
}

/// True if a segment without RST asks for a new connection. SYN with FIN asks to open and to close at
/// once, which no TCP sends and scanners do.
#[inline]
pub(crate) fn asks_to_open(flags: TcpFlags, tunables: &Tunables) -> bool {
    let closes = flags.contains(TcpFlags::FIN) && tunables.drop_synfin;
    flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK) && !closes
}

fn count_refusal(counters: &mut Counters, reason: RefusalReason) {
    let count = match reason {
        RefusalReason::OlderTimestamp => &mut counters.time_wait_older_timestamp,
        RefusalReason::OldSequence => &mut counters.time_wait_old_sequence,
        RefusalReason::UndefinedOrder => &mut counters.time_wait_undefined_order,
        RefusalReason::Policy => &mut counters.time_wait_refused_by_policy,
    };
    *count += 1;
}
