//! A policer: a bucket of tokens that fills at a rate, and drops frames without tokens.

use whimbrel_base::Instant;

use crate::config::Policing;

/// The bucket of one direction of a link, full at first.
#[derive(Debug)]
pub(crate) struct Policer {
    policing: Policing,
    /// Tokens in billionths of a bit, so that each nanosecond adds a whole number of them.
    tokens: u128,
    filled_at: Instant,
}

impl Policer {
    pub(crate) fn new(policing: Policing) -> Self {
        Self { policing, tokens: tokens_of(policing.burst), filled_at: Instant::ZERO }
    }

    /// True if a frame of `bytes` passes, which takes its tokens.
    pub(crate) fn admits(&mut self, now: Instant, bytes: u64) -> bool {
        let earned = now.since(self.filled_at).as_nanos() * u128::from(self.policing.rate);
        self.tokens = (self.tokens + earned).min(tokens_of(self.policing.burst));
        self.filled_at = now;
        let left = self.tokens.checked_sub(tokens_of(bytes));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

fn tokens_of(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * 1_000_000_000
}
