//! TCP as one of a host's transports.

use whimbrel_base::Instant;
use whimbrel_base::ports::PortRange;
use whimbrel_tcp::table::Lifetimes;
use whimbrel_tcp::{Context, Tunables};
use whimbrel_wire::Address;

use super::TcpHost;
use crate::protocol::Protocol;

impl Protocol for TcpHost {
    #[inline]
    fn has_output(&self) -> bool {
        !self.work.dirty.is_empty() || !self.segmentation.is_empty()
    }

    fn next_deadline(&self, cx: &Context) -> Option<Instant> {
        Instant::earliest([
            self.work.timers.next_deadline(),
            self.work.pacing.next_deadline(),
            self.records.syns.next_deadline(),
            self.records.next_wait_expiry(cx.now, cx.tunables.max_time_wait),
        ])
    }

    fn memory(&self) -> usize {
        self.records.memory() + self.work.memory()
    }

    fn on_retune(&mut self, tunables: &Tunables, range: PortRange) {
        self.active.ports.set_rules(range, tunables.reserved_ports);
        self.records.syns.set_rules(tunables);
        self.records.lifetimes = Lifetimes::new(tunables);
    }

    fn on_routes_changed(&mut self) {
        self.passive.listener_cache = None;
        self.active.last_connect_route = None;
    }

    fn on_address_removed(&mut self, local: u16, _addr: &Address) {
        self.segmentation.forget(local);
        self.active.sources.forget(local);
    }
}
