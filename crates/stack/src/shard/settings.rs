//! Settings of connections and listeners.

use whimbrel_tcp::cc::{AddError, Algorithm, Algorithms, MakeAlgorithm};
use whimbrel_tcp::conn::{BufferSize, Cork, KeepAlive, Nagle, SocketOptions};

use super::Shard;
use crate::{Handle, ListenerId};

impl Shard {
    /// Switches Nagle's algorithm off or on (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, handle: Handle, nagle: Nagle) {
        self.with_handle(handle, |connection, _| connection.set_nodelay(nagle));
    }

    /// Holds back segments that are not full, or lets them go (`TCP_CORK`).
    pub fn set_cork(&mut self, handle: Handle, cork: Cork) {
        self.with_handle(handle, |connection, cx| connection.set_cork(cx, cork));
    }

    /// Probes the connection when it is silent, or stops to (`SO_KEEPALIVE`).
    pub fn set_keep_alive(&mut self, handle: Handle, keep_alive: KeepAlive) {
        self.with_handle(handle, |connection, cx| connection.set_keep_alive(cx, keep_alive));
    }

    /// Sets the most bytes that may wait to be acknowledged (`SO_SNDBUF`): a number means what the tunable
    /// `buffers` says, a floor by default.
    pub fn set_send_size(&mut self, handle: Handle, size: impl Into<BufferSize>) {
        let size = size.into();
        self.with_handle(handle, |connection, cx| connection.set_send_size(cx, size));
    }

    /// Sets the most bytes that may wait to be read (`SO_RCVBUF`): a number means what the tunable `buffers`
    /// says, a floor by default.
    pub fn set_recv_size(&mut self, handle: Handle, size: impl Into<BufferSize>) {
        let size = size.into();
        self.with_handle(handle, |connection, cx| connection.set_recv_size(cx, size));
    }

    /// The congestion control of a connection from now on (`TCP_CONGESTION`), beginning with the window
    /// that there is.
    pub fn set_congestion_control(&mut self, handle: Handle, algorithm: Algorithm) {
        self.with_handle(handle, |connection, _| connection.set_congestion_control(algorithm));
    }

    /// The congestion control that a connection has.
    pub fn congestion_control(&self, handle: Handle) -> Option<Algorithm> {
        self.tcp.records.congestion_control(handle)
    }

    /// From now on connections whose socket, listener and route name no congestion control have this one,
    /// whatever the tunable says.
    pub fn set_usual_congestion_control(&mut self, algorithm: Algorithm) {
        self.cx.algorithms.set_usual(algorithm);
    }

    /// The congestion controls that connections can have: by their names.
    pub fn congestion_controls(&self) -> &Algorithms {
        &self.cx.algorithms
    }

    /// Adds a congestion control, by whose name sockets can ask for it, or changes how those of that name
    /// are made.
    ///
    /// # Errors
    ///
    /// [`AddError`]: 254 were added, or it cannot have this name.
    pub fn add_congestion_control(
        &mut self,
        name: &str,
        make: MakeAlgorithm,
    ) -> Result<Algorithm, AddError> {
        self.cx.algorithms.add(name, make)
    }

    /// Everything that can be set on a connection, at once: what `options` leaves open is as the
    /// tunables have it. The MSS counts only before our SYN is sent.
    pub fn set_options(&mut self, handle: Handle, options: &SocketOptions) {
        self.with_handle(handle, |connection, cx| connection.set_options(cx, options));
    }

    /// Sets what the connections of a listener inherit: those whose third segment arrives from now on.
    /// What the SYN-ACK says of it (MSS, window, its scale, time to live) counts from the next SYN
    /// on. Returns whether `listener` names one.
    pub fn set_listener_options(&mut self, listener: ListenerId, options: &SocketOptions) -> bool {
        self.tcp.passive.listeners.set_options(listener, options)
    }

    /// Sets the most complete connections that may wait for [`Shard::accept`] (0: none, for now). Returns
    /// whether `listener` names one.
    pub fn set_backlog(&mut self, listener: ListenerId, backlog: u32) -> bool {
        self.tcp.passive.listeners.set_backlog(listener, backlog)
    }
}
