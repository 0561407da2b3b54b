//! Which flow a segment belongs to, as records hold it.

use whimbrel_tcp::conn::Connection;
use whimbrel_tcp::table::{Ended, SynEntry, TimeWait};
use whimbrel_wire::{Address, Endpoint};

/// A 4-tuple in 22 bytes: what every record of a flow holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowKey {
    pub(crate) remote: Address,
    pub(crate) remote_port: u16,
    pub(crate) local_port: u16,
    pub(crate) local_index: u16,
}

impl FlowKey {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            remote: *connection.remote(),
            remote_port: connection.remote_port(),
            local_port: connection.local_port(),
            local_index: connection.local_index(),
        }
    }

    pub(crate) fn of_half_open(entry: &SynEntry) -> Self {
        let Endpoint { addr: remote, port: remote_port } = entry.remote();
        let (local_port, local_index) = (entry.local_port(), entry.local_index());
        Self { remote, remote_port, local_port, local_index }
    }

    /// True if a half-open entry is of this flow.
    #[inline]
    pub(crate) fn is_of_half_open(&self, entry: &SynEntry) -> bool {
        entry.remote().port == self.remote_port
            && entry.local_port() == self.local_port
            && entry.local_index() == self.local_index
            && *entry.remote_addr() == self.remote
    }

    /// True if a record in TIME-WAIT is of this flow.
    #[inline]
    pub(crate) fn is_of_waiting(&self, wait: &TimeWait) -> bool {
        wait.is_flow(&self.remote, self.remote_port, self.local_port, self.local_index)
    }

    pub(crate) fn of_waiting(wait: &TimeWait) -> Self {
        let Ended { remote, remote_port, local_port, local_index, .. } = wait.ended();
        Self { remote, remote_port, local_port, local_index }
    }
}
