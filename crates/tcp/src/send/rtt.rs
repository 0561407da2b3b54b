//! The retransmission timer's clock: RFC 6298, with Karn's algorithm.

use core::time::Duration;

use whimbrel_base::{Instant, Micros};

use crate::Tunables;

/// Smoothed round-trip time, its variation, and the time-out that follows from them.
#[derive(Clone, Copy, Default, Debug)]
pub struct RttEstimator {
    /// SRTT, microseconds; 0 before the first measurement.
    srtt: u32,
    /// RTTVAR, microseconds. Before the first measurement: when what is being timed was sent, microseconds modulo
    /// 2^32.
    rttvar: u32,
    /// The number of time-outs doubled it since the last acknowledgment of new data.
    backoff: u8,
    /// A loss probe left, and nothing was measured since.
    is_probed: bool,
    /// A SYN or a FIN is being timed, which no flight notes, because nothing was measured yet.
    timing: bool,
    /// A SYN or SYN-ACK was lost, and RTO is three seconds at least until a round trip is measured.
    lost_syn: bool,
}

impl RttEstimator {
    /// A round trip was measured.
    pub fn on_sample(&mut self, rtt: Micros) {
        let rtt = rtt.get().max(1);
        if self.srtt == 0 {
            // RFC 6298 2.2: "SRTT <- R, RTTVAR <- R/2"
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            // RFC 6298 2.3: "RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|,
            // SRTT <- (1 - alpha) * SRTT + alpha * R'"
            let deviation = self.srtt.abs_diff(rtt);
            self.rttvar = self.rttvar - self.rttvar / 4 + deviation / 4;
            self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(1);
        }
        (self.backoff, self.is_probed, self.timing) = (0, false, false);
    }

    /// RTO without back-off, microseconds, at most `max_rto`.
    #[inline]
    fn base_micros(&self, tunables: &Tunables) -> u64 {
        let most = tunables.max_rto.get();
        if self.srtt == 0 {
            let least = if self.lost_syn { RTO_AFTER_LOST_SYN } else { 0 };
            return tunables.initial_rto.get().max(least).min(most).into();
        }
        // RFC 6298 2.3: "RTO <- SRTT + max (G, K*RTTVAR)", with the least RTO in G's place, as in
        // Linux: on a path without variation a floor under the sum alone would leave nothing for
        // an acknowledgment that the peer delays.
        let margin = (4 * u64::from(self.rttvar)).max(tunables.min_rto.get().into());
        (u64::from(self.srtt) + margin).min(most.into())
    }

    /// A loss probe left.
    pub const fn on_probe(&mut self) {
        self.is_probed = true;
    }

    /// True if a loss probe left since the last measurement: no other may. RFC 8985 7.3: "the sender has
    /// obtained an RTT measurement since the last loss probe transmission".
    #[inline]
    pub const fn is_probed(&self) -> bool {
        self.is_probed
    }

    /// RTO, doubled for each time-out since the last measurement, at most `max_rto`.
    pub fn rto(&self, tunables: &Tunables) -> Duration {
        Duration::from_micros(self.rto_micros(tunables))
    }

    /// When what is sent `now` is sent again.
    #[inline]
    pub fn due(&self, now: Instant, tunables: &Tunables) -> Instant {
        now.after_micros(self.rto_micros(tunables))
    }

    /// RTO, back-off included, microseconds.
    #[inline]
    pub fn rto_micros(&self, tunables: &Tunables) -> u64 {
        let base = self.base_micros(tunables);
        if self.backoff == 0 { base } else { self.backed_off(base, tunables) }
    }

    #[cold]
    fn backed_off(&self, base: u64, tunables: &Tunables) -> u64 {
        (base << self.backoff.min(31)).min(tunables.max_rto.get().into())
    }

    /// RTO as it follows from measurements, at most `max_rto`.
    pub fn first_rto(&self, tunables: &Tunables) -> Duration {
        Duration::from_micros(self.base_micros(tunables))
    }

    /// The number of time-outs doubled RTO since the last acknowledgment of new data.
    pub const fn back_offs(&self) -> u8 {
        self.backoff
    }

    /// The timer ran out.
    pub fn back_off(&mut self) {
        // RFC 6298 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")."
        self.backoff = self.backoff.saturating_add(1);
        // Karn: what is sent again is not measured.
        self.timing = false;
    }

    /// The SYN or SYN-ACK was lost, and data is about to flow.
    pub fn restart_after_lost_syn(&mut self) {
        // RFC 6298 5.7: "If the timer expires awaiting the ACK of a SYN segment and the TCP
        // implementation is using an RTO less than 3 seconds, the RTO MUST be re-initialized to
        // 3 seconds when data transmission begins". A timestamp's echo has measured the path all
        // the same: then RTO is what it says.
        if self.srtt == 0 {
            (self.lost_syn, self.backoff) = (true, 0);
        }
    }

    /// A closed window opened: the peer was there all the time, and what backed off were probes.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Starts to time a SYN, or a FIN with nothing before it in flight, if nothing was measured yet: what acknowledges
    /// something new acknowledges it.
    pub fn start_timing(&mut self, now: Instant) {
        if self.srtt == 0 && !self.timing {
            (self.timing, self.rttvar) = (true, now.as_micros() as u32);
        }
    }

    /// Stops timing: something was retransmitted, and its acknowledgment would be ambiguous.
    pub fn stop_timing(&mut self) {
        self.timing = false;
    }

    /// The round trip that the acknowledgment of something new ends, if one was timed.
    pub fn finish_timing(&mut self, now: Instant) -> Option<Micros> {
        let timed = core::mem::take(&mut self.timing);
        timed.then(|| Micros::new((now.as_micros() as u32).wrapping_sub(self.rttvar)))
    }

    /// SRTT, if there was a measurement.
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_micros(u64::from(self.srtt)))
    }

    /// SRTT in microseconds, if there was a measurement.
    #[inline]
    pub fn srtt_micros(&self) -> Option<u32> {
        (self.srtt != 0).then_some(self.srtt)
    }

    /// RTTVAR (RFC 6298 2), zero before the first measurement.
    pub fn rttvar(&self) -> Duration {
        let micros = if self.srtt == 0 { 0 } else { self.rttvar };
        Duration::from_micros(u64::from(micros))
    }
}

const RTO_AFTER_LOST_SYN: u32 = 3_000_000;

#[cfg(test)]
mod tests;
