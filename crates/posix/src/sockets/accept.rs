//! `accept`: a connection becomes a descriptor.

use whimbrel_wire::Endpoint;

use super::{Sockets, blocking_of, wait_or};
use crate::descriptor::File;
use crate::socket::{Blocking, Phase, Progress, Settings, Socket, Stream};
use crate::{Errno, Fd, Outcome, SocketFlags, Wait};

/// A connection that was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The descriptor of the new socket.
    pub fd: Fd,
    /// The address and port of the peer.
    pub peer: Endpoint,
}

impl Sockets {
    /// `accept4(2)`; without flags `accept(2)`. The options of the listener hold for the
    /// connection, its descriptor's flags do not.
    pub fn accept(&mut self, fd: Fd, flags: SocketFlags) -> Outcome<Accepted> {
        let blocking = match blocking_of(flags).and_then(|new| Ok((new, self.get(fd)?.blocking))) {
            Ok((new, listener)) => (new, listener),
            Err(errno) => return Outcome::fail(errno),
        };
        let (new, waits) = blocking;
        match self.try_accept(fd, new) {
            Ok(Some(accepted)) => Outcome::Done(Ok(accepted)),
            Ok(None) => wait_or(waits, Wait::Accepted(fd), Errno::EAGAIN),
            Err(errno) => Outcome::fail(errno),
        }
    }

    fn try_accept(&mut self, fd: Fd, blocking: Blocking) -> Result<Option<Accepted>, Errno> {
        let socket = self.get(fd)?;
        let (domain, settings) = (socket.domain, socket.settings);
        let Phase::Listening(listener) = socket.phase else { return Err(Errno::EINVAL) };
        self.files.check_room()?;
        let Some(handle) = self.shard.accept(listener) else { return Ok(None) };
        let flow = self.shard.flow(handle).ok_or(Errno::ECONNABORTED)?;
        let mut socket = Socket::new(domain, blocking);
        socket.settings = Settings { fast_open: 0, ..settings };
        let fd = self.files.open(File::Socket(socket))?;
        self.occupy(fd, flow.local);
        self.enter(fd, Phase::Stream(Stream::new(handle, Progress::Connected)));
        // It inherited what held when it became complete; since then other things may.
        self.shard.set_options(handle, &settings.options);
        Ok(Some(Accepted { fd, peer: flow.remote }))
    }
}
