//! `recv` and its variants, which differ only in their buffers.

use bytes::Bytes;
use whimbrel_stack::{Handle, Recv, Shard};

use super::Socket;
use super::readiness::is_over;
use crate::blocking::Blocking;
use crate::context::Context;
use crate::transfer::Keep;
use crate::{BlockedOn, Errno, Incoming, MsgFlags, Outcome};

impl Socket {
    pub(crate) fn recv(
        &mut self,
        cx: &mut Context,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Outcome<usize> {
        if let Err(errno) = check_flags(flags) {
            return Outcome::fail(errno);
        }
        let shard = &mut cx.shard;
        if into.most == 0 {
            return Outcome::Done(Ok(0));
        }
        if flags.has(MsgFlags::MSG_OOB) {
            return Outcome::Done(self.recv_urgent(shard, into, flags));
        }
        let stopped = self.fill(shard, into, flags);
        let goal = if flags.has(MsgFlags::MSG_WAITALL) { into.most } else { 1 };
        if into.len >= goal || stopped == Stopped::AtUrgentMark {
            return Outcome::Done(Ok(into.len));
        }
        match self.after_text(shard) {
            After::More => self.wait_to_read(shard, into, flags),
            // An error stays pending if there are bytes to return.
            After::End => Outcome::Done(Ok(into.len)),
            After::Error if into.len > 0 => Outcome::Done(Ok(into.len)),
            After::Error => Outcome::Done(self.take_error(shard).map_or(Ok(0), Err)),
            After::NotConnected => Outcome::fail(Errno::ENOTCONN),
        }
    }

    /// Takes, or copies, data that fits, up to the urgent byte; only a call that begins there goes
    /// beyond it.
    fn fill(&mut self, shard: &mut Shard, into: &mut Incoming, flags: MsgFlags) -> Stopped {
        let Some(handle) = self.stream().map(|stream| stream.handle) else {
            return Stopped::NoMore;
        };
        let keep = if flags.has(MsgFlags::MSG_TRUNC) { Keep::Count } else { Keep::Bytes };
        let peeks = flags.has(MsgFlags::MSG_PEEK);
        if peeks {
            *into = Incoming::new(into.most);
        }
        if into.len == 0 {
            self.set_urgent_aside(shard);
        }
        let left = shard.urgent_mark(handle).filter(|left| *left > 1);
        let mark = left.map(|left| into.len + left as usize - 1);
        let goal = mark.unwrap_or(usize::MAX).min(into.most);
        if peeks {
            peek(shard, handle, into, goal, keep);
        } else {
            take(shard, handle, into, goal, keep);
            self.pass_urgent(into.len);
        }
        if mark == Some(into.len) { Stopped::AtUrgentMark } else { Stopped::NoMore }
    }

    /// Condition after the text, in Linux' order of checks.
    fn after_text(&self, shard: &Shard) -> After {
        let error = self.pending_error(shard).is_some();
        match self.connection(shard) {
            Some((_, snapshot)) if snapshot.fin_received => After::End,
            _ if error => After::Error,
            Some((stream, snapshot)) if stream.shut_read || is_over(&snapshot) => After::End,
            Some(_) => After::More,
            None => After::NotConnected,
        }
    }

    fn wait_to_read(&self, shard: &Shard, into: &Incoming, flags: MsgFlags) -> Outcome<usize> {
        let blocking = self.blocking.in_call(flags);
        if blocking == Blocking::No && into.len > 0 {
            return Outcome::Done(Ok(into.len));
        }
        let opening = self.is_opening(shard);
        let wait =
            if opening { BlockedOn::Connected(self.fd) } else { BlockedOn::Readable(self.fd) };
        blocking.wait_or(wait, Errno::EAGAIN)
    }
}

fn check_flags(flags: MsgFlags) -> Result<(), Errno> {
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

fn take(shard: &mut Shard, handle: Handle, into: &mut Incoming, goal: usize, keep: Keep) {
    while into.len < goal {
        match shard.recv_up_to(handle, goal - into.len) {
            Recv::Data(data) => into.take(data, keep),
            _ => return,
        }
    }
}

fn peek(shard: &Shard, handle: Handle, into: &mut Incoming, goal: usize, keep: Keep) {
    for piece in shard.peek(handle) {
        let len = piece.len().min(goal - into.len);
        if len > 0 {
            into.take(Bytes::copy_from_slice(piece.get(..len).unwrap_or_default()), keep);
        }
    }
}

/// Reason for which reading stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopped {
    /// There is no more data, or no room for it.
    NoMore,
    /// The urgent data ends here, and so does Linux' `recv`, with or without `MSG_WAITALL`.
    AtUrgentMark,
}

/// Condition after the last byte that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// More data may come.
    More,
    /// The end of the stream.
    End,
    /// An error not yet reported.
    Error,
    /// There is no stream.
    NotConnected,
}
