//! TCP as one of a host's transports: its timers, and ICMP errors about its segments.

use whimbrel_base::Instant;
use whimbrel_base::packet::IcmpError;
use whimbrel_base::ports::PortRange;
use whimbrel_tcp::conn::IcmpVerdict;
use whimbrel_tcp::table::{Kind, Lifetimes};
use whimbrel_tcp::{Context, Tunables};
use whimbrel_wire::Address;

use super::TcpHost;
use crate::ip::{FlowKey, IcmpReport};
use crate::net::Net;
use crate::protocol::Protocol;

impl Protocol for TcpHost {
    type Report = IcmpReport;

    /// Returns whether the report is about a record that can lose something by it.
    fn on_error(&mut self, cx: &mut Context, net: &mut Net, report: &IcmpReport) -> bool {
        let record = self.records.find(self.records.hash(&report.key), &report.key);
        match record.map(|record| (record.kind(), record.index())) {
            Some((Kind::Connection, index)) => self.on_connection_report(cx, net, index, report),
            Some((Kind::SynEntry, index)) => self.on_half_open_report(cx, net, index, report),
            // A record in TIME-WAIT has nothing to lose.
            Some((Kind::TimeWait, _)) | None => return false,
        }
        true
    }

    #[inline]
    fn has_output(&self) -> bool {
        !self.work.dirty.is_empty() || !self.segmentation.is_empty()
    }

    /// The timers of connections, and waits of text that is paced.
    fn advance(&mut self, cx: &mut Context, net: &mut Net, budget: &mut usize) {
        while let Some(index) =
            self.work.timers.pop_due(&mut self.records.connections, cx.now, budget)
        {
            self.on_timer(cx, net, index);
        }
        self.work.advance_pacing(&mut self.records.connections, cx.now, budget);
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

/// Timers, and reports about connections.
impl TcpHost {
    #[inline(never)]
    fn on_timer(&mut self, cx: &mut Context, net: &mut Net, index: u32) {
        self.refresh_path_mtu(cx, net, index);
        if let Some(slot) = self.records.connections.0.get_mut(index) {
            let connection = &mut slot.connection;
            let repeated = cx.counters.syn_retrans;
            let (held, lowered) = (connection.held_path_mtu(), cx.counters.path_mtu_lowered);
            connection.on_deadline(cx);
            let unheard = cx.counters.syn_retrans > repeated;
            let believed = held.filter(|_| cx.counters.path_mtu_lowered > lowered);
            let key = FlowKey::of(connection);
            if connection.doubts_path(&cx.tunables) {
                cx.counters.paths_doubted += 1;
                net.suspect_path(&key.remote, cx.now);
            }
            // What a router said holds for others to the same host, too.
            if let Some(mtu) = believed {
                net.note_path_mtu(cx.now, key.remote, mtu);
            }
            if unheard {
                self.active.on_syn_unanswered(cx, &net.ip.addresses, &key);
            }
        }
        self.after_change(cx, net, index);
    }

    /// Applies to a connection what others found out of its path: when a timer of its runs out, as when it
    /// opened, so that a lesser path costs each flow at most one time-out, and segments that flow cost nothing.
    fn refresh_path_mtu(&mut self, cx: &mut Context, net: &Net, index: u32) {
        let Some(slot) = self.records.connections.0.get_mut(index) else { return };
        if let Some(mtu) = net.ip.path_mtus.said_of(cx.now, slot.connection.remote()) {
            let _ = slot.connection.on_path_mtu(cx, mtu);
        }
    }

    /// Acts upon an ICMP error about a segment of the connection at `index`.
    pub(crate) fn on_connection_report(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        report: &IcmpReport,
    ) {
        let has_fragments = net.ip.path_mtus.has_fragments(cx.now, &report.key.remote);
        let Some(slot) = self.records.connections.0.get_mut(index) else { return };
        let connection = &mut slot.connection;
        if !has_fragments {
            // What the host has forgotten of the path is news again.
            connection.forget_fragments();
        }
        let verdict = connection.on_icmp(cx, report.seq, report.error);
        if let (IcmpVerdict::Lowered, IcmpError::TooBig { mtu }) = (verdict, report.error) {
            net.note_path_mtu(cx.now, report.key.remote, mtu);
        }
        self.after_change(cx, net, index);
    }
}
