//! All sockets of a host.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use whimbrel_base::{PortRange, ReservedPorts, Secrets, Slab};
use whimbrel_wire::{Address, Endpoint};

use crate::Counters;
use crate::datagram::{Arrived, OutgoingDatagram, Received, Room, SendOptions};
use crate::error::{BindError, SocketError, Undelivered};
use crate::error_queue::{DatagramError, ErrorQueue};
use crate::handle::UdpHandle;
use crate::key::{Bind, Key, Local, Sharing};
use crate::ports::{Drawing, PortTable};
use crate::queue::ShortDatagrams;
use crate::sending::{Leaving, Sending};
use crate::socket::Socket;

/// The sockets of one host: their ports, and the datagrams that wait to be received or sent.
#[derive(Debug)]
pub struct Sockets {
    sockets: Slab<Socket>,
    ports: PortTable,
    /// The socket for any destination, which receives what no other socket does, and has no port.
    any: Option<u32>,
    drawing: Drawing,
    /// Datagrams to be sent, of all sockets, in the order of the calls; each socket's part is
    /// bounded. They are sent even if the socket is closed: programs end with `send` and `close`.
    out: VecDeque<Leaving>,
    /// Sockets with events, each once.
    news: VecDeque<u32>,
    /// Bytes of the waiting datagrams.
    held: usize,
    /// Memory of the short ones that were received.
    short: ShortDatagrams,
    /// Counters.
    pub counters: Counters,
}

/// Creation and end of sockets.
impl Sockets {
    /// Limit of sockets at a time. Each takes some 250 bytes, and its waiting datagrams.
    pub const MOST: usize = 1 << 20;

    /// Creates an empty set. Ephemeral ports come from `range`, without those reserved.
    pub fn new(secrets: &Secrets, range: PortRange, reserved: ReservedPorts) -> Self {
        Self {
            sockets: Slab::new(),
            ports: PortTable::default(),
            any: None,
            drawing: Drawing::new(secrets, range, reserved),
            out: VecDeque::new(),
            news: VecDeque::new(),
            held: 0,
            short: ShortDatagrams::default(),
            counters: Counters::default(),
        }
    }

    /// Sets the range of ephemeral ports, and those reserved.
    pub fn set_rules(&mut self, range: PortRange, reserved: ReservedPorts) {
        self.drawing.set_rules(range, reserved);
    }

    /// Creates a socket that receives from every sender.
    pub fn bind(&mut self, bind: &Bind) -> Result<UdpHandle, BindError> {
        let key = Key { local: bind.local, remote: None };
        let range = self.drawing.range();
        let exhausted = BindError::PortsExhausted { first: range.first(), last: range.last() };
        let port = match bind.port {
            _ if self.sockets.len() >= Self::MOST => return Err(exhausted),
            0 => self.drawing.draw().ok_or(exhausted)?,
            port => port,
        };
        self.check_free(&key, port, bind.sharing)?;
        let index = self.sockets.insert(Socket::new(key, port, bind.sharing));
        self.link(port, index);
        self.drawing.claim(port);
        Ok(UdpHandle { generation: self.sockets.generation(index), index })
    }

    /// Creates the socket for any destination: it receives what no other socket does, at any
    /// address and port. There is at most one.
    pub fn bind_any(&mut self) -> Result<UdpHandle, BindError> {
        if self.any.is_some() {
            return Err(BindError::AnyInUse);
        }
        let key = Key { local: Local::Both, remote: None };
        let index = self.sockets.insert(Socket::new(key, 0, Sharing::Alone));
        self.any = Some(index);
        Ok(UdpHandle { generation: self.sockets.generation(index), index })
    }

    /// Connects a socket: it receives only from `remote`, and at `here` if it was bound to several
    /// addresses. Waiting datagrams stay. Port 0 of `remote` matches no sender.
    pub fn connect(
        &mut self,
        handle: UdpHandle,
        local: Address,
        remote: Endpoint,
    ) -> Result<(), BindError> {
        let socket = self.socket(handle).ok_or(BindError::Unknown)?;
        if self.is_any(handle) {
            return Err(BindError::AnyPeers);
        }
        let local = match socket.bound.local {
            Local::Address(own) => Local::Address(own),
            Local::Every(_) | Local::Both => Local::Address(local),
        };
        self.set_key(handle, Key { local, remote: Some(remote) });
        Ok(())
    }

