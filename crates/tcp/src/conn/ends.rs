//! The two ends of a connection: a record is found by them.

use whimbrel_wire::Address;

/// Addresses and ports of both sides.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Ends {
    /// The address that the peer sends from.
    pub(super) remote: Address,
    /// The port that the peer sends from.
    pub(super) remote_port: u16,
    /// The port that this side sends from.
    pub(super) local_port: u16,
    /// This side's address, as an index into the shard's table of them.
    pub(super) local_index: u16,
}
