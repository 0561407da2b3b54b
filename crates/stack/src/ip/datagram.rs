//! A message that leaves in one packet, or in several.

use bytes::Bytes;
use whimbrel_wire::{Address, Fragment, Protocol, TrafficClass};

/// A message with its transport header, and how much of it left already.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub(super) local_index: u16,
    pub(super) remote: Address,
    pub(super) protocol: Protocol,
    pub(super) class: TrafficClass,
    pub(super) hop_limit: u8,
    /// What did not leave yet.
    pub(super) payload: Bytes,
    /// The fragment to come, once the first of them left.
    pub(super) next: Option<Fragment>,
}

impl Datagram {
    /// Whether all of it left.
    pub(crate) fn is_done(&self) -> bool {
        self.payload.is_empty()
    }

    /// The number of the address that it is from.
    pub(crate) fn local_index(&self) -> u16 {
        self.local_index
    }

    /// Octets that did not leave yet.
    pub(crate) fn octets(&self) -> usize {
        self.payload.len()
    }
}
