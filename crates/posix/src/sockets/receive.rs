//! `recv` and its kin: they differ in how they name their buffers, not in what they do.

use bytes::Bytes;
use whimbrel_stack::{Handle, Recv};

use super::readiness::{is_opening, is_over};
use super::{Sockets, wait_or};
use crate::socket::Blocking;
use crate::transfer::Keep;
use crate::{Errno, Fd, Incoming, MsgFlags, Outcome, Wait};

impl Sockets {
    /// `recv(2)`; without flags `read(2)` and `readv(2)`. `recvfrom` and `recvmsg` tell no
    /// address on a stream. Received bytes are in `into`; the result is their number, 0 at the
    /// end of the stream.
    pub fn recv(&mut self, fd: Fd, into: &mut Incoming, flags: MsgFlags) -> Outcome<usize> {
        if self.is_datagrams(fd) {
            return match self.recv_from(fd, into, flags) {
                Outcome::Done(done) => Outcome::Done(done.map(|received| received.len)),
                Outcome::Block(wait) => Outcome::Block(wait),
            };
        }
        if let Err(errno) = self.check_recv(fd, flags) {
            return Outcome::fail(errno);
        }
        if into.most == 0 {
            return Outcome::Done(Ok(0));
        }
        if flags.has(MsgFlags::MSG_OOB) {
            return Outcome::Done(self.recv_urgent(fd, into, flags));
        }
        let stopped = self.fill(fd, into, flags);
        let goal = if flags.has(MsgFlags::MSG_WAITALL) { into.most } else { 1 };
        if into.len >= goal || stopped == Stopped::AtUrgentMark {
            return Outcome::Done(Ok(into.len));
        }
        match self.after_text(fd) {
            After::More => self.wait_to_read(fd, into, flags),
            // An error is not taken while there is a number to tell.
            After::End => Outcome::Done(Ok(into.len)),
            After::Error if into.len > 0 => Outcome::Done(Ok(into.len)),
            After::Error => Outcome::Done(self.take_error(fd).map_or(Ok(0), Err)),
            After::NotConnected => Outcome::fail(Errno::ENOTCONN),
        }
    }

    fn check_recv(&self, fd: Fd, flags: MsgFlags) -> Result<(), Errno> {
        self.get(fd)?;
        if flags.has(MsgFlags::MSG_ERRQUEUE) {
            return Err(Errno::EAGAIN);
        }
        let known = MsgFlags::MSG_PEEK
            | MsgFlags::MSG_TRUNC
            | MsgFlags::MSG_DONTWAIT
            | MsgFlags::MSG_WAITALL
            | MsgFlags::MSG_OOB
            | MsgFlags::MSG_NOSIGNAL;
        if flags.without(known).is_empty() { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
    }

    /// Takes, or copies, what is there and fits, up to the urgent byte; only a call that begins
    /// there goes on behind it.
    fn fill(&mut self, fd: Fd, into: &mut Incoming, flags: MsgFlags) -> Stopped {
        let Some(handle) = self.stream_mut(fd).map(|stream| stream.handle) else {
            return Stopped::NoMore;
        };
        let keep = if flags.has(MsgFlags::MSG_TRUNC) { Keep::Count } else { Keep::Octets };
        let peeks = flags.has(MsgFlags::MSG_PEEK);
        if peeks {
            *into = Incoming::new(into.most);
        }
        if into.len == 0 {
            self.set_urgent_aside(fd);
        }
        let left = self.shard.urgent_mark(handle).filter(|left| *left > 1);
        let mark = left.map(|left| into.len + left as usize - 1);
        let goal = mark.unwrap_or(usize::MAX).min(into.most);
        if peeks {
            self.peek(handle, into, goal, keep);
        } else {
            self.take(handle, into, goal, keep);
            self.pass_urgent(fd, into.len);
        }
        if mark == Some(into.len) { Stopped::AtUrgentMark } else { Stopped::NoMore }
    }

    fn take(&mut self, handle: Handle, into: &mut Incoming, goal: usize, keep: Keep) {
        while into.len < goal {
            match self.shard.recv_up_to(handle, goal - into.len) {
                Recv::Data(data) => into.take(data, keep),
                _ => return,
            }
        }
    }

    fn peek(&self, handle: Handle, into: &mut Incoming, goal: usize, keep: Keep) {
        for piece in self.shard.peek(handle) {
            let len = piece.len().min(goal - into.len);
            if len > 0 {
                into.take(Bytes::copy_from_slice(piece.get(..len).unwrap_or_default()), keep);
            }
        }
    }

    /// What follows the text that was there, in the order in which Linux asks.
    fn after_text(&self, fd: Fd) -> After {
        let Ok(socket) = self.get(fd) else { return After::NotConnected };
        let error = self.pending_error(socket).is_some();
        match self.connection(fd) {
            Ok(Some((stream, snapshot))) => {
                if snapshot.fin_received {
                    After::End
                } else if error {
                    After::Error
                } else if stream.shut_read || is_over(&snapshot) {
                    After::End
                } else {
                    After::More
                }
            }
            _ if error => After::Error,
            _ => After::NotConnected,
        }
    }

    fn wait_to_read(&self, fd: Fd, into: &Incoming, flags: MsgFlags) -> Outcome<usize> {
        let blocking = match self.blocking(fd, flags) {
            Ok(blocking) => blocking,
            Err(errno) => return Outcome::fail(errno),
        };
        if blocking == Blocking::No && into.len > 0 {
            return Outcome::Done(Ok(into.len));
        }
        let opening = self.connection(fd).ok().flatten().is_some_and(|(_, it)| is_opening(&it));
        let wait = if opening { Wait::Connected(fd) } else { Wait::Readable(fd) };
        wait_or(blocking, wait, Errno::EAGAIN)
    }
}

/// Why nothing more was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopped {
    /// There is no more, or no room for it.
    NoMore,
    /// The urgent data end here: Linux' `recv` ends too, `MSG_WAITALL` or not.
    AtUrgentMark,
}

/// What follows the last byte that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// More text may come.
    More,
    /// The end of the stream.
    End,
    /// An error that nobody heard of.
    Error,
    /// There is no stream.
    NotConnected,
}
