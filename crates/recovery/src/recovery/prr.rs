//! Proportional Rate Reduction (RFC 6937, obsoleted by RFC 9937): how the window shrinks in fast recovery.

/// The state of PRR in one recovery, bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Prr {
    /// prr_delivered: what arrived since recovery began.
    delivered: u64,
    /// prr_out: what was sent since then.
    out: u64,
    /// RecoverFS: what was under way when it began.
    recover_fs: u64,
    /// SMSS: bytes of text in a full segment.
    mss: u32,
}

impl Prr {
    /// Fast recovery begins while `flight` is under way, what arrived by the same acknowledgment included;
    /// full segments have `mss`.
    pub(super) fn new(flight: u64, mss: u32) -> Self {
        Self { delivered: 0, out: 0, recover_fs: flight.max(1), mss }
    }

    /// `bytes` leave, for the first time or again.
    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Returns cwnd, at least one segment, after an acknowledgment that delivered so much. It is safe if
    /// it acknowledged data and reports no further loss.
    pub(super) fn on_ack(
        &mut self,
        delivered: u64,
        pipe: u32,
        ssthresh: u32,
        is_safe: bool,
    ) -> u32 {
        self.delivered += delivered;
        let allowed = if pipe > ssthresh {
            // RFC 6937 3: "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out"
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let all = share.div_ceil(u128::from(self.recover_fs));
            u64::try_from(all).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // RFC 9937 takes the slow start reduction bound if the acknowledgment is safe, and the
            // conservative one otherwise. RFC 6937 3: "limit = MAX(prr_delivered - prr_out,
            // DeliveredData) + MSS", or without that segment.
            let limit = self.delivered.saturating_sub(self.out).max(delivered);
            let limit = if is_safe { limit + u64::from(self.mss) } else { limit };
            // "Attempt to catch up, as permitted by limit"
            limit.min(u64::from(ssthresh - pipe))
        };
        // RFC 9937: the first repair leaves at once.
        let allowed = if self.out == 0 { allowed.max(u64::from(self.mss)) } else { allowed };
        u32::try_from(u64::from(pipe) + allowed).unwrap_or(u32::MAX).max(self.mss)
    }
}
