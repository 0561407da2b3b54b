//! Datagram sockets, as their owner sees them: calls that go on to [`UdpHost`](crate::udp_host::UdpHost).

use bytes::Bytes;
use whimbrel_udp::{Bind, DatagramError, Received, SendOptions, SocketError, Sockets};
use whimbrel_wire::{Address, Endpoint};

use super::Shard;
use crate::UdpHandle;
use crate::ip::Unreachable;
use crate::udp_error::UdpError;
use crate::udp_host::SendTo;

/// Datagram sockets, as their owner sees them.
impl Shard {
    /// A socket that receives datagrams at one of this host's addresses, or at all of them.
    pub fn udp_bind(&mut self, bind: &Bind) -> Result<UdpHandle, UdpError> {
        self.packets.udp.bind(&self.net, bind)
    }

    /// The socket for any destination: it receives what finds no other, at every port of this host's
    /// addresses, and where the host [takes any](Shard::take_any_address) at every port of those.
    /// [`Received::to`] says where each datagram was sent to; [`SendTo::answer`] answers from there.
    /// There is one at a time.
    pub fn udp_bind_any(&mut self) -> Result<UdpHandle, UdpError> {
        Ok(self.packets.udp.sockets.bind_any()?)
    }

    /// Says to who sent `received` that where it was sent to cannot be reached, by an ICMP error as its
    /// receiver ([`Unreachable::Port`]) or a router on the way would send one; within what a host may send
    /// of these.
    pub fn udp_refuse(&mut self, received: &Received, what: Unreachable) {
        self.net.refuse_datagram(&mut self.cx, received, what, None);
    }

    /// Refuses it in the name of the router `reporter`, where this host [takes any
    /// address](Shard::take_any_address): a gateway passes on what that reported.
    pub fn udp_refuse_as(&mut self, received: &Received, what: Unreachable, reporter: Address) {
        self.net.refuse_datagram(&mut self.cx, received, what, Some(reporter));
    }

    /// From now on the socket sends to `remote` where nothing else is said, receives from there alone,
    /// and receives ICMP errors about what it sends there ([`Shard::udp_take_error`]). Nothing is sent.
    pub fn udp_connect(&mut self, handle: UdpHandle, remote: Endpoint) -> Result<(), UdpError> {
        self.packets.udp.connect(&mut self.net, handle, remote)
    }

    /// The socket is not connected any more.
    pub fn udp_disconnect(&mut self, handle: UdpHandle) -> Result<(), UdpError> {
        Ok(self.packets.udp.sockets.disconnect(handle)?)
    }

    /// Closes the socket: its port is free at once, what was to be sent leaves. Returns whether there
    /// was one.
    pub fn udp_close(&mut self, handle: UdpHandle) -> bool {
        self.packets.udp.sockets.close(handle)
    }

    /// Takes a datagram to be sent, whole or not at all. If there is no room for it now, an
    /// [`Event::Udp`](crate::Event::Udp) follows once there is.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the destination or the size is known at once. What the path says of it later
    /// is returned by [`Shard::udp_take_error`], if the socket is connected.
    pub fn udp_send(
        &mut self,
        handle: UdpHandle,
        data: Bytes,
        send: &SendTo,
    ) -> Result<(), UdpError> {
        self.packets.udp.send(&self.cx, &mut self.net, handle, data, send)
    }

    /// The datagram that has waited for longest; `None`: nothing yet, an
    /// [`Event::Udp`](crate::Event::Udp) will come.
    pub fn udp_recv(&mut self, handle: UdpHandle) -> Option<Received> {
        self.packets.udp.sockets.recv(handle)
    }

    /// Returns the datagram that has waited for longest, which stays.
    pub fn udp_peek(&self, handle: UdpHandle) -> Option<&Received> {
        self.packets.udp.sockets.peek(handle)
    }

    /// Takes the last error about what a connected socket had sent (RFC 1122 4.1.3.3); it is forgotten by
    /// that, and ends nothing: what `SO_ERROR` tells.
    pub fn udp_take_error(&mut self, handle: UdpHandle) -> Option<SocketError> {
        self.packets.udp.sockets.take_error(handle)
    }

    /// Keeps, from now on, the last 16 errors about what the socket sends for [`Shard::udp_take_report`],
    /// whatever peers these are of (`IP_RECVERR`): for a socket that is not connected.
    pub fn udp_keep_errors(&mut self, handle: UdpHandle) {
        self.packets.udp.sockets.keep_errors(handle);
    }

    /// Takes the oldest error that the socket [keeps](Shard::udp_keep_errors).
    pub fn udp_take_report(&mut self, handle: UdpHandle) -> Option<DatagramError> {
        self.packets.udp.sockets.take_report(handle)
    }

    /// Sets the defaults of the socket's packets, where a datagram says nothing else: hop limit, traffic
    /// class, and whether they may be cut (RFC 1122 4.1.4).
    pub fn udp_set_options(&mut self, handle: UdpHandle, options: SendOptions) {
        self.packets.udp.sockets.set_options(handle, options);
    }

    /// Sets the most bytes that may wait to be received (`SO_RCVBUF`), from 2 KiB to `buffers.recv.max`; what each
    /// datagram takes in addition to its data counts.
    pub fn udp_set_recv_size(&mut self, handle: UdpHandle, bytes: usize) {
        self.packets
            .udp
            .sockets
            .set_recv_size(handle, bytes.min(self.cx.tunables.recv_buffer_max as usize));
    }

    /// Sets the most bytes that may wait to be sent (`SO_SNDBUF`), from 2 KiB to `buffers.send.max`.
    pub fn udp_set_send_size(&mut self, handle: UdpHandle, bytes: usize) {
        self.packets
            .udp
            .sockets
            .set_send_size(handle, bytes.min(self.cx.tunables.send_buffer_max as usize));
    }

    /// The sockets: their ends, options and sizes, and what happened to datagrams.
    pub fn udp(&self) -> &Sockets {
        &self.packets.udp.sockets
    }

    /// The most bytes that a datagram to `remote` carries in one packet (RFC 1122 3.4, GET_MAXSIZES).
    pub fn udp_whole(&self, remote: &Address) -> usize {
        self.net.ip.whole_udp(self.cx.now, remote)
    }
}
