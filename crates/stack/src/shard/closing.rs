//! TIME-WAIT: how records begin, what segments do to them, how they end.

use whimbrel_base::cold_path;
use whimbrel_tcp::table::{
    Identity, Kind, Record, RefusalReason, ReuseBy, RstVerdict, SegmentVerdict, SynAnswer,
    SynEntry, SynVerdict, TimeWait,
};
use whimbrel_tcp::{DropReason, Reply, Verdict};
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::TcpFlags;

use super::Shard;
use super::found::{FoundSegment, ReusedFlow};
use crate::dial::Withdrawal;
use crate::ip::{Arrival, FlowKey};
use crate::replies::Pending;

/// Flows in TIME-WAIT: how they begin, what segments do to them, how they end.
impl Shard {
    /// A record takes the connection's place. Returns where the table is to lead.
    #[inline]
    pub(super) fn start_waiting(&mut self, wait: TimeWait, key: &FlowKey) -> Record {
        if self.tcp.records.waits.is_full(self.cx.tunables.max_time_wait)
            || self.cx.pool.budget.is_full()
        {
            self.make_room_for_wait();
        }
        let class = self.net.ip.addresses.path_class(&key.remote);
        self.tcp.active.on_own_wait(&self.net.ip.addresses, &wait);
        let index = self.tcp.records.waits.enter(class, wait);
        Record::new(Kind::TimeWait, index)
    }

    #[cold]
    #[inline(never)]
    fn make_room_for_wait(&mut self) {
        // Two: a ring may have used up its numbers, too. Above a bound that was lowered, the clock
        // takes out the rest.
        for _ in 0..2 {
            if !self.tcp.records.waits.is_full(self.cx.tunables.max_time_wait) {
                break;
            }
            self.recycle_wait();
        }
        // Memory for this one, from the one that has waited longest.
        if self.cx.pool.budget.is_full() {
            self.recycle_wait();
        }
    }

    /// A segment for a flow in TIME-WAIT.
    pub(super) fn on_waiting_segment(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        let arrival = &found.arrival;
        // A copy: what follows changes the ring that it lies in.
        let Some(wait) = self.tcp.records.waits.get(index).copied() else {
            return Verdict::Drop(DropReason::TimeWait);
        };
        let header = &arrival.segment.header;
        if header.flags.contains(TcpFlags::RST) {
            return self.on_reset_in_time_wait(index, &wait, header.seq);
        }
        if self.asks_to_open(header.flags) {
            return self.on_syn_in_time_wait(index, &wait, found);
        }
        match wait.judge_segment(&arrival.segment, &self.cx.tunables) {
            SegmentVerdict::AckAndRestart => {
                // Before the restart, which gives the record another number.
                let marking = self.marking_of(Some(Record::new(Kind::TimeWait, index)));
                self.restart_wait(index, found);
                let ack = self.wait_ack(&wait);
                self.net.reply_from(
                    &mut self.cx,
                    arrival.key.local_index,
                    Pending::Reply(arrival.key, ack, marking),
                );
                Verdict::Accepted
            }
            SegmentVerdict::Drop(DropReason::TimeWait) => {
                if let Some(wait) = self.tcp.records.waits.get_mut(index) {
                    wait.on_acceptable(header.seq, header.options.timestamps);
                }
                Verdict::Drop(DropReason::TimeWait)
            }
            SegmentVerdict::Ack(reason) => {
                let interval = self.cx.tunables.challenge_interval;
                let now = self.cx.tick;
                let wait = self.tcp.records.waits.get_mut(index);
                let answer = wait.is_some_and(|wait| wait.on_reply(now, interval)).into();
                self.answer_from_wait(index, answer, reason)
            }
            SegmentVerdict::Drop(reason) => Verdict::Drop(reason),
        }
    }

    fn on_reset_in_time_wait(&mut self, index: u32, wait: &TimeWait, seq: SeqNum) -> Verdict {
        match wait.judge_rst(seq, self.cx.tick, self.cx.tunables.tw_rst) {
            RstVerdict::End => {
                self.cx.counters.time_wait_killed += 1;
                self.end_wait(index);
                Verdict::Accepted
            }
            RstVerdict::Ignore => Verdict::Drop(DropReason::TimeWaitReset),
        }
    }

    /// A SYN: a new connection of the same ends, or an old duplicate (RFC 6191, RFC 1122
    /// 4.2.2.13).
    fn on_syn_in_time_wait(
        &mut self,
        index: u32,
        wait: &TimeWait,
        found: &FoundSegment<'_>,
    ) -> Verdict {
        let arrival = &found.arrival;
        let header = &arrival.segment.header;
        let stamps = header.options.timestamps;
        let by = match wait.judge_syn(header.seq, stamps, self.cx.tunables.tw_syn) {
            SynVerdict::Reuse(by) => by,
            SynVerdict::Refuse(reason) => {
                self.count_refusal(reason);
                return self.refuse_syn_in_time_wait(index, wait, arrival);
            }
        };
        let Some(listener) = self.listener_for(&arrival.key) else {
            // New, but for nobody: not a connection that could be accepted. RFC 9293 3.10.7.4, SYN in
            // TIME-WAIT: "For all other cases", the challenge ACK of RFC 5961.
            self.cx.counters.time_wait_without_listener += 1;
            return self.refuse_syn_in_time_wait(index, wait, arrival);
        };
        let opening = ReusedFlow { iss_floor: Some(wait.iss_floor()), replaces: Some((index, by)) };
        let verdict = self.on_syn(listener, found, opening);
        if verdict == Verdict::Accepted {
            self.cx.counters.time_wait_recycled += 1;
            match by {
                ReuseBy::Timestamp => self.cx.counters.time_wait_reused_by_timestamp += 1,
                ReuseBy::Sequence => self.cx.counters.time_wait_reused_by_sequence += 1,
            }
        }
        verdict
    }

