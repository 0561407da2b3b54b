//! `accept`: gives a connection a descriptor.

use alloc::boxed::Box;

use whimbrel_wire::Endpoint;

use super::Sockets;
use crate::blocking::Blocking;
use crate::descriptor::{AnySocket, File};
use crate::socket::{Phase, Progress, Settings, Socket, Stream};
use crate::{BlockedOn, Errno, Fd, Outcome, SocketFlags};

/// An accepted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Descriptor of the new socket.
    pub fd: Fd,
    /// Address and port of the peer.
    pub peer: Endpoint,
}

impl Sockets {
    /// `accept4(2)`; without flags `accept(2)`. The connection inherits the listener's options, but
    /// not its descriptor's flags.
    pub fn accept(&mut self, fd: Fd, flags: SocketFlags) -> Outcome<Accepted> {
        match self.try_accept(fd, flags) {
            Ok(outcome) => outcome,
            Err(errno) => Outcome::fail(errno),
        }
    }

    fn try_accept(&mut self, fd: Fd, flags: SocketFlags) -> Result<Outcome<Accepted>, Errno> {
        let blocking = Blocking::of(flags)?;
        let parent = self.files.stream(fd)?;
        let (domain, settings, waits) = (parent.domain, parent.settings, parent.blocking);
        let Phase::Listening(listener) = parent.phase else { return Err(Errno::EINVAL) };
        self.files.check_room()?;
        let Some(handle) = self.cx.shard.accept(listener) else {
            return Ok(waits.wait_or(BlockedOn::Accepted(fd), Errno::EAGAIN));
        };
        let flow = self.cx.shard.flow(handle).ok_or(Errno::ECONNABORTED)?;
        let cx = &mut self.cx;
        let fd = self.files.open(|fd| {
            let mut socket = Socket::new(fd, domain, blocking);
            socket.settings = Settings { fast_open: 0, ..settings };
            socket.occupy(cx, flow.local);
            socket.enter(cx, Phase::Stream(Stream::new(handle, Progress::Connected)));
            File::Socket(AnySocket::Stream(Box::new(socket)))
        })?;
        // It inherited the options of the time when it was complete; they may have changed.
        self.cx.shard.set_options(handle, &settings.options);
        Ok(Outcome::Done(Ok(Accepted { fd, peer: flow.remote })))
    }
}
