//! Segments with the record of their flow, or with what an earlier connection left behind.

use alloc::vec::Vec;

use whimbrel_tcp::table::{FlowHash, PassiveOpen, Record, ReuseBy};
use whimbrel_wire::SeqNum;

use crate::ip::{Arrival, FlowKey};
use crate::tcp_host::records::Records;

/// Places for the segments of a burst, used again and again: between two nothing stands in them.
///
/// An array was made for each burst before, each place of which had to be told that nothing is there, those
/// that were not needed as well, and asked so at each step: thirteen instructions more a segment.
#[derive(Debug)]
pub(crate) struct BurstPlaces(Vec<FoundSegment<'static>>);

impl BurstPlaces {
    pub(crate) fn new(places: usize) -> Self {
        Self(Vec::with_capacity(places))
    }

    /// The places, for a burst that is lent for as long as it takes.
    #[inline]
    pub(crate) fn take<'a>(&mut self) -> Vec<FoundSegment<'a>> {
        core::mem::take(&mut self.0)
    }

    /// Gives them back, once what stands in them is dealt with.
    #[inline]
    #[allow(clippy::unnecessary_filter_map, reason = "a filter would leave the burst its lifetime")]
    pub(crate) fn give_back(&mut self, mut burst: Vec<FoundSegment<'_>>) {
        burst.clear();
        // What lived as long as the burst and what outlives it are alike: the memory is the same.
        self.0 = burst.into_iter().filter_map(|_| None).collect();
    }
}

/// An arrived segment, and where its record was found.
#[derive(Debug)]
pub(crate) struct FoundSegment<'a> {
    pub(crate) arrival: Arrival<'a>,
    pub(crate) hash: FlowHash,
    pub(crate) record: Option<Record>,
}

impl<'a> FoundSegment<'a> {
    /// A segment whose record is still to be found. Always inline: it is made where it stands.
    #[inline(always)]
    pub(crate) fn new(records: &Records, arrival: Arrival<'a>) -> Self {
        Self { hash: records.hash(&arrival.key), record: None, arrival }
    }

    /// The opening that this segment asks `listener` for, where `opening` is what its flow leaves behind.
    #[inline(always)]
    pub(crate) fn passive_open(
        &self,
        listener: u32,
        iss: SeqNum,
        scale_limit: u32,
        opening: ReusedFlow,
    ) -> PassiveOpen {
        let FlowKey { remote, local_index, .. } = self.arrival.key;
        let time_wait = opening.kept();
        PassiveOpen { remote, local_index, listener, iss, scale_limit, time_wait }
    }
}

/// The remains of an earlier connection of a SYN's flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReusedFlow {
    /// Our ISS must lie at or beyond this.
    pub(crate) iss_floor: Option<SeqNum>,
    /// The TIME-WAIT record whose place it takes, and what showed that the SYN is new.
    pub(crate) replaces: Option<(u32, ReuseBy)>,
}

impl ReusedFlow {
    /// No earlier connection had this flow, as far as is known.
    pub(crate) const FRESH: Self = Self { iss_floor: None, replaces: None };

    /// The TIME-WAIT record that comes back if the handshake fails: a SYN accepted by its number
    /// alone may still be an old duplicate (RFC 1122 4.2.2.13 b), one with a newer timestamp has
    /// proved itself.
    pub(crate) fn kept(&self) -> Option<u32> {
        self.replaces.filter(|(_, by)| *by == ReuseBy::Sequence).map(|(wait, _)| wait)
    }
}

/// The most frames of one pass.
pub(crate) const BURST: usize = 64;