    fn count_refusal(&mut self, reason: RefusalReason) {
        let counters = &mut self.cx.counters;
        let count = match reason {
            RefusalReason::OlderTimestamp => &mut counters.time_wait_older_timestamp,
            RefusalReason::OldSequence => &mut counters.time_wait_old_sequence,
            RefusalReason::UndefinedOrder => &mut counters.time_wait_undefined_order,
            RefusalReason::Policy => &mut counters.time_wait_refused_by_policy,
        };
        *count += 1;
    }

    /// A SYN that looks old.
    fn refuse_syn_in_time_wait(
        &mut self,
        index: u32,
        wait: &TimeWait,
        arrival: &Arrival<'_>,
    ) -> Verdict {
        match wait.judge_answer(arrival.segment.header.seq, self.cx.tunables.tw_answer) {
            SynAnswer::ChallengeAck => {
                let (interval, now) = (self.cx.tunables.challenge_interval, self.cx.tick);
                let wait = self.tcp.records.waits.get_mut(index);
                let answer = wait.is_some_and(|wait| wait.on_challenge(now, interval)).into();
                self.answer_from_wait(index, answer, DropReason::TimeWaitSyn)
            }
            SynAnswer::Reset => {
                Verdict::Reply(Reply::reset_for(&arrival.segment), DropReason::TimeWaitSyn)
            }
            SynAnswer::Silence => Verdict::Drop(DropReason::TimeWaitSyn),
        }
    }

    /// Acknowledges on behalf of a record, if it did not do so just now.
    fn answer_from_wait(
        &mut self,
        index: u32,
        answer: AckAllowance,
        reason: DropReason,
    ) -> Verdict {
        match (answer, self.tcp.records.waits.get(index)) {
            (AckAllowance::Now, Some(wait)) => {
                let reply = self.wait_ack(wait);
                self.cx.counters.challenge_acks += 1;
                Verdict::Reply(reply, reason)
            }
            _ => {
                self.cx.counters.time_wait_acks_skipped += 1;
                Verdict::Drop(reason)
            }
        }
    }

    fn wait_ack(&self, wait: &TimeWait) -> Reply {
        let ended = wait.ended();
        let local = self.net.ip.addresses.get(ended.local_index);
        let offset = local.map(|local| self.tcp.identity.timestamp_offset(local, &ended.remote));
        wait.ack_reply(offset.map(|offset| Identity::tsval(self.cx.tick, offset)))
    }

    /// The peer repeated its FIN: 2 MSL begin again.
    fn restart_wait(&mut self, index: u32, found: &FoundSegment<'_>) {
        let tsval = found.arrival.segment.header.options.timestamps.map(|stamps| stamps.val);
        let moved = self.tcp.records.waits.restart(index, self.cx.tick, tsval);
        let Some(moved) = moved else { return };
        if let Some(wait) = self.tcp.records.waits.get(moved).copied() {
            self.tcp.active.on_wait_anew(&self.net.ip.addresses, &wait);
        }
        let (old, new) = (Record::new(Kind::TimeWait, index), Record::new(Kind::TimeWait, moved));
        self.tcp.records.flows.replace(found.hash, old, new);
    }

    /// A record goes before its time.
    pub(super) fn end_wait(&mut self, index: u32) -> Option<TimeWait> {
        let wait = self.tcp.records.remove_wait(index)?;
        self.tcp.active.on_wait_gone(&mut self.net.ip.addresses, &wait);
        Some(wait)
    }

    /// A record is gone: neither the flow table nor its port should know of it.
    pub(super) fn forget_wait(&mut self, index: u32, wait: &TimeWait) {
        self.tcp.active.on_wait_gone(&mut self.net.ip.addresses, wait);
        self.tcp.records.unlink_wait(index, wait);
    }

    /// At the bound the oldest record goes early.
    fn recycle_wait(&mut self) {
        if let Some((index, wait)) = self.tcp.records.waits.recycle_oldest() {
            self.cx.counters.time_wait_overflow += 1;
            self.forget_wait(index, &wait);
        }
    }

    /// Records that are too many go, and those that expired; each takes one of what is `left`.
    pub(super) fn advance_waits(&mut self, left: &mut usize) {
        if self.tcp.records.waits.is_empty() {
            return;
        }
        while *left > 0 && self.tcp.records.has_surplus_waits(self.cx.tunables.max_time_wait) {
            cold_path();
            self.recycle_wait();
            *left -= 1;
        }
        while *left > 0
            && let Some((index, wait)) =
                self.tcp.records.waits.pop_expired(self.cx.tick, &self.tcp.records.lifetimes)
        {
            self.forget_wait(index, &wait);
            *left -= 1;
        }
    }

    /// A half-open entry is gone without a connection.
    pub(super) fn forget_half_open(&mut self, index: u32, entry: &SynEntry) {
        self.forget_half_open_for(index, entry, Withdrawal::Reset);
    }

    /// The same, and why.
    pub(super) fn forget_half_open_for(&mut self, index: u32, entry: &SynEntry, why: Withdrawal) {
        let returned = self.tcp.records.unlink_half_open(index, entry);
        self.cx.counters.time_wait_returned += u64::from(returned);
        if entry.is_by_verdict() {
            self.on_withdrawn(index, entry, why);
        }
    }

    /// A record goes that the flow table no longer leads to.
    pub(super) fn drop_displaced(&mut self, index: u32) {
        if let Some(wait) = self.tcp.records.waits.remove(index) {
            self.tcp.active.on_wait_gone(&mut self.net.ip.addresses, &wait);
        }
    }
}

/// Whether the limit on a record's acknowledgments admits one now.
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
