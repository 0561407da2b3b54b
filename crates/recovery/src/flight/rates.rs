//! Samples of the delivery rate (draft-ietf-ccwg-bbr, "Delivery Rate Samples"): with each transmission stands how
//! much had been delivered when it left, so that its acknowledgment tells what arrived in between, and in which
//! time.

use alloc::collections::VecDeque;
use core::mem::take;

use whimbrel_base::{Instant, Micros};

use super::Transmission;
use crate::cc::{LostText, Rate};

/// The delivery when a transmission left. Numbers are modulo 2^32, times microseconds modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    /// P.delivered: bytes that had arrived.
    delivered: u32,
    /// P.lost: bytes that had been judged lost.
    lost: u32,
    /// P.delivered_time: when the last of them had arrived.
    delivered_at: u32,
    /// P.first_send_time: when the last of them to leave had left.
    first_at: u32,
    /// P.tx_in_flight, bytes, and [`Snapshot::APP_LIMITED`] if P.is_app_limited.
    in_flight: u32,
}

const _: () = assert!(size_of::<Snapshot>() == 20, "one for each transmission");

impl Snapshot {
    /// Of what is no transmission by itself: it gives no sample.
    pub(super) const NONE: Self =
        Self { delivered: 0, lost: 0, delivered_at: 0, first_at: 0, in_flight: u32::MAX };
    const APP_LIMITED: u32 = 1 << 31;

    const fn is_none(&self) -> bool {
        self.in_flight == u32::MAX
    }

    const fn is_app_limited(&self) -> bool {
        self.in_flight & Self::APP_LIMITED != 0
    }

    const fn in_flight(&self) -> u32 {
        self.in_flight & !Self::APP_LIMITED
    }
}

/// The delivery of a flight, and its losses.
#[derive(Debug)]
pub(super) struct Rates {
    /// One for each first transmission that is not acknowledged.
    pub(super) sent: VecDeque<Snapshot>,
    /// C.delivered: bytes that arrived.
    delivered: u64,
    /// C.lost: bytes that were judged lost.
    lost: u64,
    /// C.delivered_time: when the last of them arrived.
    delivered_at: Instant,
    /// C.first_send_time: when what arrived last left.
    first_at: Instant,
    /// C.app_limited: once more than this is delivered, the application limits the sender no longer.
    app_limited: Option<u64>,
    /// Of what the acknowledgment under way tells of, the transmission that was the last to leave.
    newest: Option<(Transmission, Snapshot)>,
    /// Bytes that are in flight again by a repair that is not sampled yet.
    pub(super) repaired: u32,
    /// Transmissions that were judged lost, until their reports are taken.
    losses: VecDeque<LostText>,
}

impl Rates {
    /// From now on; so many transmissions are out that give no sample.
    pub(super) fn new(transmissions: usize) -> Self {
        Self {
            sent: core::iter::repeat_n(Snapshot::NONE, transmissions).collect(),
            delivered: 0,
            lost: 0,
            delivered_at: Instant::ZERO,
            first_at: Instant::ZERO,
            app_limited: None,
            newest: None,
            repaired: 0,
            losses: VecDeque::new(),
        }
    }

    /// The snapshot of the first transmission at `place`.
    pub(super) fn of(&self, place: usize) -> Snapshot {
        self.sent.get(place).copied().unwrap_or(Snapshot::NONE)
    }

    /// Something leaves `at` this time: `before` bytes were in flight, and `after` are.
    pub(super) fn on_sent(&mut self, before: u32, after: u32, at: Instant) -> Snapshot {
        // "if (C.inflight == 0) C.first_send_time = C.delivered_time = P.send_time"
        if before == 0 {
            (self.first_at, self.delivered_at) = (at, at);
        }
        let app_limited = if self.app_limited.is_some() { Snapshot::APP_LIMITED } else { 0 };
        Snapshot {
            delivered: self.delivered as u32,
            lost: self.lost as u32,
            delivered_at: self.delivered_at.as_micros() as u32,
            first_at: self.first_at.as_micros() as u32,
            in_flight: after.min(Snapshot::APP_LIMITED - 2) | app_limited,
        }
    }