    /// Disconnects a socket: it receives again what it was bound to.
    pub fn disconnect(&mut self, handle: UdpHandle) -> Result<(), BindError> {
        let socket = self.socket(handle).ok_or(BindError::Unknown)?;
        let bound = socket.bound;
        if !self.is_any(handle) {
            self.set_key(handle, bound);
        }
        Ok(())
    }

    /// Closes a socket. Received datagrams are discarded; queued ones are sent.
    pub fn close(&mut self, handle: UdpHandle) -> bool {
        let Some(socket) = self.socket(handle) else { return false };
        let (port, key) = (socket.port, socket.key);
        self.held -= socket.received.held();
        if self.is_any(handle) {
            self.any = None;
        } else if self.ports.remove(port, handle.index, &key) {
            self.drawing.release(port);
        }
        self.sockets.remove(handle.index);
        self.thin_news();
        true
    }

    fn set_key(&mut self, handle: UdpHandle, key: Key) {
        let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) else { return };
        let (port, old) = (socket.port, core::mem::replace(&mut socket.key, key));
        // An error about the previous peer does not concern the next.
        socket.error = None;
        self.ports.remove(port, handle.index, &old);
        self.link(port, handle.index);
    }

    fn link(&mut self, port: u16, index: u32) {
        let Self { ports, sockets, .. } = self;
        ports.insert(port, index, |index| sockets.get(index).map(|socket| socket.key));
    }

    fn check_free(&self, key: &Key, port: u16, sharing: Sharing) -> Result<(), BindError> {
        let others = self.ports.of(port);
        let others = others.iter().filter_map(|index| self.sockets.get(*index));
        let shared = |other: &Socket| sharing == Sharing::Shared && other.sharing == sharing;
        let mut in_way = others.filter(|it| it.bound.local.overlaps(&key.local) && !shared(it));
        match in_way.next() {
            Some(_) => Err(BindError::InUse(Endpoint::new(key.local.address(), port))),
            None => Ok(()),
        }
    }

    /// Removes stale entries from the list of events, which would accumulate if events are not
    /// polled: once they are as many as the sockets.
    fn thin_news(&mut self) {
        if self.news.len() <= SPARE + 2 * self.sockets.len() {
            return;
        }
        let Self { sockets, news, .. } = self;
        let mut take = |index: &u32| {
            let socket = sockets.get_mut(*index);
            socket.is_some_and(|socket| core::mem::take(&mut socket.listed))
        };
        news.retain(&mut take);
        for index in news.iter() {
            if let Some(socket) = sockets.get_mut(*index) {
                socket.listed = true;
            }
        }
    }
}

/// The host's side: datagrams that arrive, are sent, or cannot be delivered.
impl Sockets {
    /// Delivers a datagram to its socket, or returns the reason why it was dropped, which is
    /// counted.
    #[inline]
    pub fn deliver(&mut self, arrived: &Arrived<'_>, room: Room) -> Result<(), Undelivered> {
        self.deliver_to(self.find(&arrived.to, &arrived.from), arrived, room)
    }

    /// Delivers a datagram for another host's address, which is for [any](Sockets::bind_any): the
    /// unspecified address matches only the host's own.
    #[inline(never)]
    pub fn deliver_other(&mut self, arrived: &Arrived<'_>, room: Room) -> Result<(), Undelivered> {
        self.deliver_to(self.any, arrived, room)
    }

    // One of the two that call it is rare, and the other saves a frame.
    #[inline(always)]
    fn deliver_to(
        &mut self,
        found: Option<u32>,
        arrived: &Arrived<'_>,
        room: Room,
    ) -> Result<(), Undelivered> {
        let Some(index) = found else {
            self.counters.no_ports += 1;
            return Err(Undelivered::NoSocket);
        };
        let Some(socket) = self.sockets.get_mut(index) else { return Err(Undelivered::NoSocket) };
        let Some(bytes) = socket.received.room_for(arrived.data.len()) else {
            self.counters.in_errors += 1;
            self.counters.rcvbuf_errors += 1;
            return Err(Undelivered::RecvBuffer);
        };
        if room == Room::None {
            self.counters.in_errors += 1;
            self.counters.mem_errors += 1;
            return Err(Undelivered::Memory);
        }
        socket.received.push(arrived, &mut self.short);
        self.held += bytes;
        self.counters.in_datagrams += 1;
        Self::tell(socket, &mut self.news, index);
        Ok(())
    }

