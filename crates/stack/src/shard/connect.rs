//! Opening connections from this side.

use bytes::Bytes;
use whimbrel_tcp::conn::{Attempt, SocketOptions};
use whimbrel_tcp::table::Service;
use whimbrel_wire::{Address, Endpoint};

use super::{ConnectError, NotLocal, Shard};
use crate::Handle;
use crate::tcp_host::ports::EndpointRequest;

/// Opening connections, with a SYN that has no text.
impl Shard {
    /// Opens a connection to `remote`; [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::Closed`](crate::Event::Closed) follows. `local` fixes this side's end: an
    /// unspecified address comes of the pool ([`Shard::set_source_pool`]) or of the route, port 0 is
    /// drawn from the ephemeral ports. A host that [takes any address](Shard::take_any_address) may
    /// speak from other hosts', too: the peer's answers must come back here.
    pub fn connect(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
    ) -> Result<Handle, ConnectError> {
        self.open(remote, local, None)
    }

    /// Opens a connection from `local`, if given, with `options` in force from its SYN on.
    pub fn connect_with(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
        options: &SocketOptions,
    ) -> Result<Handle, ConnectError> {
        self.open(remote, local, Some(options))
    }

    fn open(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
        options: Option<&SocketOptions>,
    ) -> Result<Handle, ConnectError> {
        self.tcp.open(&mut self.cx, &mut self.net, EndpointRequest { remote, local }, options)
    }

    /// Attempts to open a connection and their results, to explain a failure.
    pub fn attempt(&self, handle: Handle) -> Option<Attempt> {
        self.tcp.records.attempt(&self.cx, handle)
    }
}

/// Which addresses and ports connections speak from.
impl Shard {
    /// Connections whose caller binds no address speak from these in turn, as far as they are of
    /// the peer's family; without any, from the one that the route suggests. Each address has its
    /// own ports, so ten of them are ten times as many. An address given twice counts twice.
    pub fn set_source_pool(&mut self, pool: &[Address]) -> Result<(), NotLocal> {
        self.tcp.active.set_source_pool(&self.net.ip.addresses, pool)
    }

    /// Draws the port that `bind` would give to a socket without a peer: a port at `local` for which
    /// `is_free` holds, in an order that no other host can guess.
    pub fn draw_port(&mut self, local: &Address, is_free: impl FnMut(u16) -> bool) -> Option<u16> {
        self.tcp.active.draw_port(local, is_free)
    }
}

/// Opening connections whose SYN brings text.
impl Shard {
    /// Opens a connection as [`Shard::connect_with`] does, whose SYN brings the beginning of `data`, if
    /// the server granted a cookie before (RFC 7413): what it has room for is taken from the front,
    /// the rest is for [`Shard::send`]. Without a cookie, or where Fast Open is off or failed lately,
    /// nothing is taken; the SYN then asks for a cookie, if that may help.
    ///
    /// What is taken may come to the server's application twice. Send nothing that must not be carried
    /// out twice.
    pub fn connect_fast(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
        options: &SocketOptions,
        data: &mut Bytes,
    ) -> Result<Handle, ConnectError> {
        let handle = self.connect_with(remote, local, options)?;
        let flow = self.flow(handle);
        let service = flow.map(|flow| Service { local: flow.local.addr, remote });
        if let Some(service) =
            service.filter(|it| self.tcp.active.may_open_fast(&self.cx, &self.net, it))
        {
            self.tcp.open_fast(&mut self.cx, handle.index, service, data);
        }
        Ok(handle)
    }

    /// True if a SYN from `local`, or from where the route says, to `remote` would bring text: a
    /// cookie is known, and nothing failed lately.
    pub fn knows_fast_open_cookie(&self, local: Option<Address>, remote: &Endpoint) -> bool {
        self.tcp.active.knows_cookie(&self.cx, &self.net, local, remote)
    }
}
