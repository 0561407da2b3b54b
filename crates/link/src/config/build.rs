//! A configuration built from the default, one property a call.

use core::time::Duration;

use super::{BurstLoss, LinkConfig, Probability, QueueLimit, Reorder};

/// Each sets one field, without the checks of a text's values.
impl LinkConfig {
    /// Sets [`rate`](Self::rate): the rate in bits per second.
    #[must_use]
    pub fn with_rate(mut self, bits_per_second: u64) -> Self {
        self.rate = Some(bits_per_second);
        self
    }

    /// Sets [`delay`](Self::delay): the travel time of a frame.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets [`jitter`](Self::jitter): the most that is added to the delay.
    #[must_use]
    pub fn with_jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// Sets [`loss`](Self::loss): the probability that a frame is lost.
    #[must_use]
    pub fn with_loss(mut self, chance: Probability) -> Self {
        self.loss = chance;
        self
    }

    /// Sets [`burst_loss`](Self::burst_loss): losses that come together.
    #[must_use]
    pub fn with_burst_loss(mut self, burst_loss: BurstLoss) -> Self {
        self.burst_loss = Some(burst_loss);
        self
    }

    /// Sets [`reorder`](Self::reorder): frames overtaken by later ones.
    #[must_use]
    pub fn with_reorder(mut self, reorder: Reorder) -> Self {
        self.reorder = Some(reorder);
        self
    }

    /// Sets [`duplicate`](Self::duplicate): the probability that a frame arrives twice.
    #[must_use]
    pub fn with_duplicate(mut self, chance: Probability) -> Self {
        self.duplicate = chance;
        self
    }

    /// Sets [`corrupt`](Self::corrupt): the probability that one bit of a frame is flipped.
    #[must_use]
    pub fn with_corrupt(mut self, chance: Probability) -> Self {
        self.corrupt = chance;
        self
    }

    /// Sets [`ecn`](Self::ecn): the queue from which on frames are marked, in bytes.
    #[must_use]
    pub fn with_ecn(mut self, bytes: u64) -> Self {
        self.ecn = Some(bytes);
        self
    }

    /// Sets [`queue`](Self::queue): the limit of the queue.
    #[must_use]
    pub fn with_queue(mut self, limit: QueueLimit) -> Self {
        self.queue = limit;
        self
    }

    /// Sets [`mtu`](Self::mtu): the longest frame, in bytes.
    #[must_use]
    pub fn with_mtu(mut self, bytes: u16) -> Self {
        self.mtu = bytes;
        self
    }
}
