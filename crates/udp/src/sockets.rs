//! All sockets of a host.

use alloc::collections::VecDeque;

use whimbrel_base::{PortRange, ReservedPorts, Secrets, Slab};
use whimbrel_wire::{Address, Endpoint};

use crate::Counters;
use crate::datagram::{Arrived, OVERHEAD, OutgoingDatagram, Received, SendOptions};
use crate::error::{BindError, QueueError, SocketError, Undelivered};
use crate::key::{Bind, Key, Local, Sharing};
use crate::ports::{Drawing, PortTable};
use crate::socket::Socket;

/// Names a socket. A handle whose socket is closed names nothing, even after its place was taken by
/// another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UdpHandle {
    generation: u16,
    index: u32,
}

impl UdpHandle {
    /// A small number, unique among the sockets at any one time: for tables.
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// Whether the host has memory for more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Less than 90 % of `mem.budget` are held.
    Enough,
    /// As much, or more: what arrives is dropped.
    None,
}

/// The sockets of one host: their ports, and what waits on its way in and out.
#[derive(Debug)]
pub struct Sockets {
    sockets: Slab<Socket>,
    ports: PortTable,
    /// The socket for any destination: it takes what no other does, and has no port.
    any: Option<u32>,
    drawing: Drawing,
    /// What is to leave, of all sockets, in the order in which it was handed over; what a socket has in
    /// it is bounded. It leaves though its socket be closed: `send` and `close` are a program's end.
    out: VecDeque<Leaving>,
    /// Sockets whose application is to be told something, each once.
    news: VecDeque<u32>,
    /// What waits in and out, bytes.
    held: usize,
    /// What happened so far, counted.
    pub counters: Counters,
}

#[derive(Debug)]
struct Leaving {
    of: UdpHandle,
    datagram: OutgoingDatagram,
}

/// Sockets come and go.
impl Sockets {
    /// The most sockets at once. Each has a place of some 250 bytes, and what waits for it.
    pub const MOST: usize = 1 << 20;

    /// No sockets. Ephemeral ports are drawn from `range`, without those reserved.
    pub fn new(secrets: &Secrets, range: PortRange, reserved: ReservedPorts) -> Self {
        Self {
            sockets: Slab::new(),
            ports: PortTable::default(),
            any: None,
            drawing: Drawing::new(secrets, range, reserved),
            out: VecDeque::new(),
            news: VecDeque::new(),
            held: 0,
            counters: Counters::default(),
        }
    }

    /// From now on ports are drawn from `range`, without those reserved.
    pub fn set_rules(&mut self, range: PortRange, reserved: ReservedPorts) {
        self.drawing.set_rules(range, reserved);
    }

    /// A new socket, which receives what is sent there, whoever sends it.
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

    /// The socket for any destination: it receives, whatever the address and port, what finds no other
    /// socket. There is one at a time.
    pub fn bind_any(&mut self) -> Result<UdpHandle, BindError> {
        if self.any.is_some() {
            return Err(BindError::AnyInUse);
        }
        let key = Key { local: Local::Both, remote: None };
        let index = self.sockets.insert(Socket::new(key, 0, Sharing::Alone));
        self.any = Some(index);
        Ok(UdpHandle { generation: self.sockets.generation(index), index })
    }

    /// From now on a socket receives from `remote` alone, at this address of the host's if it was
    /// bound to several; what waits to be received stays. Port 0 of `remote` is nobody's.
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

    /// From now on a connected socket receives what is sent to what it was bound to, again.
    pub fn disconnect(&mut self, handle: UdpHandle) -> Result<(), BindError> {
        let socket = self.socket(handle).ok_or(BindError::Unknown)?;
        let bound = socket.bound;
        if !self.is_any(handle) {
            self.set_key(handle, bound);
        }
        Ok(())
    }

    /// Lets go of a socket. What it received is gone; what was to be sent leaves.
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
        // An error of the peer before says nothing of the next.
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

    /// A socket is gone that the list of news may still name. Where nobody asks for news such names
    /// would add up: they go once they are as many as the sockets.
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

/// What the host reports: datagrams that arrive, leave, and cannot be delivered.
impl Sockets {
    /// A datagram arrived: its socket has it, or the reason why none has, which is counted.
    pub fn deliver(&mut self, arrived: &Arrived<'_>, room: Room) -> Result<(), Undelivered> {
        self.deliver_to(self.find(&arrived.to, &arrived.from), arrived, room)
    }

