//! The network of a host as its callers see it: calls that go on to [`Net`](crate::net::Net).

use bytes::Bytes;
use whimbrel_wire::Address;

use super::{AddressError, DatagramPathNews, DatagramPathsSeen, InjectError, Shard};
use crate::InterfaceAddress;
use crate::ip::Unreachable;
use crate::link::{AddressCheck, AddressConflict, CheckedAddress};
use crate::ping::{Ping, PingEnd, PingError, PingId};

/// Packets that nothing here takes.
impl Shard {
    /// Keeps, from now on, up to `most` packets that nothing here takes until they are
    /// [polled](Shard::poll_unclaimed): those for other hosts' addresses, those of protocols that this
    /// host does not speak, datagrams for ports that no socket has, and ICMP errors about datagrams that none
    /// sent. They are answered by no ICMP error then. 0: keeps none, and drops those that wait.
    pub fn keep_unclaimed(&mut self, most: usize) {
        self.net.keep_unclaimed(most);
    }

    /// The next packet that nothing took: whole, with complete checksums.
    pub fn poll_unclaimed(&mut self) -> Option<Bytes> {
        self.net.poll_unclaimed()
    }

    /// Says to the sender of `packet`, which is for another host, that it cannot be delivered there, by an
    /// ICMP error as a router on the way would send one; within what a host may send of these (RFC 1122
    /// 3.2.2, RFC 4443 2.4). To errors, later fragments and packets for groups none is sent.
    pub fn refuse_unclaimed(&mut self, packet: &[u8], what: Unreachable) {
        self.net.refuse_unclaimed(&mut self.cx, packet, what, None);
    }

    /// Refuses it in the name of the router `reporter`, where this host [takes any
    /// address](Shard::take_any_address): a gateway passes on what that reported.
    pub fn refuse_unclaimed_as(&mut self, packet: &[u8], what: Unreachable, reporter: Address) {
        self.net.refuse_unclaimed(&mut self.cx, packet, what, Some(reporter));
    }

    /// Sends this IP packet unchanged, when it is its turn.
    pub fn inject(&mut self, packet: Bytes) -> Result<(), InjectError> {
        self.net.inject(packet)
    }
}

/// Its addresses.
impl Shard {
    /// Asks, where the link is an Ethernet, whether another station has `addr`, before it is
    /// [added](Shard::add_address) (RFC 5227 2.1, RFC 4862 5.4). [`Shard::poll_checked`] says what came of
    /// it, 0.9 s later, or as soon as a station answers; at once where there is none to ask.
    ///
    /// # Errors
    ///
    /// [`AddressError::Checking`]: 64 are asked for, or their ends were not polled.
    pub fn check_address(&mut self, addr: Address) -> Result<Option<CheckedAddress>, AddressError> {
        self.net.check_address(addr, self.cx.now)
    }

    /// The next address whose check has ended.
    pub fn poll_checked(&mut self) -> Option<CheckedAddress> {
        self.net.pop_checked()
    }

    /// Checks that this host could be [given](Shard::add_address) this address now.
    pub fn judge_address(&self, address: &InterfaceAddress) -> Result<(), AddressError> {
        self.net.judge_address(address)
    }

    /// Begins to ask, at the time last told, whether another station on the link has an address of this
    /// host's (RFC 5227 2.1, RFC 4862 5.4): until [`Shard::address_check`] says that it is
    /// [done](AddressCheck::Done), 0.9 s later, nothing else is sent, and nothing that arrives is taken.
    /// The first 64 addresses are asked for. Without an Ethernet there is no station to ask.
    pub fn check_addresses(&mut self) {
        self.net.begin_check(self.cx.now);
    }

    /// Returns the state of this host's addresses: in use, asked for, or another station's.
    pub fn address_check(&self) -> AddressCheck {
        self.net.address_check()
    }

    /// Another station that turned out, while this host used it, to have an address of this host's; each
    /// is reported once, and again after ten seconds. The address is kept and defended (RFC 5227 2.4):
    /// an administrator has to give it to one of the two.
    pub fn take_conflict(&mut self) -> Option<AddressConflict> {
        self.net.take_conflict()
    }
}

/// MTUs of links and paths.
impl Shard {
    /// The largest IP packet that the link carries, bytes.
    pub fn mtu(&self) -> u16 {
        self.net.mtu()
    }

    /// The largest IP packet that the path to `remote` carries, bytes, if it was found by segments
    /// to be less than the link does within the last ten minutes. Of an IPv4 path that carries less than 552
    /// it is that: routers may fragment what is sent there.
    pub fn path_mtu(&self, remote: &Address) -> Option<u16> {
        self.net.path_mtu(self.cx.now, remote)
    }

    /// Returns reports on the paths of datagrams since `seen`, which is brought up to date; `None`: none.
    #[inline]
    pub fn datagram_paths(&self, seen: &mut DatagramPathsSeen) -> Option<DatagramPathNews> {
        self.net.datagram_paths(self.cx.now, seen)
    }
}

/// Echo requests, and packets to itself.
impl Shard {
    /// Sends an echo request. [`Shard::poll_ping`] says what came of it. With several shards it is the first
    /// that hears of replies.
    pub fn ping(&mut self, ping: &Ping) -> Result<PingId, PingError> {
        self.net.ping(&self.cx, ping)
    }

    /// The next echo request of which is known what came of it.
    pub fn poll_ping(&mut self) -> Option<PingEnd> {
        self.net.poll_ping()
    }

    /// True if this host sent itself something that has not come in yet: [`Shard::advance`] is due.
    pub fn has_looped(&self) -> bool {
        self.net.has_looped()
    }
}
