//! pipeACK (RFC 7661 4.2): the volume that a path was seen to carry in a round trip, by what is acknowledged.

/// The measurement of a flow that has something in flight. A flow that has not sent for long has none.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PipeAck {
    /// SND.UNA when the round under way began, bytes modulo 2^32.
    una: u32,
    /// SND.NXT then, by whose acknowledgment the round ends.
    end: u32,
    /// The most bytes that were in flight in this round; 0 before the first.
    most: u32,
    /// The sample of the round before, bytes.
    before: u32,
}

impl PipeAck {
    /// Text left: `una` and `nxt` are SND.UNA and SND.NXT since, and so many bytes are in flight.
    pub(super) fn on_sent(&mut self, una: u32, nxt: u32, in_flight: u32) {
        if self.most == 0 || self.is_over(una) {
            // RFC 7661 4.2: "The value of the pipeACK variable MUST NOT exceed the maximum (highest value)
            // within the pipeACK Sampling Period", of at least three round trips: two of them count.
            let before = if self.most == 0 { 0 } else { self.sample(una) };
            *self = Self { una, end: nxt, most: in_flight, before };
        }
        self.most = self.most.max(in_flight);
    }

    /// It is undefined: nothing was sent for long, or a recovery ended.
    #[inline]
    pub(super) const fn forget(&mut self) {
        self.most = 0;
    }

    /// pipeACK while SND.UNA is `una`, bytes; `None`: it is undefined, as nothing was acknowledged yet.
    pub(super) fn get(&self, una: u32) -> Option<u32> {
        let known = self.most > 0;
        known.then(|| self.sample(una).max(self.before)).filter(|bytes| *bytes > 0)
    }

    /// RFC 7661 4.2: "caching the value of HighACK and, after one RTT, measuring the difference between the cached
    /// HighACK value and the current HighACK value." A round may last longer, but no round trip carries more than
    /// was in flight.
    fn sample(&self, una: u32) -> u32 {
        una.wrapping_sub(self.una).min(self.most)
    }

    fn is_over(&self, una: u32) -> bool {
        una.wrapping_sub(self.end).cast_signed() >= 0
    }
}

#[cfg(test)]
mod tests;
