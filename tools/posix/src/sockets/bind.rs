//! `bind` and `listen`, and the addresses that are free.

use alloc::collections::BTreeSet;

use whimbrel_stack::shard::{ListenError, SocketEntry};
use whimbrel_tcp::table::Families;
use whimbrel_wire::{Address, Endpoint};

use super::Sockets;
use crate::context::Context;
use crate::descriptor::{AnySocket, File};
use crate::socket::{Phase, Settings, Socket};
use crate::{Domain, Errno, Fd};

impl Sockets {
    /// `bind(2)`: port 0 draws one; with `IP_BIND_ADDRESS_NO_PORT` it is drawn by `connect`, which
    /// knows the peer and can share one with connections to others. Two sockets share a port at the same address only if both
    /// have `SO_REUSEADDR` and neither listens, or both have `SO_REUSEPORT` (but only one can
    /// listen: the next gets `EADDRINUSE`); connections that outlive their socket count.
    pub fn bind(&mut self, fd: Fd, at: Endpoint) -> Result<(), Errno> {
        let socket = match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => socket,
            AnySocket::Datagrams(socket) => return socket.bind(&mut self.cx, at),
        };
        if !matches!(socket.phase, Phase::Idle) || socket.local.is_some() {
            return Err(Errno::EINVAL);
        }
        socket.check_family(&at.addr, Errno::EINVAL)?;
        if !at.addr.is_unspecified() && !self.cx.shard.addresses().is_local(&at.addr) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if at.port == 0 && socket.settings.no_port {
            socket.local = Some(at);
            return Ok(());
        }
        let at = if at.port == 0 { self.draw(at.addr)? } else { at };
        if self.conflicts(fd, at)? {
            return Err(Errno::EADDRINUSE);
        }
        self.files.stream_mut(fd)?.occupy(&mut self.cx, at);
        Ok(())
    }

    /// `listen(2)`. As on Linux at most `backlog + 1` connections wait, but no more than 4,097, and
    /// a second call changes the backlog. An unbound socket is bound to a drawn port first.
    pub fn listen(&mut self, fd: Fd, backlog: i32) -> Result<(), Errno> {
        let socket = self.files.stream(fd)?;
        // A negative number counts as a large one.
        let queue = backlog.cast_unsigned().min(SOMAXCONN) + 1;
        let at = match (socket.phase, socket.local) {
            (Phase::Stream(_), _) => return Err(Errno::EINVAL),
            (Phase::Listening(listener), _) => {
                self.cx.shard.set_backlog(listener, queue);
                return Ok(());
            }
            (Phase::Idle, Some(local)) if local.port == 0 => self.draw(local.addr)?,
            (Phase::Idle, Some(local)) => local,
            (Phase::Idle, None) => self.draw(socket.domain.unspecified())?,
        };
        if self.conflicts(fd, at)? {
            return Err(Errno::EADDRINUSE);
        }
        let (socket, cx) = (self.files.stream_mut(fd)?, &mut self.cx);
        let listener =
            cx.shard.listen_for(at, families_of(socket), queue).map_err(|error| match error {
                ListenError::NotLocal(_) => Errno::EADDRNOTAVAIL,
                ListenError::PortZero => Errno::EINVAL,
                _ => Errno::EADDRINUSE,
            })?;
        cx.shard.set_listener_options(listener, &socket.settings.options);
        cx.shard.set_fast_open(listener, socket.settings.fast_open);
        if let Some(keys) = socket.fast_open_keys.as_deref() {
            cx.shard.set_fast_open_keys(listener, &keys.primary, keys.backup.as_ref());
        }
        socket.occupy(cx, at);
        socket.enter(cx, Phase::Listening(listener));
        cx.polls.notify(fd);
        Ok(())
    }

    /// A free port at `addr`.
    fn draw(&mut self, addr: Address) -> Result<Endpoint, Errno> {
        let Context { shard, ports, .. } = &mut self.cx;
        let lingering: BTreeSet<u16> = shard.sockets().map(|it| it.local.port).collect();
        let is_free = |port| ports.holders(port).next().is_none() && !lingering.contains(&port);
        let port = shard.draw_port(&addr, is_free).ok_or(Errno::EADDRINUSE)?;
        Ok(Endpoint::new(addr, port))
    }

    /// True if `fd` may not take `at`.
    fn conflicts(&mut self, fd: Fd, at: Endpoint) -> Result<bool, Errno> {
        let socket = self.files.stream(fd)?;
        let ends = (at.addr, socket.settings);
        let forbids = |other: &Socket| {
            let (mine, its) = (&socket.settings, &other.settings);
            let port = mine.reuse_port && its.reuse_port;
            let shared = mine.reuse_addr && its.reuse_addr || port;
            let theirs = other.local.map(|local| (local.addr, other.settings));
            let listens = matches!(other.phase, Phase::Listening(_));
            // A second listener is refused when it listens.
            theirs.is_some_and(|theirs| overlap(ends, theirs)) && (listens && !port || !shared)
        };
        let taken = self.cx.ports.holders(at.port).filter(|other| *other != fd).any(|other| {
            let other = self.files.entry(other);
            matches!(other, Some(File::Socket(AnySocket::Stream(other))) if forbids(other))
        });
        let strict = !socket.settings.reuse_addr || self.cx.ports.strict.contains(&at.port);
        Ok(taken || strict && self.is_lingered_at(at, ends))
    }

    /// True if there is a connection at `at` whose socket is closed. It walks over all connections:
    /// only sockets without `SO_REUSEADDR` come here.
    fn is_lingered_at(&mut self, at: Endpoint, mine: (Address, Settings)) -> bool {
        let Context { shard, owners, ports, .. } = &mut self.cx;
        let owned: BTreeSet<_> =
            owners.connections.keys().filter_map(|handle| shard.flow(*handle)).collect();
        let is_orphan = |entry: &SocketEntry| {
            let is_own =
                |remote| owned.contains(&whimbrel_wire::Flow { local: entry.local, remote });
            entry.local.port == at.port && entry.remote.is_some_and(|remote| !is_own(remote))
        };
        let mut orphans = shard.sockets().filter(is_orphan).peekable();
        let any = orphans.peek().is_some();
        let found = orphans.any(|it| overlap(mine, (it.local.addr, Settings::default())));
        drop(orphans);
        if !any {
            ports.strict.remove(&at.port);
        }
        found
    }
}

fn families_of(socket: &Socket) -> Families {
    match socket.domain {
        Domain::Inet6 if !socket.settings.v6_only => Families::DualStack,
        _ => Families::Own,
    }
}

/// True if a segment could match both.
fn overlap(one: (Address, Settings), other: (Address, Settings)) -> bool {
    let covers = |(wide, settings): (Address, Settings), narrow: Address| {
        let same_family = wide.family() == narrow.family();
        let dual = !wide.is_v4() && !settings.v6_only;
        wide == narrow || wide.is_unspecified() && (same_family || dual)
    };
    covers(one, other.0) || covers(other, one.0)
}

/// Longest backlog of `listen`, as Linux' `net.core.somaxconn`.
const SOMAXCONN: u32 = 4096;
