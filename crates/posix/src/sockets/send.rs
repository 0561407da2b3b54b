//! `send` and its kin: they differ in how they name their buffers, not in what they do.

use whimbrel_stack::Handle;
use whimbrel_tcp::conn::{Cork, Snapshot};

use super::readiness::{is_opening, is_over};
use super::{Sockets, wait_or};
use crate::socket::{Blocking, Stream};
use crate::{Errno, Fd, MsgFlags, Outcome, Outgoing, Wait};

impl Sockets {
    /// `send(2)`; without flags `write(2)` and `writev(2)`; `sendto` and `sendmsg` ignore their
    /// address on a stream. The result is how many bytes were taken: all, unless the socket does
    /// not block. With `MSG_OOB` the last byte is urgent. `EPIPE` would come with SIGPIPE unless `flags` has `MSG_NOSIGNAL`: there are no
    /// signals here. For `MSG_FASTOPEN` see [`Sockets::send_to`].
    pub fn send(&mut self, fd: Fd, out: &mut Outgoing, flags: MsgFlags) -> Outcome<usize> {
        self.send_to(fd, out, flags, None)
    }

    /// On a socket that is connected, or is about to be.
    pub(super) fn send_on(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
    ) -> Outcome<usize> {
        let (stream, snapshot) = match self.check_send(fd, flags) {
            Ok(Some(connection)) => connection,
            Ok(None) => return self.refuse_send(fd, out),
            Err(errno) => return Outcome::fail(errno),
        };
        let blocking = match self.blocking(fd, flags) {
            Ok(blocking) => blocking,
            Err(errno) => return Outcome::fail(errno),
        };
        if is_opening(&snapshot) && !stream.shut_write {
            return wait_or(blocking, Wait::Connected(fd), Errno::EAGAIN);
        }
        if !may_send(&stream, &snapshot) {
            return self.refuse_send(fd, out);
        }
        self.cork(fd, stream.handle, flags);
        let taken = if flags.has(MsgFlags::MSG_OOB) {
            self.shard.send_urgent(stream.handle, &mut out.rest)
        } else {
            self.shard.send(stream.handle, &mut out.rest)
        };
        match taken {
            Ok(taken) => out.sent += taken,
            Err(_) => return self.refuse_send(fd, out),
        }
        if out.rest.is_empty() {
            return Outcome::Done(Ok(out.sent));
        }
        match blocking {
            Blocking::No if out.sent > 0 => Outcome::Done(Ok(out.sent)),
            _ => wait_or(blocking, Wait::Writable(fd), Errno::EAGAIN),
        }
    }

    fn check_send(&self, fd: Fd, flags: MsgFlags) -> Result<Option<(Stream, Snapshot)>, Errno> {
        let connection = self.connection(fd)?;
        let known = MsgFlags::MSG_DONTWAIT
            | MsgFlags::MSG_NOSIGNAL
            | MsgFlags::MSG_MORE
            | MsgFlags::MSG_OOB;
        if !flags.without(known).is_empty() {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(connection)
    }

    /// Nothing can be sent: what was taken before counts, then a pending error, then `EPIPE`.
    fn refuse_send(&mut self, fd: Fd, out: &Outgoing) -> Outcome<usize> {
        if out.sent > 0 {
            return Outcome::Done(Ok(out.sent));
        }
        Outcome::fail(self.take_error(fd).unwrap_or(Errno::EPIPE))
    }

    /// `MSG_MORE` corks for this call and until the next; `TCP_CORK` until it is pulled.
    fn cork(&mut self, fd: Fd, handle: Handle, flags: MsgFlags) {
        let more = flags.has(MsgFlags::MSG_MORE);
        let corked =
            more || self.get(fd).is_ok_and(|socket| socket.settings.options.cork == Cork::On);
        if let Some(stream) = self.stream_mut(fd).filter(|stream| stream.corked != corked) {
            stream.corked = corked;
            self.shard.set_cork(handle, if corked { Cork::On } else { Cork::Off });
        }
    }
}

fn may_send(stream: &Stream, snapshot: &Snapshot) -> bool {
    !stream.shut_write && !is_over(snapshot)
}