    /// The same of one for an address that is not this host's: it is for [any](Sockets::bind_any), as the
    /// unspecified address stands for the host's own.
    pub fn deliver_other(&mut self, arrived: &Arrived<'_>, room: Room) -> Result<(), Undelivered> {
        self.deliver_to(self.any, arrived, room)
    }

    #[inline]
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
        socket.received.push(arrived);
        self.held += bytes;
        self.counters.in_datagrams += 1;
        Self::tell(socket, &mut self.news, index);
        Ok(())
    }

    /// Somebody on the path said this of a datagram that was sent from `from` to `to`. A socket that is
    /// connected to there is told; returns whether a socket has the port at all, without which the
    /// datagram was none of ours.
    pub fn on_error(&mut self, from: &Endpoint, to: &Endpoint, error: SocketError) -> bool {
        let Some(index) = self.find(from, to) else { return false };
        let Some(socket) = self.sockets.get_mut(index) else { return false };
        // RFC 1122 4.1.3.3: "The application is also responsible to avoid confusion from a delayed ICMP
        // error message". Whoever sends to many could not tell whom it is about: as on Linux, connected
        // sockets alone are told.
        if socket.key.remote.is_some() {
            // What calls are to fail with is not hidden by what may pass.
            if error.is_hard() || socket.error.is_none_or(|known| !known.is_hard()) {
                socket.error = Some(error);
            }
            self.counters.icmp_errors += 1;
            Self::tell(socket, &mut self.news, index);
        }
        true
    }

    /// Whose a datagram from `from` to `to` is.
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

/// What applications do with their sockets.
impl Sockets {
    /// The datagram that has waited for longest.
    pub fn recv(&mut self, handle: UdpHandle) -> Option<Received> {
        let socket = self.sockets.get_mut_of(handle.index, handle.generation)?;
        let before = socket.received.held();
        let received = socket.received.pop();
        self.held -= before - socket.received.held();
        received
    }

    /// The same, and it stays.
    pub fn peek(&self, handle: UdpHandle) -> Option<&Received> {
        self.socket(handle)?.received.first()
    }

    /// How many datagrams wait to be received.
    pub fn waiting(&self, handle: UdpHandle) -> usize {
        self.socket(handle).map_or(0, |socket| socket.received.len())
    }

    /// Hands over a datagram to be sent, if the socket has room for it; if not, news of it follow when
    /// it has.
    pub fn queue(
        &mut self,
        handle: UdpHandle,
        datagram: OutgoingDatagram,
        room: Room,
    ) -> Result<(), QueueError> {
        let socket = self.sockets.get_mut_of(handle.index, handle.generation);
        let socket = socket.ok_or(QueueError::Unknown)?;
        if socket.unsent >= socket.most_unsent {
            socket.awaits_room = true;
            self.counters.sndbuf_errors += 1;
            return Err(QueueError::Full { most: socket.most_unsent });
        }
        if room == Room::None {
            self.counters.mem_errors += 1;
            return Err(QueueError::Memory);
        }
        let bytes = datagram.data.len() + OVERHEAD;
        socket.unsent += bytes;
        self.held += bytes;
        self.out.push_back(Leaving { of: handle, datagram });
        Ok(())
    }

    /// What was last heard of what the socket had sent; it is forgotten by that (`SO_ERROR`).
    pub fn take_error(&mut self, handle: UdpHandle) -> Option<SocketError> {
        self.sockets.get_mut_of(handle.index, handle.generation)?.error.take()
    }

    /// How many bytes may wait to be received, their records included (`SO_RCVBUF`, 2 KiB at least).
    pub fn set_recv_size(&mut self, handle: UdpHandle, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.received.set_most(bytes.max(LEAST));
        }
    }

    /// How many bytes may wait to be sent, their records included (`SO_SNDBUF`, 2 KiB at least).
    pub fn set_send_size(&mut self, handle: UdpHandle, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.most_unsent = bytes.max(LEAST);
        }
    }

    /// What the socket's packets say from now on, unless a datagram says otherwise.
    pub fn set_options(&mut self, handle: UdpHandle, options: SendOptions) {
        if let Some(socket) = self.sockets.get_mut_of(handle.index, handle.generation) {
            socket.options = options;
        }
    }
}

