//! The rate sample of an acknowledgment, as the draft names its parts.

use whimbrel_base::Micros;

use super::{Ack, Bandwidth, Bbr};
use crate::cc::Rate;

/// RS: what an acknowledgment tells of delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// RS.delivery_rate; zero if it cannot be told.
    pub(super) delivery_rate: Bandwidth,
    /// RS.delivered, bytes.
    pub(super) delivered: u32,
    /// RS.prior_delivered, modulo 2^32, of the transmission that was the last to leave of what arrived.
    pub(super) prior_delivered: Option<u32>,
    /// RS.tx_in_flight, bytes.
    pub(super) tx_in_flight: u32,
    /// RS.lost, bytes.
    pub(super) lost: u32,
    pub(super) is_app_limited: bool,
    /// RS.newly_acked, bytes.
    pub(super) newly_acked: u32,
    pub(super) rtt: Option<Micros>,
    /// C.inflight, bytes.
    pub(super) inflight: u32,
    /// C.SMSS, bytes.
    pub(super) smss: u32,
    /// In fast recovery.
    pub(super) in_fast_recovery: bool,
    /// C.has_selective_acks.
    pub(super) sack: bool,
}

impl Bbr {
    /// GenerateRateSample(), and C.delivered.
    pub(super) fn take_sample(&mut self, ack: &Ack) -> Sample {
        let mut sample = Sample {
            delivery_rate: Bandwidth::ZERO,
            delivered: 0,
            prior_delivered: None,
            tx_in_flight: 0,
            lost: 0,
            is_app_limited: false,
            newly_acked: ack.arrived,
            rtt: ack.rtt,
            inflight: ack.in_flight,
            smss: ack.mss,
            in_fast_recovery: ack.phase == crate::cc::Phase::FastRecovery,
            sack: true,
        };
        if let Some(rate) = ack.rate {
            self.fill_sample(&mut sample, &rate);
        }
        sample
    }

    fn fill_sample(&mut self, sample: &mut Sample, rate: &Rate) {
        self.delivered = rate.total as u32;
        let prior = rate.total.wrapping_sub(rate.delivered) as u32;
        if self.ignores_low_samples && !is_before(prior, self.app_limited_until) {
            self.ignores_low_samples = false;
        }
        let interval = rate.interval.filter(|_| rate.delivered > 0);
        sample.delivery_rate =
            interval.map_or(Bandwidth::ZERO, |interval| Bandwidth::of(rate.delivered, interval));
        sample.delivered = rate.delivered as u32;
        sample.prior_delivered = Some(prior);
        (sample.tx_in_flight, sample.lost) = (rate.in_flight, rate.lost);
        sample.sack = rate.sack;
        sample.is_app_limited = rate.app_limited || self.ignores_low_samples;
    }
}

/// True if less was delivered at `a` than at `b`, modulo 2^32.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