    /// Handles an ICMP error about a datagram from `from`. A socket that is connected to its
    /// destination gets the error, and one that keeps errors. Returns whether any socket has the
    /// port; otherwise the datagram was not sent by this host.
    pub fn on_error(&mut self, from: &Endpoint, report: &DatagramError) -> bool {
        let DatagramError { to, error, .. } = *report;
        let Some(index) = self.find(from, &to) else { return false };
        let Some(socket) = self.sockets.get_mut(index) else { return false };
        if let Some(errors) = &mut socket.errors {
            errors.push(*report);
            self.counters.icmp_errors += 1;
            Self::tell(socket, &mut self.news, index);
            return true;
        }
        // RFC 1122 4.1.3.3: "The application is also responsible to avoid confusion from a delayed
        // ICMP error message". A sender to many peers could not assign the error: as on Linux, only
        // connected sockets get it.
        if socket.key.remote.is_some() {
            // A soft error does not replace one that makes calls fail.
            if error.is_hard() || socket.error.is_none_or(|known| !known.is_hard()) {
                socket.error = Some(error);
            }
            self.counters.icmp_errors += 1;
            Self::tell(socket, &mut self.news, index);
        }
        true
    }

    /// Returns the socket that receives a datagram from `from` to `to`.
    #[inline]
    fn find(&self, to: &Endpoint, from: &Endpoint) -> Option<u32> {
        let key_of = |index| self.sockets.get(index).map(|socket: &Socket| socket.key);
        self.ports.find(to, from, key_of).or(self.any)
    }

    fn tell(socket: &mut Socket, news: &mut VecDeque<u32>, index: u32) {
        if !socket.listed {
            socket.listed = true;
            news.push_back(index);
        }
    }
}

/// The application's side.
impl Sockets {
    /// Takes the oldest received datagram.
    #[inline]
    pub fn recv(&mut self, handle: UdpHandle) -> Option<Received> {
        let socket = self.sockets.get_mut_of(handle.index, handle.generation)?;
        let (received, bytes) = socket.received.pop()?;
        self.held -= bytes;
        Some(received)
    }

    /// Returns the oldest received datagram, which stays in the queue.
    pub fn peek(&self, handle: UdpHandle) -> Option<&Received> {
        self.socket(handle)?.received.first()
    }

    /// Returns the number of received datagrams.
    pub fn waiting(&self, handle: UdpHandle) -> usize {
        self.socket(handle).map_or(0, |socket| socket.received.len())
    }

    /// Returns the way out of a socket.
    #[inline]
    pub fn sending(&mut self, handle: UdpHandle) -> Option<Sending<'_>> {
        let socket = self.sockets.get_mut_of(handle.index, handle.generation)?;
        let Self { out, held, counters, .. } = self;
        Some(Sending { handle, socket, out, held, counters })
    }

    /// Takes the last error about a datagram of the socket (`SO_ERROR`).
    pub fn take_error(&mut self, handle: UdpHandle) -> Option<SocketError> {
        self.sockets.get_mut_of(handle.index, handle.generation)?.error.take()
    }

    /// Keeps, from now on, the last 16 errors about datagrams of the socket for
    /// [`Sockets::take_report`], whatever peers these are of (`IP_RECVERR`). It has no others then.
    pub fn keep_errors(&mut self, handle: UdpHandle) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.errors.get_or_insert_with(Box::<ErrorQueue>::default);
        }
    }

    /// Takes the oldest error that the socket keeps.
    pub fn take_report(&mut self, handle: UdpHandle) -> Option<DatagramError> {
        self.sockets.get_mut_of(handle.index, handle.generation)?.errors.as_mut()?.pop()
    }

    /// Sets the receive buffer's size in bytes, including records (`SO_RCVBUF`, at least 2 KiB).
    pub fn set_recv_size(&mut self, handle: UdpHandle, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.received.set_most(bytes.max(LEAST));
        }
    }

    /// Sets the send buffer's size in bytes, including records (`SO_SNDBUF`, at least 2 KiB).
    pub fn set_send_size(&mut self, handle: UdpHandle, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.most_unsent = bytes.max(LEAST);
        }
    }

    /// Sets the options of the socket's packets, which a datagram may override.
    pub fn set_options(&mut self, handle: UdpHandle, options: SendOptions) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.options = options;
        }
    }
}

