//! The transports of a host whose packets come and go one at a time.

use whimbrel_base::Instant;
use whimbrel_base::ports::PortRange;
use whimbrel_tcp::{Context, Tunables};
use whimbrel_wire::Address;

use crate::TxBatch;
use crate::net::Net;
use crate::protocol::{PacketProtocol, Protocol};
use crate::udp_host::UdpHost;

/// The transports but TCP, in the order of their turns.
#[derive(Debug)]
pub(crate) struct PacketTransports {
    pub(crate) udp: UdpHost,
}

impl Protocol for PacketTransports {
    #[inline]
    fn has_output(&self) -> bool {
        self.udp.has_output()
    }

    #[inline]
    fn next_deadline(&self, cx: &Context) -> Option<Instant> {
        self.udp.next_deadline(cx)
    }

    fn memory(&self) -> usize {
        self.udp.memory()
    }

    fn on_retune(&mut self, tunables: &Tunables, range: PortRange) {
        self.udp.on_retune(tunables, range);
    }

    fn on_routes_changed(&mut self) {
        self.udp.on_routes_changed();
    }

    fn on_address_removed(&mut self, local: u16, addr: &Address) {
        self.udp.on_address_removed(local, addr);
    }
}

impl PacketTransports {
    pub(crate) const fn new(udp: UdpHost) -> Self {
        Self { udp }
    }

    /// Fills `batch` with what each has to send in its turn.
    #[inline]
    pub(crate) fn transmit(&mut self, cx: &mut Context, net: &mut Net, batch: &mut TxBatch) {
        if self.udp.has_output() {
            self.udp.transmit(cx, net, batch);
        }
    }

    /// Does up to `budget` of what is due to each.
    pub(crate) fn advance(&mut self, cx: &mut Context, net: &mut Net, budget: &mut usize) {
        self.udp.advance(cx, net, budget);
    }
}
