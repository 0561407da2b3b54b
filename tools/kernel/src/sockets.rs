//! The kernel's own TCP, non-blocking: the baseline that a stack is compared with.
//!
//! Many sockets under one epoll, with the calls and the events that a shard has, so that the same
//! application runs over either. Short reads are copied once more than in a native program: from a buffer
//! into the returned bytes, which may be held for long (`read_buffer.rs`).

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV6};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use whimbrel_io::descriptors;
use whimbrel_posix::SocketOption;
use whimbrel_wire::{Address, Endpoint};

use crate::option;
use epoll::Epoll;
use read_buffer::ReadBuffer;

use shortage::Shortage;

pub use info::KernelInfo;

mod epoll;
mod info;
mod read_buffer;
mod shortage;

/// Sockets of the kernel.
#[derive(Debug)]
pub struct KernelSockets {
    epoll: Epoll,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Those that were closed keep their place.
    listeners: Vec<Option<Socket>>,
    ready: VecDeque<KernelEvent>,
    buffer: ReadBuffer,
    shortage: Shortage,
}

/// Identifies a socket; a stale value identifies none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketId {
    index: u32,
    generation: u32,
}

impl SocketId {
    /// Returns a small number, unique among the sockets that exist at a time.
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// Identifies a listener of one set of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelListener(u32);

/// An event. Events are hints: act until nothing is left.
#[derive(Debug)]
pub enum KernelEvent {
    /// Connections may wait to be accepted.
    Accepted(KernelListener),
    /// A connection opened here is established.
    Connected(SocketId),
    /// There may be data to read, or the end of the stream.
    Readable(SocketId),
    /// There may be room to write.
    Writable(SocketId),
    /// A connection opened here failed.
    Failed(SocketId, io::Error),
    /// An open connection failed, as by a reset: what came before can still be read, and then the error.
    Broken(SocketId),
}

/// Result of a read.
#[derive(Debug)]
pub enum Received {
    /// Bytes in order, at least one.
    Data(Bytes),
    /// No data; an event of [`KernelSockets::poll_event`] reports the next.
    Pending,
    /// The peer closed its direction.
    End,
}

/// Options set on a socket before it connects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KernelOptions {
    /// Local address; `None` if the kernel chooses.
    pub local: Option<Address>,
    /// True if small segments do not wait for earlier ones (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Limit of bytes of text in a segment (`TCP_MAXSEG`).
    pub mss: Option<u16>,
    /// Name of the congestion control (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Sizes of its buffers in bytes (`SO_SNDBUF`, `SO_RCVBUF`); the kernel uses twice as much
    /// memory.
    pub buffers: Option<(u32, u32)>,
    /// Most bytes of text per second (`SO_MAX_PACING_RATE`); from 4 GB/s on, no limit.
    pub max_pacing_rate: Option<NonZeroU64>,
    /// Number of the interface in whose zone a link-local address lies (`sin6_scope_id`); 0: none.
    pub zone: u32,
}

#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    socket: Option<Socket>,
    opening: bool,
    /// True if it was opened here: its SYN counts as acknowledged data.
    active: bool,
    /// True if there may be something to read: nothing said that all has been read.
    readable: bool,
    /// True if the peer's end, or an error, is behind the data.
    ended: bool,
}

