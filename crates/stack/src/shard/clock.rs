//! Time: what is due is done, a budget at a time.

use whimbrel_base::Instant;
use whimbrel_tcp::conn::TimerFinding;

use super::Shard;
use crate::ip::FlowKey;
use crate::protocol::Protocol;

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
        while let Some(index) =
            self.tcp.work.timers.pop_due(&mut self.tcp.records.connections, self.cx.now, &mut left)
        {
            self.on_timer(index);
        }
        if self.tcp.work.pacing.is_due(self.cx.now) {
            self.tcp.work.advance_pacing(&mut self.tcp.records.connections, self.cx.now, &mut left);
        }
        self.packets.advance(&mut self.cx, &mut self.net, &mut left);
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

    #[inline(never)]
    fn on_timer(&mut self, index: u32) {
        self.refresh_path_mtu(index);
        if let Some((connection, cx)) = self.connection(index) {
            let finding = connection.on_deadline(cx);
            let key = FlowKey::of(connection);
            self.act_on(finding, &key);
        }
        self.after_change(index);
    }

    /// Passes on what a connection's deadlines tell of its path and its peer.
    fn act_on(&mut self, finding: TimerFinding, key: &FlowKey) {
        if finding.path_doubted {
            self.cx.counters.paths_doubted += 1;
            self.net.suspect_path(&key.remote, self.cx.now);
        }
        // What a router said holds for others to the same host, too.
        if let Some(mtu) = finding.path_lowered {
            self.net.note_path_mtu(self.cx.now, key.remote, mtu);
        }
        if let Some(found) = finding.path_found {
            self.net.note_path_finding(self.cx.now, key.remote, found);
        }
        if finding.syn_repeated {
            let addresses = &self.net.ip.addresses;
            self.tcp.active.on_syn_unanswered(&mut self.cx, addresses, key);
        }
    }

    /// When [`Shard::advance`] must be called at the latest, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([
            self.tcp.next_deadline(&self.cx),
            self.packets.next_deadline(&self.cx),
            self.net.ip.reassembly.next_deadline(),
            self.net.next_link_deadline(),
            self.memory.chunks_deadline(&self.cx),
            self.net.own_packets_deadline(self.cx.now),
        ])
    }
}
