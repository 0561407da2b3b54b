//! Judgement of a segment that hits a half-open entry: RFC 9293 3.10.7.4 for SYN-RECEIVED.

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::{TcpFlags, Timestamps};
use whimbrel_wire::{SeqNum, WindowSize};

use super::{SynEntry, is_older};
use crate::tunables::{MissingTimestamps, RstInWindow};
use crate::{DropReason, Reply, RxSegment, Tunables};

/// The reaction to a segment that hit an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum SynStep {
    /// It acknowledges our SYN: remove the entry, build the connection, give it the segment.
    Complete,
    /// The peer's SYN again: [`SynEntry::on_repeated_syn`], then [`SynEntry::syn_ack`]. The
    /// schedule of retransmissions goes on undisturbed.
    Repeat,
    /// The peer reset it: remove the entry; the listener knows nothing of it.
    Reset,
    /// Refused: acknowledge what we have ([`SynEntry::challenge_reply`]), if
    /// [`SynEntry::may_challenge`].
    Challenge(DropReason),
    /// Refused, and answered so; the entry stays.
    Refuse(Reply, DropReason),
    /// Refused in silence; the entry stays.
    Drop(DropReason),
}

impl SynEntry {
    /// Judges a segment with the entry's 4-tuple, by these `rules`; `window` is the
    /// receive window that was announced. RFC 9293 3.10.7.4 for SYN-RECEIVED, with RFC 5961 and
    /// RFC 7323 on top.
    ///
    /// Deviation: a SYN elsewhere in the window is challenged, where RFC 9293 3.10.7.4 would
    /// return to LISTEN: a stranger who guesses it would end the handshake. A peer that really
    /// began anew answers the challenge by a reset at RCV.NXT.
    pub fn judge(&self, seg: &RxSegment<'_>, window: WindowSize, rules: &Tunables) -> SynStep {
        let flags = seg.header.flags;
        if self.is_repeated_syn(seg) {
            cold_path();
            return SynStep::Repeat;
        }
        if flags.is_rst() {
            cold_path();
            return self.judge_reset(seg.header.seq, window, rules.rst_in_window);
        }
        if flags.is_syn() {
            cold_path();
            // RFC 5961 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST
            // send an ACK (also referred to as challenge ACK) to the remote peer"
            return SynStep::Challenge(DropReason::SynChallenged);
        }
        if let Some(refusal) = self.judge_timestamps(seg.header.options.timestamps, rules) {
            cold_path();
            return refusal;
        }
        if !self.is_acceptable(seg, window) {
            cold_path();
            // RFC 9293 3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment
            // should be sent in reply (unless the RST bit is set, if so drop the segment and
            // return)"
            let old = seg.header.seq.before(self.rcv_nxt());
            return SynStep::Challenge(if old {
                DropReason::OldData
            } else {
                DropReason::OverWindow
            });
        }
        self.judge_ack(seg)
    }

    fn judge_reset(&self, seq: SeqNum, window: WindowSize, policy: RstInWindow) -> SynStep {
        let inside = seq.in_window(self.rcv_nxt(), window.get());
        if seq == self.rcv_nxt() || inside && policy == RstInWindow::Any {
            // RFC 9293 3.10.7.4: "If this connection was initiated with a passive OPEN (i.e., came
            // from the LISTEN state), then return this connection to LISTEN state and return. The
            // user need not be informed."
            SynStep::Reset
        } else if inside {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number does not exactly match
            // the next expected sequence value, yet is within the current receive window
            // (RCV.NXT < SEG.SEQ < RCV.NXT+RCV.WND), TCP MUST send an acknowledgment (challenge
            // ACK)"
            SynStep::Challenge(DropReason::ResetChallenged)
        } else {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number is outside the current
            // receive window, silently drop the segment."
            SynStep::Drop(DropReason::ResetOutsideWindow)
        }
    }

    /// PAWS, if timestamps were negotiated; the refusal, if there is one.
    fn judge_timestamps(
        &self,
        timestamps: Option<Timestamps>,
        rules: &Tunables,
    ) -> Option<SynStep> {
        if !self.has_timestamps() {
            return None;
        }
        match timestamps {
            None if rules.missing_timestamps == MissingTimestamps::Take => None,
            // RFC 7323 3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD
            // silently drop the segment."
            None => Some(SynStep::Drop(DropReason::TimestampMissing)),
            // RFC 7323 5.3 R1: "then treat the arriving segment as not acceptable": it is
            // acknowledged and dropped.
            Some(timestamps) if is_older(timestamps.val, self.ts_recent) => {
                Some(SynStep::Challenge(DropReason::Paws))
            }
            Some(_) => None,
        }
    }

    fn judge_ack(&self, seg: &RxSegment<'_>) -> SynStep {
        if !seg.header.flags.is_ack() {
            cold_path();
            // RFC 9293 3.10.7.4: "if the ACK bit is off, drop the segment and return"
            SynStep::Drop(DropReason::NoAck)
        } else if seg.header.ack == self.snd_nxt() {
            // RFC 9293 3.10.7.4: "If SND.UNA < SEG.ACK =< SND.NXT, then enter ESTABLISHED state"
            SynStep::Complete
        } else {
            cold_path();
            // RFC 9293 3.10.7.4: "If the segment acknowledgment is not acceptable, form a reset
            // segment <SEQ=SEG.ACK><CTL=RST> and send it."
            SynStep::Refuse(Reply::reset_for(seg), DropReason::UnacceptableAck)
        }
    }

    pub(super) fn is_repeated_syn(&self, seg: &RxSegment<'_>) -> bool {
        let others = TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN;
        let flags = seg.header.flags;
        flags.is_syn() && !flags.intersects(others) && seg.header.seq == self.irs
    }

    /// The test of RFC 9293 3.10.7.4 ("There are four cases for the acceptability test"), but for a
    /// window of zero, which is taken as one byte: the third segment's ACK is worth having even
    /// when its text has no room.
    fn is_acceptable(&self, seg: &RxSegment<'_>, window: WindowSize) -> bool {
        let (first, len, window) = (seg.header.seq, seg.len(), window.get().max(1));
        first.in_window(self.rcv_nxt(), window)
            || (len > 0 && (first + len - 1).in_window(self.rcv_nxt(), window))
    }
}
