//! Counters of the link.

/// The counters of the link layer. What a frame inward was dropped for stands in
/// [`IpCounters`](crate::ip::IpCounters).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Neighbours asked for: ARP requests and Neighbour Solicitations queued to be sent.
    pub asked: u64,
    /// Questions not sent because too many were within the last moments; the next time-out repeats
    /// them.
    pub ask_limited: u64,
    /// Questions for our addresses that were answered.
    pub answered: u64,
    /// Questions for our addresses that were not, because too many answers waited to be sent.
    pub answer_limited: u64,
    /// Messages of another station that has one of our addresses.
    pub conflicts: u64,
    /// Claims of other stations to be a neighbour that was confirmed: the one known is asked first.
    pub claims: u64,
    /// Neighbours whose station did not answer any more, and gave way to one that claimed to be them.
    pub moved: u64,
    /// Neighbours that answered none of our questions.
    pub failed: u64,
    /// Gateways among these: passed over where a route has another.
    pub gateways_failed: u64,
    /// Neighbours forgotten to make room for others.
    pub evicted: u64,
    /// Packets dropped because their neighbour did not answer (Linux: `NEIGH_FAILED`).
    pub out_neighbour_failed: u64,
    /// Packets dropped because others waited for the same neighbour, or because too many
    /// neighbours were sought at once (Linux: `NEIGH_QUEUEFULL`).
    pub out_queue_full: u64,
    /// Packets dropped because no route leads to their destination.
    pub out_no_route: u64,
}