/// Datagrams to be sent, and events.
impl Sockets {
    /// Returns the next datagram to be sent.
    #[inline]
    pub fn first_out(&self) -> Option<&OutgoingDatagram> {
        self.out.front().map(|leaving| &leaving.datagram)
    }

    /// Takes the next datagram to be sent. This makes room in the send buffer of its socket, which
    /// gets an event once half of the buffer is free, if it waits for that.
    #[inline]
    pub fn next_out(&mut self) -> Option<OutgoingDatagram> {
        let Leaving { of, datagram } = match self.out.len() {
            1 if self.out.capacity() > KEPT => self.last_out(),
            _ => self.out.pop_front(),
        }?;
        self.make_room(of, datagram.data.len() + Leaving::OVERHEAD);
        Some(datagram)
    }

    /// The memory of a large burst is not kept.
    #[inline(never)]
    fn last_out(&mut self) -> Option<Leaving> {
        core::mem::take(&mut self.out).pop_front()
    }

    /// So many bytes of a socket have left.
    #[inline(never)]
    fn make_room(&mut self, of: UdpHandle, bytes: usize) {
        self.held -= bytes;
        let socket = self.sockets.get_mut_of(of.index, of.generation);
        let Some(socket) = socket else { return };
        socket.unsent -= bytes;
        if socket.awaits_room && socket.unsent <= socket.most_unsent / 2 {
            socket.awaits_room = false;
            Self::tell(socket, &mut self.news, of.index);
        }
    }

    /// Returns the number of datagrams to be sent.
    pub fn unsent(&self) -> usize {
        self.out.len()
    }

    /// True if a datagram is to be sent.
    pub fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// Returns the next socket with a received datagram, new room to send, or an error. Events are
    /// hints, merged until they are polled.
    pub fn next_news(&mut self) -> Option<UdpHandle> {
        while let Some(index) = self.news.pop_front() {
            let Some((generation, socket)) = self.sockets.current_mut(index) else { continue };
            if core::mem::take(&mut socket.listed) {
                return Some(UdpHandle { generation, index });
            }
        }
        None
    }
}