/// What to do next.
impl Sockets {
    /// The next datagram that is to leave. Its socket has room for as much more, and is told once half
    /// of its room is free, if it waits for that.
    pub fn next_out(&mut self) -> Option<OutgoingDatagram> {
        let Leaving { of, datagram } = self.out.pop_front()?;
        let bytes = datagram.data.len() + OVERHEAD;
        self.held -= bytes;
        if self.out.is_empty() && self.out.capacity() > KEPT {
            self.out = VecDeque::new();
        }
        if let Some(socket) = self.sockets.get_mut_of(of.index, of.generation) {
            socket.unsent -= bytes;
            if socket.awaits_room && socket.unsent <= socket.most_unsent / 2 {
                socket.awaits_room = false;
                Self::tell(socket, &mut self.news, of.index);
            }
        }
        Some(datagram)
    }

    /// How many datagrams are to leave.
    pub fn unsent(&self) -> usize {
        self.out.len()
    }

    /// True if something is to leave.
    pub fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// The next socket that has something to receive, room to send again, or an error. News are hints,
    /// merged while nobody asks.
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

/// What is known of the sockets.
impl Sockets {
    /// How many sockets there are.
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

    /// Where a socket receives; port 0 stands for all of them.
    pub fn local(&self, handle: UdpHandle) -> Option<Endpoint> {
        let socket = self.socket(handle)?;
        Some(Endpoint::new(socket.key.local.address(), socket.port))
    }

    /// At which addresses it receives.
    pub fn receives_at(&self, handle: UdpHandle) -> Option<Local> {
        Some(self.socket(handle)?.key.local)
    }

    /// Whom it is connected to.
    pub fn remote(&self, handle: UdpHandle) -> Option<Endpoint> {
        self.socket(handle)?.key.remote
    }

    /// What its packets say.
    pub fn options(&self, handle: UdpHandle) -> Option<SendOptions> {
        Some(self.socket(handle)?.options)
    }

    /// How many bytes may wait to be received, and to be sent.
    pub fn sizes(&self, handle: UdpHandle) -> Option<Sizes> {
        let socket = self.socket(handle)?;
        Some(Sizes { recv: socket.received.most(), send: socket.most_unsent })
    }

    /// True if the socket would take a datagram to be sent.
    pub fn is_writable(&self, handle: UdpHandle) -> bool {
        self.socket(handle).is_some_and(|socket| socket.unsent < socket.most_unsent)
    }

    /// True if something [hard](SocketError::is_hard) waits that was heard of what the socket had sent.
    pub fn has_error(&self, handle: UdpHandle) -> bool {
        let error = self.socket(handle).and_then(|socket| socket.error);
        error.is_some_and(|error| error.is_hard())
    }

    /// What waits in and out, bytes.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Everything that is held, bytes: what waits, and the sockets with their ports.
    pub fn memory(&self) -> usize {
        self.held + self.sockets.len() * size_of::<Socket>() + self.ports.memory()
    }

    /// Some socket, if there is any. It walks.
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

    /// Every socket: where it receives, and from whom alone if it is connected. It walks all places.
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

    /// What must hold between any two calls: for simulations and tests. Walks everything.
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
        let out: usize = self.out.iter().map(|it| it.datagram.data.len() + OVERHEAD).sum();
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
                socket.received.held() >= socket.received.len() * OVERHEAD,
                "a socket holds more than it counts",
            ),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }

    fn socket(&self, handle: UdpHandle) -> Option<&Socket> {
        let current = self.sockets.generation(handle.index) == handle.generation;
        self.sockets.get(handle.index).filter(|_| current)
    }
}

/// The ends of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Where it receives; the address may be unspecified.
    pub local: Endpoint,
    /// From whom alone, if it is connected.
    pub remote: Option<Endpoint>,
}

/// How many bytes may wait, their records included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// To be received (`SO_RCVBUF`).
    pub recv: usize,
    /// To be sent (`SO_SNDBUF`).
    pub send: usize,
}

/// The least that a buffer can be made: Linux' is as much.
const LEAST: usize = 2_048;
/// Names of the gone that never matter.
const SPARE: usize = 64;
/// Places that an empty queue keeps.
const KEPT: usize = 64;

#[cfg(test)]
mod tests;
