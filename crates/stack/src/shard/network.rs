//! The network of a host as its callers see it: calls that go on to [`Net`](crate::net::Net).

use bytes::Bytes;

use super::{InjectError, Shard};

/// Packets that nothing here takes.
impl Shard {
    /// Keeps, from now on, up to `most` packets that nothing here takes until they are
    /// [polled](Shard::poll_unclaimed): those for other hosts' addresses, those of protocols that this
    /// host does not speak, datagrams for ports that no socket has, and ICMP errors about datagrams that none
    /// sent. They are answered by no ICMP error then. 0: keeps none, and lets go of those that wait.
    pub fn keep_unclaimed(&mut self, most: usize) {
        self.net.keep_unclaimed(most);
    }

    /// The next packet that nothing took: whole, with complete checksums.
    pub fn poll_unclaimed(&mut self) -> Option<Bytes> {
        self.net.poll_unclaimed()
    }

    /// Sends this IP packet as it is, when it is its turn.
    pub fn inject(&mut self, packet: Bytes) -> Result<(), InjectError> {
        self.net.inject(packet)
    }
}