impl KernelSockets {
    /// Creates an empty set. Fails if the system has no descriptor for its epoll.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            entries: Vec::new(),
            free: Vec::new(),
            listeners: Vec::new(),
            ready: VecDeque::new(),
            buffer: ReadBuffer::new(),
            shortage: Shortage::default(),
        })
    }

    /// Listens at an address of this machine; port 0 selects a free port. Returns the local
    /// endpoint.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> io::Result<Endpoint> {
        self.listen_on(socket(at)?, at, backlog)
    }

    /// Listens like [`KernelSockets::listen`], together with other sockets of this user that do the
    /// same: the kernel gives each connection to one of them (`SO_REUSEPORT`).
    pub fn listen_beside_others(&mut self, at: Endpoint, backlog: u32) -> io::Result<Endpoint> {
        let socket = socket(at)?;
        socket.set_reuse_port(true)?;
        self.listen_on(socket, at, backlog)
    }

    /// Takes over a socket that listens already, such as one of a socket unit. Returns its local endpoint.
    ///
    /// # Errors
    ///
    /// It is no listening TCP socket, or the kernel has no memory for it.
    pub fn adopt_listener(&mut self, socket: OwnedFd) -> io::Result<Endpoint> {
        let socket = Socket::from(socket);
        let refused = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        match (socket.local_addr()?.as_socket(), socket.r#type()?) {
            (Some(_), Type::STREAM) if socket.is_listener()? => {}
            (Some(_), Type::STREAM) => return refused("a passed socket does not listen"),
            _ => return refused("a passed descriptor is no TCP socket"),
        }
        socket.set_nonblocking(true)?;
        self.add_listener(socket)
    }

    /// Ends all listeners. Connections that were not accepted are reset, unless another process has the same
    /// socket.
    pub fn close_listeners(&mut self) {
        self.listeners.iter_mut().for_each(|listener| *listener = None);
    }

    fn listen_on(&mut self, socket: Socket, at: Endpoint, backlog: u32) -> io::Result<Endpoint> {
        socket.set_reuse_address(true)?;
        socket.bind(&address(at))?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        self.add_listener(socket)
    }

    fn add_listener(&mut self, socket: Socket) -> io::Result<Endpoint> {
        self.epoll.add(socket.as_fd(), LISTENER | self.listeners.len() as u64)?;
        let local = socket.local_addr()?.as_socket();
        self.listeners.push(Some(socket));
        local.map(Endpoint::from).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Starts a connection.
    pub fn connect(&mut self, remote: Endpoint, options: &KernelOptions) -> io::Result<SocketId> {
        let socket = prepared(remote, options)?;
        begin(&socket, remote, options.zone)?;
        self.take_in(socket, true)
    }

    /// Starts a connection by TCP Fast Open. If the kernel has the server's cookie, the front of
    /// `first` is sent with the SYN and removed; otherwise the SYN requests a cookie. The sent part
    /// may reach the server's application twice.
    pub fn connect_fast(
        &mut self,
        remote: Endpoint,
        options: &KernelOptions,
        first: &mut Bytes,
    ) -> io::Result<SocketId> {
        let socket = prepared(remote, options)?;
        let on = 1_i32.to_ne_bytes();
        option::set(&socket, SocketOption::FastOpenConnect, &on)?;
        begin(&socket, remote, options.zone)?;
        // With a cookie the SYN waits for the first write. Without one nothing is taken yet, and
        // the socket reports other errors later.
        if let Ok(taken) = (&socket).write(first) {
            first.advance(taken);
        }
        self.take_in(socket, true)
    }

    /// Connects to a stream socket in the file system. It is open when this returns; if its backlog is
    /// full, the error is [`io::ErrorKind::WouldBlock`], and no event reports when there is room.
    pub fn connect_unix(&mut self, path: &Path) -> io::Result<SocketId> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
        socket.connect(&SockAddr::unix(path)?)?;
        self.take_in(socket, false)
    }

    /// Accepts the next connection of a listener. If the system lacks a descriptor or memory, the
    /// connection waits: an event reports when to try again, and [`KernelSockets::take_shortage`]
    /// the reason.
    pub fn accept(&mut self, listener: KernelListener) -> io::Result<SocketId> {
        let accepted = self.accept_now(listener);
        if let Err(error) = &accepted
            && is_shortage(error)
        {
            self.shortage.note(listener, error);
        }
        accepted
    }

    fn accept_now(&mut self, KernelListener(listener): KernelListener) -> io::Result<SocketId> {
        let listener =
            self.listeners.get(listener as usize).and_then(Option::as_ref).ok_or_else(stale)?;
        let (socket, _) = loop {
            match listener.accept() {
                // The peer has gone before its turn: others may wait behind it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                accepted => break accepted?,
            }
        };
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        self.take_in(socket, false)
    }

    /// Returns the error because of which connections wait to be accepted, if it was not returned
    /// yet.
    pub fn take_shortage(&mut self) -> Option<io::Error> {
        self.shortage.unreported.take()
    }

    /// Returns when to poll again even if the descriptor is not readable: while connections wait
    /// for a descriptor, which another part of the process or the machine may release.
    pub fn patience(&self) -> Option<Duration> {
        self.shortage.patience()
    }

    /// Writes from the front of `data`; returns the number of bytes written.
    pub fn send(&mut self, id: SocketId, data: &mut Bytes) -> io::Result<usize> {
        let mut sent = 0;
        while !data.is_empty() {
            match self.socket(id)?.write(data) {
                // epoll(7): a stream socket that takes less than was offered is full.
                Ok(count) => {
                    sent = count;
                    data.advance(count);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Reads received data without waiting; the rest stays for the next call.
    pub fn recv(&mut self, id: SocketId) -> io::Result<Received> {
        let entry = self.entries.get_mut(id.index as usize);
        let entry = entry.filter(|entry| entry.generation == id.generation).ok_or_else(stale)?;
        let socket = entry.socket.as_ref().ok_or_else(stale)?;
        while entry.readable {
            match self.buffer.read(socket) {
                Ok(bytes) if bytes.is_empty() => return Ok(Received::End),
                Ok(bytes) => {
                    // epoll(7): a stream socket that gives less than was asked for is exhausted. It
                    // takes no second call to see that, unless the end is behind it already.
                    entry.readable = bytes.len() == ReadBuffer::LEN || entry.ended;
                    return Ok(Received::Data(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => entry.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Received::Pending)
    }

    /// Sends FIN; reading goes on.
    pub fn shutdown(&mut self, id: SocketId) {
        if let Ok(socket) = self.socket(id) {
            // This fails only if the connection is over already.
            let _ = socket.shutdown(std::net::Shutdown::Write);
        }
    }

    /// Closes the socket: sent data is delivered, then FIN.
    pub fn close(&mut self, id: SocketId) {
        drop(self.take_out(id));
    }

    /// Resets the connection: undelivered data is lost.
    pub fn abort(&mut self, id: SocketId) {
        if let Some(socket) = self.take_out(id) {
            // If this fails, the socket is closed the ordinary way.
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
    }

    /// Returns the next event; polls the kernel when none is left.
    pub fn poll_event(&mut self) -> io::Result<Option<KernelEvent>> {
        if self.ready.is_empty() {
            self.ask()?;
            self.ready.extend(self.shortage.due().map(KernelEvent::Accepted));
        }
        Ok(self.ready.pop_front())
    }

    /// Returns the kernel's data about a connection. A SYN sent here does not count as acknowledged
    /// data.
    pub fn info(&self, id: SocketId) -> io::Result<KernelInfo> {
        let info = option::get(self.socket(id)?, SocketOption::Info)?;
        let info = KernelInfo::parse(&info);
        let syn = self.entries.get(id.index as usize).is_some_and(|entry| entry.active);
        Ok(KernelInfo { acked: info.acked.saturating_sub(syn.into()), ..info })
    }

    /// Sets the options on an accepted connection that can still be set: all but its address and
    /// the size of its segments.
    pub fn adjust(&self, id: SocketId, options: &KernelOptions) -> io::Result<()> {
        set(self.socket(id)?, options)
    }

    /// Returns the local endpoint of a connection.
    pub fn local(&self, id: SocketId) -> io::Result<Endpoint> {
        let local = self.socket(id)?.local_addr()?.as_socket();
        local.map(Endpoint::from).ok_or_else(stale)
    }

    /// Returns the remote endpoint of a connection.
    pub fn remote(&self, id: SocketId) -> io::Result<Endpoint> {
        let remote = self.socket(id)?.peer_addr()?.as_socket();
        remote.map(Endpoint::from).ok_or_else(stale)
    }

    fn ask(&mut self) -> io::Result<()> {
        let Self { epoll, entries, ready, .. } = self;
        epoll.poll(|readiness| {
            let index = readiness.token as u32;
            if readiness.token & LISTENER != 0 {
                ready.push_back(KernelEvent::Accepted(KernelListener(index)));
                return;
            }
            let Some(entry) = entries.get_mut(index as usize) else { return };
            let id = SocketId { index, generation: entry.generation };
            entry.readable |= readiness.readable;
            entry.ended |= readiness.ended;
            if entry.opening && readiness.writable {
                entry.opening = false;
                let socket = entry.socket.as_ref().filter(|_| readiness.failed);
                let error = socket.and_then(|socket| socket.take_error().ok()?);
                let open = error.is_none();
                ready.push_back(match error {
                    Some(error) => KernelEvent::Failed(id, error),
                    None => KernelEvent::Connected(id),
                });
                if open && readiness.readable {
                    ready.push_back(KernelEvent::Readable(id));
                }
                return;
            }
            if readiness.readable {
                ready.push_back(KernelEvent::Readable(id));
            }
            if readiness.writable {
                ready.push_back(KernelEvent::Writable(id));
            }
            if readiness.failed {
                ready.push_back(KernelEvent::Broken(id));
            }
        })
    }

    fn socket(&self, id: SocketId) -> io::Result<&Socket> {
        let entry = self.entries.get(id.index as usize);
        let entry = entry.filter(|entry| entry.generation == id.generation);
        entry.and_then(|entry| entry.socket.as_ref()).ok_or_else(stale)
    }

    fn take_in(&mut self, socket: Socket, opening: bool) -> io::Result<SocketId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.entries.push(Entry::default());
                self.entries.len() as u32 - 1
            }
        };
        let Some(entry) = self.entries.get_mut(index as usize) else { return Err(stale()) };
        if let Err(error) = self.epoll.add(socket.as_fd(), index.into()) {
            self.free.push(index);
            return Err(error);
        }
        entry.socket = Some(socket);
        (entry.opening, entry.active) = (opening, opening);
        // What comes to one that opens is reported.
        (entry.readable, entry.ended) = (!opening, false);
        Ok(SocketId { index, generation: entry.generation })
    }

    fn take_out(&mut self, id: SocketId) -> Option<Socket> {
        let entry = self.entries.get_mut(id.index as usize);
        let entry = entry.filter(|entry| entry.generation == id.generation)?;
        let socket = entry.socket.take()?;
        self.shortage.next = None;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(socket)
    }
}

impl AsFd for KernelSockets {
    /// Becomes readable while [`KernelSockets::poll_event`] has an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn socket(of_family: Endpoint) -> io::Result<Socket> {
    let domain = if of_family.addr.is_v4() { Domain::IPV4 } else { Domain::IPV6 };
    Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
}

/// Creates a socket for a connection to `remote` with these options.
fn prepared(remote: Endpoint, options: &KernelOptions) -> io::Result<Socket> {
    let socket = socket(remote)?;
    set(&socket, options)?;
    if let Some(mss) = options.mss {
        socket.set_tcp_mss(mss.into())?;
    }
    if let Some(local) = options.local {
        // A local port chosen together with the peer may be in use by a connection to another peer.
        let on = 1_i32.to_ne_bytes();
        option::set(&socket, SocketOption::BindAddressNoPort, &on)?;
        socket.bind(&address_in(Endpoint::new(local, 0), options.zone))?;
    }
    Ok(socket)
}

/// Sets the options that can be set at any time.
fn set(socket: &Socket, options: &KernelOptions) -> io::Result<()> {
    socket.set_tcp_nodelay(options.no_delay)?;
    if let Some(name) = &options.congestion {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    if let Some((send, recv)) = options.buffers {
        socket.set_send_buffer_size(send as usize)?;
        socket.set_recv_buffer_size(recv as usize)?;
    }
    if let Some(rate) = options.max_pacing_rate {
        // In 32 bits, which any kernel takes; of them all ones are no limit.
        let rate = u32::try_from(rate.get()).unwrap_or(u32::MAX);
        option::set(socket, SocketOption::MaxPacingRate, &rate.to_ne_bytes())?;
    }
    Ok(())
}

/// Starts the connection.
fn begin(socket: &Socket, remote: Endpoint, zone: u32) -> io::Result<()> {
    match socket.connect(&address_in(remote, zone)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        // An open connection is reported like one that opens later.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn address(end: Endpoint) -> SockAddr {
    address_in(end, 0)
}

/// Returns the socket address of `end`, with the zone of an interface for IPv6.
fn address_in(end: Endpoint, zone: u32) -> SockAddr {
    match SocketAddr::new(end.addr.to_ip(), end.port) {
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, zone).into(),
        v4 => v4.into(),
    }
}

/// True if a later call may succeed, after the system has released resources.
fn is_shortage(error: &io::Error) -> bool {
    descriptors::are_used_up(error)
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC))
}

fn stale() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}

/// Flag in the tokens of listeners.
const LISTENER: u64 = 1 << 32;

#[cfg(test)]
mod tests;
