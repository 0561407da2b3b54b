//! `connect`, blocking or not, and how it went.

use bytes::Bytes;
use whimbrel_stack::shard::ConnectError;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_wire::Endpoint;

use super::bind::check_family;
use super::fast_open::Deferral;
use super::readiness::{is_opening, is_over};
use super::{Sockets, wait_or};
use crate::socket::{Phase, Progress, Stream};
use crate::{Errno, Fd, Outcome, Wait};

impl Sockets {
    /// `connect(2)`. Non-blocking: `EINPROGRESS`, then `EALREADY`; once established 0 for the
    /// first call that hears of it, then `EISCONN`. A failure is told once, by the next call or
    /// by `SO_ERROR`; then the socket can connect again.
    pub fn connect(&mut self, fd: Fd, to: Endpoint) -> Outcome<()> {
        if self.is_datagrams(fd) {
            return Outcome::Done(self.connect_datagrams(fd, to));
        }
        match self.get(fd).map(|socket| socket.phase) {
            Err(errno) => Outcome::fail(errno),
            Ok(Phase::Listening(_)) => Outcome::fail(Errno::EISCONN),
            Ok(Phase::Stream(stream)) => match stream.progress {
                Progress::Connected => Outcome::fail(Errno::EISCONN),
                Progress::Connecting => self.go_on_connecting(fd, Errno::EALREADY),
            },
            Ok(Phase::Idle) => match self.defer_connecting(fd, to) {
                Ok(Deferral::Deferred) => Outcome::Done(Ok(())),
                Ok(Deferral::Begun) => self.go_on_connecting(fd, Errno::EINPROGRESS),
                Err(errno) => Outcome::fail(errno),
            },
        }
    }

    /// `connect(2)` to `AF_UNSPEC`: the connection is reset, or listening ends, and the socket can
    /// be used anew.
    pub fn disconnect(&mut self, fd: Fd) -> Result<(), Errno> {
        if self.is_datagrams(fd) {
            return self.disconnect_datagrams(fd);
        }
        let reset = self.connection(fd)?.is_some_and(|(_, snapshot)| needs_reset(&snapshot));
        let phase = self.get(fd)?.phase;
        match phase {
            Phase::Idle => {}
            Phase::Listening(listener) => self.shard.close_listener(listener),
            Phase::Stream(stream) => self.shard.abort(stream.handle),
        }
        self.forget(fd);
        let socket = self.get_mut(fd)?;
        socket.deferred = None;
        socket.error = reset.then_some(Errno::ECONNRESET);
        Ok(())
    }

    /// Connects; the SYN is to bring of `text` what it can, if there is any (Fast Open).
    pub(super) fn start_connecting(
        &mut self,
        fd: Fd,
        to: Endpoint,
        text: Option<&mut Bytes>,
    ) -> Result<(), Errno> {
        let socket = self.get(fd)?;
        check_family(socket, &to.addr, Errno::ENETUNREACH)?;
        let (local, settings) = (socket.local, socket.settings);
        let options = &settings.options;
        let opened = match text {
            Some(text) => self.shard.connect_fast(to, local, options, text),
            None => self.shard.connect_with(to, local, options),
        };
        let handle = opened.map_err(|error| connect_errno(&error))?;
        self.enter(fd, Phase::Stream(Stream::new(handle, Progress::Connecting)));
        if local.is_none_or(|local| local.port == 0)
            && let Some(flow) = self.shard.flow(handle)
        {
            self.occupy(fd, flow.local);
            if let Some(stream) = self.stream_mut(fd) {
                stream.drew_port = true;
                stream.bound = local;
            }
        }
        self.notify(fd);
        Ok(())
    }

    pub(super) fn go_on_connecting(&mut self, fd: Fd, under_way: Errno) -> Outcome<()> {
        let (blocking, connection) = match (self.get(fd), self.connection(fd)) {
            (Ok(socket), Ok(connection)) => (socket.blocking, connection),
            (Err(errno), _) | (_, Err(errno)) => return Outcome::fail(errno),
        };
        match connection {
            Some((_, snapshot)) if is_opening(&snapshot) => {
                wait_or(blocking, Wait::Connected(fd), under_way)
            }
            Some((_, snapshot)) if !is_over(&snapshot) => {
                if let Some(stream) = self.stream_mut(fd) {
                    stream.progress = Progress::Connected;
                }
                Outcome::Done(Ok(()))
            }
            _ => {
                let errno = self.take_error(fd).unwrap_or(Errno::ECONNABORTED);
                self.give_up(fd);
                Outcome::fail(errno)
            }
        }
    }

    /// The attempt failed: the socket is as before it.
    fn give_up(&mut self, fd: Fd) {
        if let Ok(Phase::Stream(stream)) = self.get(fd).map(|socket| socket.phase) {
            self.shard.close(stream.handle);
            self.forget(fd);
        }
    }

    /// The connection or listener of `fd` is gone, and with it the port that was drawn for it.
    pub(super) fn forget(&mut self, fd: Fd) {
        let Ok(socket) = self.get_mut(fd) else { return };
        let phase = core::mem::replace(&mut socket.phase, Phase::Idle);
        if let Phase::Stream(Stream { drew_port: true, bound, .. }) = phase
            && let Some(local) = core::mem::replace(&mut socket.local, bound)
        {
            self.bound.remove(&(local.port, fd));
        }
        self.leave(phase);
        self.notify(fd);
    }
}

/// Where Linux' `tcp_disconnect` leaves `ECONNRESET` behind.
const fn needs_reset(snapshot: &Snapshot) -> bool {
    !is_over(snapshot) && !matches!(snapshot.state, State::Closing | State::LastAck)
}

fn connect_errno(error: &ConnectError) -> Errno {
    match error {
        // Linux' `EADDRNOTAVAIL` from `__inet_check_established`: the 4-tuple is taken.
        ConnectError::InUse { .. }
        | ConnectError::PortsExhausted { .. }
        | ConnectError::NotLocal(_)
        | ConnectError::NoSource(_) => Errno::EADDRNOTAVAIL,
        ConnectError::TooMany { .. } => Errno::ENOBUFS,
        ConnectError::NotAPeer(peer) if peer.port == 0 => Errno::EADDRNOTAVAIL,
        // No route, a group of hosts, or this host itself, to which a shard has no way.
        _ => Errno::ENETUNREACH,
    }
}