/// Properties of the sockets.
impl Sockets {
    /// Returns the number of sockets.
    pub const fn len(&self) -> usize {
        self.sockets.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// True if it is the socket for any destination.
    pub fn is_any(&self, handle: UdpHandle) -> bool {
        self.any == Some(handle.index) && self.socket(handle).is_some()
    }

    /// Returns the local endpoint of a socket; port 0 stands for all ports.
    pub fn local(&self, handle: UdpHandle) -> Option<Endpoint> {
        let socket = self.socket(handle)?;
        Some(Endpoint::new(socket.key.local.address(), socket.port))
    }

    /// Returns the peer of a connected socket.
    pub fn remote(&self, handle: UdpHandle) -> Option<Endpoint> {
        self.socket(handle)?.key.remote
    }

    /// Returns the options of the socket's packets.
    pub fn options(&self, handle: UdpHandle) -> Option<SendOptions> {
        Some(self.socket(handle)?.options)
    }

    /// Returns the sizes of the receive and send buffers.
    pub fn sizes(&self, handle: UdpHandle) -> Option<Sizes> {
        let socket = self.socket(handle)?;
        Some(Sizes { recv: socket.received.most(), send: socket.most_unsent })
    }

    /// True if the socket would accept a datagram to be sent.
    pub fn is_writable(&self, handle: UdpHandle) -> bool {
        self.socket(handle).is_some_and(|socket| socket.unsent < socket.most_unsent)
    }

    /// True if a [hard](SocketError::is_hard) error about a datagram of the socket waits.
    pub fn has_error(&self, handle: UdpHandle) -> bool {
        let error = self.socket(handle).and_then(|socket| socket.error);
        error.is_some_and(|error| error.is_hard())
    }

    /// Returns the bytes of the waiting datagrams.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Returns all bytes in use: waiting datagrams, and the sockets with their ports.
    pub fn memory(&self) -> usize {
        self.held + self.sockets.len() * size_of::<Socket>() + self.ports.memory()
    }

    /// Returns some socket, if there is any. Searches the places.
    pub fn first(&self) -> Option<UdpHandle> {
        let mut next = 0;
        loop {
            match self.sockets.first_from(next)? {
                Ok((index, _)) => {
                    let generation = self.sockets.generation(index);
                    return Some(UdpHandle { generation, index });
                }
                Err(on) => next = on,
            }
        }
    }

    /// Returns the first socket at `index` or above, searching at most 256 places; `Err(next)` is where to
    /// continue ([`Slab::first_from`]).
    pub fn first_from(&self, index: u32) -> Option<Result<UdpHandle, u32>> {
        let found = self.sockets.first_from(index)?;
        let handle = |index| UdpHandle { generation: self.sockets.generation(index), index };
        Some(found.map(|(index, _)| handle(index)))
    }

    /// Returns the bytes of a socket's datagrams that wait to be received, and of those that wait to leave.
    pub fn queued(&self, handle: UdpHandle) -> Option<(usize, usize)> {
        let socket = self.socket(handle)?;
        Some((socket.received.held(), socket.unsent))
    }

    /// Iterates over the sockets, with their local endpoint and their peer, if connected. Visits
    /// all places.
    pub fn iter(&self) -> impl Iterator<Item = Ends> {
        let mut next = 0;
        core::iter::from_fn(move || {
            loop {
                match self.sockets.first_from(next)? {
                    Ok((index, socket)) => {
                        next = index + 1;
                        let local = Endpoint::new(socket.key.local.address(), socket.port);
                        return Some(Ends { local, remote: socket.key.remote });
                    }
                    Err(on) => next = on,
                }
            }
        })
    }

    /// Checks the invariants between calls, for simulations and tests. Visits everything.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let (mut received, mut next) = (0, 0);
        while let Some(found) = self.sockets.first_from(next) {
            match found {
                Ok((index, socket)) => {
                    received += socket.received.held();
                    self.check_socket(index, socket)?;
                    next = index + 1;
                }
                Err(on) => next = on,
            }
        }
        let out: usize = self.out.iter().map(|it| it.datagram.data.len() + Leaving::OVERHEAD).sum();
        if received + out == self.held { Ok(()) } else { Err("what waits is not what is counted") }
    }

    fn check_socket(&self, index: u32, socket: &Socket) -> Result<(), &'static str> {
        let checks = [
            (
                self.any == Some(index) || self.ports.of(socket.port).contains(&index),
                "a socket is not found at its port",
            ),
            (!socket.listed || self.news.contains(&index), "a socket has news and is in no list"),
            (
                socket.received.held() >= socket.received.len() * Received::OVERHEAD,
                "a socket holds more than it counts",
            ),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }

    #[inline]
    fn socket(&self, handle: UdpHandle) -> Option<&Socket> {
        let current = self.sockets.generation(handle.index) == handle.generation;
        self.sockets.get(handle.index).filter(|_| current)
    }
}

/// Endpoints of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Local endpoint; its address may be unspecified.
    pub local: Endpoint,
    /// Peer, if it is connected.
    pub remote: Option<Endpoint>,
}

/// Sizes of the buffers in bytes, including records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Receive buffer (`SO_RCVBUF`).
    pub recv: usize,
    /// Send buffer (`SO_SNDBUF`).
    pub send: usize,
}

/// Least size of a buffer in bytes, as on Linux.
const LEAST: usize = 2_048;
/// Number of stale events that is always tolerated.
const SPARE: usize = 64;
/// Places that an empty queue keeps.
const KEPT: usize = 64;

#[cfg(test)]
mod tests;
