//! The contract of a transport: what a host calls on each of its protocols above IP.
//!
//! Dispatch is static. A new transport is a type that implements [`Protocol`] and [`PacketProtocol`], a field of
//! [`PacketTransports`](crate::packet_transports::PacketTransports), an `Input` that `net/ip` reads its packets as,
//! and the arm of `Shard::on_read` that hands it to the transport.

use whimbrel_base::Instant;
use whimbrel_base::ports::PortRange;
use whimbrel_tcp::{Context, Tunables};
use whimbrel_wire::Address;

use crate::net::Net;
use crate::{RxFrame, TxBatch};

/// A transport of a host.
pub(crate) trait Protocol {
    /// True if something waits to leave.
    fn has_output(&self) -> bool;

    /// When it has to be advanced at the latest; `None` if nothing is due.
    fn next_deadline(&self, cx: &Context) -> Option<Instant>;

    /// Memory of its records and queues, bytes.
    fn memory(&self) -> usize;

    /// Goes by these tunables from now on; ephemeral ports lie in `range`.
    fn on_retune(&mut self, tunables: &Tunables, range: PortRange);

    /// Forgets what was judged by the former addresses and routes.
    fn on_routes_changed(&mut self);

    /// Drops what was to leave from an address that this host had under the number `local`.
    fn on_address_removed(&mut self, local: u16, addr: &Address);
}

/// A transport whose packets come and go one at a time.
///
/// TCP is none. Its segments come in bursts and leave from a list of connections, and its timers and ICMP errors end in
/// the same follow-up of a connection. [`Shard`](crate::Shard) has these paths itself: with three arguments in place
/// of one they took 0.4 % more of the instructions of a short connection.
pub(crate) trait PacketProtocol: Protocol {
    /// A packet of this transport, as `net/ip` reads it.
    type Packet<'a>;
    /// An ICMP error about a packet that this transport sent.
    type Report;

    /// Acts upon a packet for this host, which `frame` carries, and counts it as delivered or dropped.
    fn on_packet(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        frame: &RxFrame<'_>,
        packet: &Self::Packet<'_>,
    );

    /// Acts upon an ICMP error. Returns whether it is about something that this transport has.
    fn on_error(&mut self, cx: &mut Context, net: &mut Net, report: &Self::Report) -> bool;

    /// Fills `batch` with what is to leave, as much as it has in one turn.
    fn transmit(&mut self, cx: &mut Context, net: &mut Net, batch: &mut TxBatch);

    /// Does what is due, and takes each step from `budget`. Nothing, for a transport without timers.
    fn advance(&mut self, _cx: &mut Context, _net: &mut Net, _budget: &mut usize) {}
}
