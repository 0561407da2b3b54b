//! Answers to segments that are refused.

use whimbrel_wire::tcp::TcpFlags;

use crate::conn::Connection;
use crate::verdict::{Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// Answers a segment that was refused. Text or FIN that the peer may send again is answered each
    /// time, because it waits for that. All others only as often as challenges: two hosts that disagree
    /// would acknowledge each other for ever, and anybody could have us answer whom they name.
    pub(super) fn acknowledge_refused(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let syn = seg.header.flags.contains(TcpFlags::SYN);
        if seg.is_empty() || syn || !self.transfer.tcb.may_come_again(seg) {
            self.challenge(cx);
        } else {
            self.transfer.tcb.receiver.owe_ack();
        }
    }

    /// Sends a challenge acknowledgment, unless too many went out: several in quick succession, so
    /// that a peer that tries again is answered, and few in the long run. The count is this record's
    /// own (RFC 5961 7), because one shared by all lets a third party count what others provoke
    /// (CVE-2016-5696).
    pub(super) fn challenge(&mut self, cx: &mut Context) {
        let (interval, burst) = (cx.tunables.challenge_interval, cx.tunables.challenge_burst);
        let challenges = self.transfer.tcb.counts.stats_mut().challenges.get_or_insert(cx.tick);
        if !challenges.take_one(cx.tick, interval, burst) {
            cx.counters.challenge_acks_skipped += 1;
            return;
        }
        self.transfer.tcb.receiver.owe_ack();
        cx.counters.challenge_acks += 1;
    }

    /// The reset that refuses a segment, for the caller to send.
    pub(super) fn refuse(seg: &RxSegment<'_>, reason: DropReason) -> Step {
        Done(Verdict::Reply(Reply::reset_for(seg), reason))
    }
}
