//! Control of a host that runs: other rules, connections dropped by name, what
//! is remembered of paths forgotten.

use alloc::vec::Vec;
use whimbrel_tcp::Tunables;

use whimbrel_tcp::table::Kind;
use whimbrel_tcp::tunables::TUNABLES;
use whimbrel_wire::Flow;

use super::{RetuneError, Shard, SocketEntry, SocketState};
use crate::ip::FlowKey;
use crate::protocol::Protocol;

impl Shard {
    /// Sets one tunable, or group, by any of its names, as
    /// [`Tunables::set_by_name`] reads it, on the host that runs ([`Shard::retune`]).
    pub fn set_tunable(&mut self, name: &str, value: &str) -> Result<(), RetuneError> {
        let mut tunables = self.cx.tunables.clone();
        tunables.set_by_name(name, value)?;
        self.retune(tunables)
    }

    /// Goes by these rules from now on; if any of them cannot be, nothing changes.
    ///
    /// Time-outs that are asked for when they run out (those of TIME-WAIT and of SYN-ACKs) follow at
    /// once, the others when they are next started. What was negotiated, and the buffers of
    /// connections that are there, stay. How sequence numbers and ports are chosen is
    /// [fixed](RetuneError::Fixed): a flow's next number must follow from its last.
    pub fn retune(&mut self, tunables: Tunables) -> Result<(), RetuneError> {
        tunables.validate()?;
        let range = tunables.port_range()?;
        let fixed = TUNABLES.iter().filter(|info| FIXED.contains(&info.field));
        for info in fixed {
            if info.value(&tunables) != info.value(&self.cx.tunables) {
                return Err(RetuneError::Fixed { name: info.name.text });
            }
        }
        self.tcp.on_retune(&tunables, range);
        self.packets.on_retune(&tunables, range);
        self.net.set_link_rules(&tunables);
        self.cx.pool.set_budget(tunables.mem_budget, &mut self.cx.env.counters);
        self.cx.tunables = tunables;
        Ok(())
    }

    /// Drops whatever record a flow has, as `tcpdrop` does: a connection is reset and its
    /// application told that it was aborted, a half-open entry and a record in TIME-WAIT go in
    /// silence. Returns whether there was one.
    pub fn abort_flow(&mut self, flow: &Flow) -> bool {
        let Some(record) = self.tcp.records.find_between(flow, &self.net.ip.addresses) else {
            return false;
        };
        let index = record.index();
        match record.kind() {
            Kind::Connection => self.drop_connection(index),
            Kind::SynEntry => {
                if let Some(entry) =
                    self.tcp.records.syns.remove(index, &mut self.tcp.passive.listeners)
                {
                    self.cx.counters.attempt_fails += 1;
                    self.tcp.forget_half_open(&mut self.cx, &mut self.net, index, &entry);
                }
            }
            Kind::TimeWait => {
                self.tcp.end_wait(&mut self.net, index);
            }
        }
        true
    }

    /// Drops whatever is in this state, as FreeBSD's `tcpdrop -s` does; listeners stay. Returns how
    /// many there were. It walks all there are.
    pub fn abort_state(&mut self, state: SocketState) -> usize {
        // Listed first: what is dropped may change what is walked.
        let of_state = self.sockets().filter(|entry| entry.state == state);
        let flow = |entry: SocketEntry| Some(Flow { local: entry.local, remote: entry.remote? });
        let flows: Vec<Flow> = of_state.filter_map(flow).collect();
        flows.iter().filter(|flow| self.abort_flow(flow)).count()
    }

    fn drop_connection(&mut self, index: u32) {
        let Some((connection, cx)) = self.connection(index) else { return };
        let key = FlowKey::of(connection);
        let marking = connection.marking(&cx.tunables);
        if let Some(reset) = connection.drop_by_force(cx) {
            self.net.reply_unbounded(key, reset, marking);
        }
        self.after_change(index);
    }

    /// Forgets what paths were found to carry, and the Fast Open cookies of servers (Linux'
    /// `ip tcp_metrics flush`, FreeBSD's `hostcache.purgenow`): connections that begin from now on find
    /// out anew.
    pub fn purge_paths(&mut self) {
        self.net.purge_paths();
        self.tcp.active.fast_open_cache.clear();
    }
}

/// The fields that hold from the beginning of a host to its end.
const FIXED: &[&str] = &["isn", "isn_tick_nanos", "isn_step", "port_order"];
