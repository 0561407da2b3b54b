//! `send` and its variants, which differ only in their buffers.

use whimbrel_stack::Handle;
use whimbrel_tcp::conn::Cork;
use whimbrel_wire::Endpoint;

use super::readiness::{is_opening, is_over};
use super::{Phase, Socket};
use crate::blocking::Blocking;
use crate::context::Context;
use crate::{BlockedOn, Errno, MsgFlags, Outcome, Outgoing};

/// Sending that may connect first (Fast Open).
impl Socket {
    pub(crate) fn send_to(
        &mut self,
        cx: &mut Context,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Option<Endpoint>,
    ) -> Outcome<usize> {
        let deferred = self.deferred.as_deref().copied();
        let asked = flags.has(MsgFlags::MSG_FASTOPEN);
        if !asked && deferred.is_none() && !out.opened {
            return self.send_on(cx, out, flags);
        }
        if !out.opened {
            if let Err(errno) = self.open_fast(cx, out, deferred.or(to)) {
                return Outcome::fail(errno);
            }
            match self.blocking.in_call(flags) {
                Blocking::Yes => {}
                Blocking::No if out.sent > 0 => return Outcome::Done(Ok(out.sent)),
                Blocking::No => return Outcome::fail(Errno::EINPROGRESS),
            }
        }
        match self.go_on_connecting(cx, Errno::EINPROGRESS) {
            Outcome::Done(Ok(())) => self.send_on(cx, out, flags.without(MsgFlags::MSG_FASTOPEN)),
            Outcome::Done(Err(errno)) => Outcome::fail(errno),
            Outcome::Block(wait) => Outcome::Block(wait),
        }
    }

    fn open_fast(
        &mut self,
        cx: &mut Context,
        out: &mut Outgoing,
        to: Option<Endpoint>,
    ) -> Result<(), Errno> {
        if !cx.shard.tunables().fast_open_client {
            return Err(Errno::EOPNOTSUPP);
        }
        match self.phase {
            Phase::Idle => {}
            Phase::Stream(_) if self.is_opening(&cx.shard) => return Err(Errno::EALREADY),
            Phase::Stream(_) | Phase::Listening(_) => return Err(Errno::EISCONN),
        }
        let to = to.ok_or(Errno::EINVAL)?;
        self.deferred = None;
        self.connect_with_text(cx, out, to, true)
    }

    pub(crate) fn send_connecting(
        &mut self,
        cx: &mut Context,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Endpoint,
    ) -> Outcome<usize> {
        if matches!(self.phase, Phase::Idle) && !out.opened {
            let is_fast = self.settings.fast_open > 0 && cx.shard.tunables().fast_open_client;
            if let Err(errno) = self.connect_with_text(cx, out, to, is_fast) {
                return Outcome::fail(errno);
            }
        }
        match self.connection(&cx.shard) {
            Some((stream, snapshot)) if is_opening(&snapshot) => {
                self.fill_before_opening(cx, stream.handle, out, flags)
            }
            _ => self.send_on(cx, out, flags),
        }
    }

    /// Connects with a SYN that carries data of `out` if `is_fast`, or with a plain one.
    fn connect_with_text(
        &mut self,
        cx: &mut Context,
        out: &mut Outgoing,
        to: Endpoint,
        is_fast: bool,
    ) -> Result<(), Errno> {
        let before = out.rest.len();
        self.start_connecting(cx, to, is_fast.then_some(&mut out.rest))?;
        out.sent += before - out.rest.len();
        out.opened = true;
        Ok(())
    }

    fn fill_before_opening(
        &self,
        cx: &mut Context,
        handle: Handle,
        out: &mut Outgoing,
        flags: MsgFlags,
    ) -> Outcome<usize> {
        if let Ok(taken) = cx.shard.send(handle, &mut out.rest) {
            out.sent += taken;
        }
        self.after_sending(out, flags)
    }
}

/// Sending on a connected or connecting socket.
impl Socket {
    fn send_on(&mut self, cx: &mut Context, out: &mut Outgoing, flags: MsgFlags) -> Outcome<usize> {
        let known = MsgFlags::MSG_DONTWAIT
            | MsgFlags::MSG_NOSIGNAL
            | MsgFlags::MSG_MORE
            | MsgFlags::MSG_OOB;
        if !flags.without(known).is_empty() {
            return Outcome::fail(Errno::EOPNOTSUPP);
        }
        let Some((stream, snapshot)) = self.connection(&cx.shard) else {
            return self.refuse_send(cx, out);
        };
        if is_opening(&snapshot) && !stream.shut_write {
            let blocking = self.blocking.in_call(flags);
            return blocking.wait_or(BlockedOn::Connected(self.fd), Errno::EAGAIN);
        }
        if stream.shut_write || is_over(&snapshot) {
            return self.refuse_send(cx, out);
        }
        self.cork(cx, stream.handle, flags);
        let taken = if flags.has(MsgFlags::MSG_OOB) {
            cx.shard.send_urgent(stream.handle, &mut out.rest)
        } else {
            cx.shard.send(stream.handle, &mut out.rest)
        };
        match taken {
            Ok(taken) => out.sent += taken,
            Err(_) => return self.refuse_send(cx, out),
        }
        self.after_sending(out, flags)
    }

    /// Ends the call, or waits for room for the rest.
    fn after_sending(&self, out: &Outgoing, flags: MsgFlags) -> Outcome<usize> {
        match self.blocking.in_call(flags) {
            _ if out.rest.is_empty() => Outcome::Done(Ok(out.sent)),
            Blocking::No if out.sent > 0 => Outcome::Done(Ok(out.sent)),
            blocking => blocking.wait_or(BlockedOn::Writable(self.fd), Errno::EAGAIN),
        }
    }

    /// Ends a call that cannot send: with the bytes taken before, else with a pending error, else
    /// with `EPIPE`.
    fn refuse_send(&mut self, cx: &Context, out: &Outgoing) -> Outcome<usize> {
        if out.sent > 0 {
            return Outcome::Done(Ok(out.sent));
        }
        Outcome::fail(self.take_error(&cx.shard).unwrap_or(Errno::EPIPE))
    }

    /// `MSG_MORE` corks until the next call; `TCP_CORK` until it is removed.
    fn cork(&mut self, cx: &mut Context, handle: Handle, flags: MsgFlags) {
        let more = flags.has(MsgFlags::MSG_MORE);
        let corked = more || self.settings.options.cork == Cork::On;
        if let Some(stream) = self.stream_mut().filter(|stream| stream.corked != corked) {
            stream.corked = corked;
            cx.shard.set_cork(handle, if corked { Cork::On } else { Cork::Off });
        }
    }
}
