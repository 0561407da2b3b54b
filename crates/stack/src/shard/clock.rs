//! Time: what is due is done, a budget at a time.

use whimbrel_base::Instant;

use super::Shard;

impl Shard {
    /// Time passed: does up to `budget` of what is due. Returns whether more is due.
    ///
    /// Handshakes come first, neighbours and connections second, expiry of TIME-WAIT and of
    /// fragments last: 16,000 records that expire at once wait for a new connection, not the other
    /// way round.
    pub fn advance(&mut self, now: Instant, budget: usize) -> bool {
        self.set_now(now);
        if self.cx.tick != self.memory.checked_at {
            self.update_memory();
        }
        let mut left = budget;
        while left > 0 && self.tcp.advance_half_open(&mut self.cx, &mut self.net) {
            left -= 1;
        }
        if self.net.has_looped() {
            self.advance_looped(&mut left);
        }
        self.net.advance_link(self.cx.now, &mut left);
        if self.net.link.is_some() {
            self.report_unreachable();
        }
        self.advance_transports(&mut left);
        while left > 0 && self.net.pings.advance(self.cx.now) {
            left -= 1;
        }
        self.tcp.advance_waits(&mut self.cx, &mut self.net, &mut left);
        while left > 0 && self.net.advance_reassembly(&mut self.cx) {
            left -= 1;
        }
        self.net.ip.addresses.sweep();
        // Last: what this host has just sent itself may be in the first chunks that there are.
        self.memory.trim_chunks(&mut self.cx);
        left == 0 && self.is_more_due()
    }

    #[cold]
    fn is_more_due(&self) -> bool {
        self.next_deadline().is_some_and(|next| next <= self.cx.now)
    }

    /// When [`Shard::advance`] must be called at the latest, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([
            self.next_transport_deadline(),
            self.net.ip.reassembly.next_deadline(),
            self.net.next_link_deadline(),
            self.memory.chunks_deadline(&self.cx),
            self.net.own_packets_deadline(self.cx.now),
        ])
    }
}
