//! TIME-WAIT: how records begin, what segments do to them, how they end.

use whimbrel_tcp::table::{
    Identity, Kind, Record, RstVerdict, SegmentVerdict, SynEntry, SynVerdict, TimeWait,
};
use whimbrel_tcp::{DropReason, Instant, Reply, Verdict};
use whimbrel_wire::tcp::TcpFlags;

use super::Shard;
use super::opening::Opening;
use crate::ip::{Arrival, FlowKey};

/// TIME-WAIT.
impl Shard {
    /// A record takes the connection's place, and acknowledges the peer's FIN.
    pub(super) fn start_waiting(&mut self, index: u32, key: &FlowKey) -> Option<u32> {
        let remains = self.connections.0.get(index)?.connection.remains();
        if self.waits.len() >= self.tunables.max_time_wait as usize {
            self.recycle_oldest_wait();
        }
        let wait = TimeWait::new(key.tuple(), remains, self.now.tick());
        let ack = self.wait_ack(&wait);
        let class = self.host.addresses.path_class(&key.remote);
        let waiting = self.waits.enter(class, wait);
        self.reply(*key, ack);
        Some(waiting)
    }

    /// A segment for a flow in TIME-WAIT.
    pub(super) fn on_waiting_segment(&mut self, index: u32, arrival: &Arrival<'_>) -> Verdict {
        let Some(wait) = self.waits.get(index).copied() else {
            return Verdict::Drop(DropReason::TimeWait);
        };
        let header = &arrival.segment.header;
        if header.flags.contains(TcpFlags::RST) {
            return match wait.judge_rst(header.seq, self.now) {
                RstVerdict::End => {
                    self.counters.time_wait_killed += 1;
                    self.end_wait(index);
                    Verdict::Accepted
                }
                RstVerdict::Ignore => Verdict::Drop(DropReason::TimeWaitReset),
            };
        }
        if header.flags.contains(TcpFlags::SYN) && !header.flags.contains(TcpFlags::ACK) {
            return self.on_syn_in_time_wait(index, &wait, arrival);
        }
        match wait.judge_segment(&arrival.segment) {
            SegmentVerdict::AcknowledgeAndRestart => {
                let ack = self.wait_ack(&wait);
                self.restart_wait(index, arrival);
                self.reply(arrival.key, ack);
                Verdict::Accepted
            }
            SegmentVerdict::Acknowledge => self.answer_from_wait(index, DropReason::TimeWait),
            SegmentVerdict::Drop(reason) => Verdict::Drop(reason),
        }
    }

    /// A SYN: a new connection of the same ends, or an old duplicate (RFC 6191, RFC 1122
    /// 4.2.2.13).
    fn on_syn_in_time_wait(
        &mut self,
        index: u32,
        wait: &TimeWait,
        arrival: &Arrival<'_>,
    ) -> Verdict {
        let header = &arrival.segment.header;
        let by = match wait.judge_syn(header.seq, header.options.timestamps) {
            SynVerdict::Reuse(by) => by,
            SynVerdict::Challenge(_) => {
                return self.answer_from_wait(index, DropReason::TimeWaitSyn);
            }
        };
        let Some(listener) = self.listener_for(&arrival.key) else {
            return Verdict::Reply(Reply::reset_for(&arrival.segment), DropReason::NoSocket);
        };
        let iss_floor = Some(wait.iss_floor());
        // Accepted by its number alone it may still be an old duplicate: the record comes back if
        // the handshake fails (RFC 1122 4.2.2.13 b). A newer timestamp proves itself.
        let opening = Opening { iss_floor, keeps: Some(index) };
        let verdict = self.on_syn(listener, arrival, opening);
        if verdict == Verdict::Accepted {
            self.counters.time_wait_recycled += 1;
            let _ = by;
        }
        verdict
    }

    /// Acknowledges on behalf of a record, if it did not do so just now.
    fn answer_from_wait(&mut self, index: u32, reason: DropReason) -> Verdict {
        let interval = self.tunables.challenge_interval;
        let may = self.waits.get_mut(index).is_some_and(|wait| wait.may_challenge(self.now, interval));
        match self.waits.get(index).filter(|_| may).copied() {
            Some(wait) => {
                self.counters.challenge_acks += 1;
                Verdict::Reply(self.wait_ack(&wait), reason)
            }
            None => {
                self.counters.challenge_acks_skipped += 1;
                Verdict::Drop(reason)
            }
        }
    }

    fn wait_ack(&self, wait: &TimeWait) -> Reply {
        let offset = self.host.addresses.get(wait.local_index).map_or(0, |local| {
            self.identity.timestamp_offset(local, &wait.remote)
        });
        wait.ack_reply(Identity::tsval(self.now, offset))
    }

    /// The peer repeated its FIN: 2 MSL begin again.
    fn restart_wait(&mut self, index: u32, arrival: &Arrival<'_>) {
        let Some(moved) = self.waits.restart(index, self.now.tick()) else { return };
        let hash = self.hash(&arrival.key);
        let (old, new) = (Record::new(Kind::TimeWait, index), Record::new(Kind::TimeWait, moved));
        self.flows.replace(hash, old, new);
    }

    /// Removes a record and its place in the table.
    fn end_wait(&mut self, index: u32) {
        if let Some(wait) = self.waits.remove(index) {
            self.forget_wait(index, &wait);
        }
    }

    fn forget_wait(&mut self, index: u32, wait: &TimeWait) {
        let hash = self.hash(&FlowKey::of_waiting(wait));
        self.flows.remove(hash, Record::new(Kind::TimeWait, index));
    }

    /// At the bound the oldest record goes early.
    fn recycle_oldest_wait(&mut self) {
        if let Some((index, wait)) = self.waits.recycle_oldest() {
            self.counters.time_wait_overflow += 1;
            self.forget_wait(index, &wait);
        }
    }

    /// The next expired record goes; returns whether there was one.
    pub(super) fn advance_waits(&mut self) -> bool {
        let msl = self.tunables.msl();
        match self.waits.pop_expired(self.now.tick(), msl) {
            Some((index, wait)) => {
                self.forget_wait(index, &wait);
                true
            }
            None => false,
        }
    }

    /// When the next record expires.
    pub(super) fn next_wait_expiry(&self) -> Option<Instant> {
        self.waits.next_expiry(self.now, self.tunables.msl())
    }

    /// A half-open entry is gone without a connection. The TIME-WAIT record that it would have
    /// replaced is found again; if it expired meanwhile, nothing is.
    pub(super) fn forget_half_open(&mut self, index: u32, entry: &SynEntry) {
        let hash = self.hash(&FlowKey::of_half_open(entry));
        let record = Record::new(Kind::SynEntry, index);
        match entry.time_wait().filter(|wait| self.is_kept_by(*wait, entry)) {
            Some(wait) => self.flows.replace(hash, record, Record::new(Kind::TimeWait, wait)),
            None => self.flows.remove(hash, record),
        };
    }

    /// A half-open entry became a connection: the TIME-WAIT record it kept is of no more use.
    pub(super) fn end_kept_wait(&mut self, entry: &SynEntry) {
        if let Some(wait) = entry.time_wait().filter(|wait| self.is_kept_by(*wait, entry)) {
            self.waits.remove(wait);
        }
    }

    /// Whether the record with this index is still the one that the entry displaced.
    fn is_kept_by(&self, wait: u32, entry: &SynEntry) -> bool {
        let key = FlowKey::of_half_open(entry);
        self.waits.get(wait).is_some_and(|wait| FlowKey::of_waiting(wait) == key)
    }
}