    /// `bytes` arrived, of these transmissions among others.
    pub(super) fn on_delivered(
        &mut self,
        bytes: u64,
        of: impl IntoIterator<Item = (Transmission, Snapshot)>,
    ) {
        self.delivered += bytes;
        for (transmission, snapshot) in of {
            // "Update info using the newest packet"
            if self.newest.is_none_or(|(newest, _)| newest < transmission) {
                self.newest = Some((transmission, snapshot));
            }
        }
    }

    /// So many bytes were counted before.
    pub(super) const fn discount(&mut self, bytes: u64) {
        self.delivered = self.delivered.saturating_sub(bytes);
    }

    /// `bytes` of a transmission were judged lost.
    pub(super) fn on_lost(&mut self, bytes: u64, of: Snapshot) {
        self.lost += bytes;
        if !of.is_none() {
            self.losses.push_back(LostText {
                bytes: bytes as u32,
                in_flight: of.in_flight(),
                lost: (self.lost as u32).wrapping_sub(of.lost),
                app_limited: of.is_app_limited(),
                sack: true,
            });
        }
    }

    /// The transmission that was judged lost next.
    pub(super) fn next_loss(&mut self) -> Option<LostText> {
        self.losses.pop_front()
    }

    /// The losses whose reports are not taken were none of the network's.
    pub(super) fn forget_losses(&mut self) {
        let bytes = take(&mut self.losses).iter().map(|lost| u64::from(lost.bytes)).sum::<u64>();
        self.lost -= bytes;
    }

    /// Nothing is in flight any more.
    pub(super) fn forget_sent(&mut self) {
        self.sent.clear();
        (self.newest, self.losses) = (None, VecDeque::new());
    }

    /// The application has no more to send than the `in_flight` bytes that are out.
    pub(super) fn on_app_limited(&mut self, in_flight: u32) {
        // "C.app_limited = max(C.delivered + C.inflight, 1)"
        self.app_limited = Some(self.delivered + u64::from(in_flight));
    }

    /// The sample of an acknowledgment that arrived `now`, if something arrived that gives one.
    pub(super) fn take(
        &mut self,
        now: Instant,
        min_rtt: Option<Micros>,
        sack: bool,
    ) -> Option<Rate> {
        // "Clear app-limited field if bubble is ACKed and gone."
        self.app_limited = self.app_limited.filter(|until| self.delivered <= *until);
        let ((at, _), snapshot) = self.newest.take()?;
        (self.delivered_at, self.first_at) = (now, at);
        if snapshot.is_none() {
            return None;
        }
        // "RS.send_elapsed = P.send_time - P.first_send_time", "RS.ack_elapsed = C.delivered_time -
        // P.delivered_time"
        let send = (at.as_micros() as u32).wrapping_sub(snapshot.first_at);
        let ack = (now.as_micros() as u32).wrapping_sub(snapshot.delivered_at);
        // "Use the longer of the send_elapsed and ack_elapsed", "if (RS.interval < C.min_rtt) return /* no
        // reliable rate sample */"
        let interval = send.max(ack);
        let is_reliable = interval > 0 && min_rtt.is_none_or(|least| interval >= least.get());
        Some(Rate {
            delivered: u64::from((self.delivered as u32).wrapping_sub(snapshot.delivered)),
            interval: is_reliable.then(|| Micros::new(interval)),
            app_limited: snapshot.is_app_limited(),
            total: self.delivered,
            in_flight: snapshot.in_flight(),
            lost: (self.lost as u32).wrapping_sub(snapshot.lost),
            sack,
        })
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        let losses = self.losses.capacity() * size_of::<LostText>();
        size_of::<Self>() + self.sent.capacity() * size_of::<Snapshot>() + losses
    }
}
