//! What a segment finds of its flow: a record, or what an earlier connection left behind.

use whimbrel_tcp::table::{FlowHash, Record, ReuseBy};
use whimbrel_wire::SeqNum;

use crate::ip::Arrival;
use crate::records::Records;

/// An arrived segment, and where its record was found.
pub(super) struct FoundSegment<'a> {
    pub(super) arrival: Arrival<'a>,
    pub(super) hash: FlowHash,
    pub(super) record: Option<Record>,
}

impl<'a> FoundSegment<'a> {
    /// A segment whose record is still to be found. Always inline: it is made where it stands.
    #[inline(always)]
    pub(super) fn new(records: &Records, arrival: Arrival<'a>) -> Self {
        Self { hash: records.hash(&arrival.key), record: None, arrival }
    }
}

/// What a SYN's flow leaves behind from an earlier connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReusedFlow {
    /// Our ISS must lie at or beyond this.
    pub(super) iss_floor: Option<SeqNum>,
    /// The TIME-WAIT record whose place it takes, and what showed that the SYN is new.
    pub(super) replaces: Option<(u32, ReuseBy)>,
}

impl ReusedFlow {
    /// No earlier connection had this flow, as far as is known.
    pub(super) const FRESH: Self = Self { iss_floor: None, replaces: None };

    /// The TIME-WAIT record that comes back if the handshake fails: a SYN accepted by its number
    /// alone may still be an old duplicate (RFC 1122 4.2.2.13 b), one with a newer timestamp has
    /// proved itself.
    pub(super) fn kept(&self) -> Option<u32> {
        self.replaces.filter(|(_, by)| *by == ReuseBy::Sequence).map(|(wait, _)| wait)
    }
}
