//! Invariants of records, between any two calls.

use alloc::format;
use alloc::string::String;

use whimbrel_tcp::table::{Kind, Record};

use crate::ip::FlowKey;
use crate::tcp_host::connections::ConnectionSlot;
use crate::tcp_host::records::Records;

impl Records {
    pub(crate) fn check_slot(
        &self,
        index: u32,
        slot: &ConnectionSlot,
        [dirty, listed]: [usize; 2],
        max_text: u32,
    ) -> Result<(), &'static str> {
        let connection = &slot.connection;
        connection.check_invariants(max_text)?;
        let key = FlowKey::of(connection);
        let record = self.find(self.hash(&key), &key);
        let checks = [
            (slot.dirty || !connection.wants_transmit(max_text), "it wants to transmit unlisted"),
            (!slot.dirty || dirty >= 1, "it is dirty and not in the list"),
            (!slot.listed || listed >= 1, "it has news and is not in the list"),
            (connection.next_deadline() >= slot.timer.at, "its timer fires too late"),
            (
                slot.linked.is_none() || record == Some(Record::new(Kind::Connection, index)),
                "the flow table does not lead to it",
            ),
            (slot.linked.is_some() || !connection.is_orphan(), "it is over and without a holder"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }

    /// Returns the number of TIME-WAIT records behind half-open entries.
    pub(crate) fn check_half_open(&self) -> Result<usize, String> {
        let mut displaced = 0;
        for (index, entry) in self.half_open() {
            let key = FlowKey::of_half_open(entry);
            if self.find(self.hash(&key), &key) != Some(Record::new(Kind::SynEntry, index)) {
                return Err(format!("half-open {index}: the flow table does not lead to it"));
            }
            displaced += usize::from(self.wait_kept_by(entry).is_some());
        }
        Ok(displaced)
    }
}
