//! Opens a connection and reports the result.

use bytes::Bytes;
use whimbrel_stack::shard::ConnectError;
use whimbrel_wire::Endpoint;

use super::readiness::{is_opening, is_over};
use super::{Phase, Progress, Socket, Stream};
use crate::context::Context;
use crate::{BlockedOn, Errno, Outcome};

impl Socket {
    /// Connects; the SYN carries as much of `text` as it can, if there is any (Fast Open).
    pub(super) fn start_connecting(
        &mut self,
        cx: &mut Context,
        to: Endpoint,
        text: Option<&mut Bytes>,
    ) -> Result<(), Errno> {
        self.check_family(&to.addr, Errno::ENETUNREACH)?;
        let (local, options) = (self.local, &self.settings.options);
        let opened = match text {
            Some(text) => cx.shard.connect_fast(to, local, options, text),
            None => cx.shard.connect_with(to, local, options),
        };
        let handle = opened.map_err(|error| connect_errno(&error))?;
        let mut stream = Stream::new(handle, Progress::Connecting);
        if local.is_none_or(|local| local.port == 0)
            && let Some(flow) = cx.shard.flow(handle)
        {
            self.occupy(cx, flow.local);
            stream.drew_port = true;
            stream.bound = local;
        }
        self.enter(cx, Phase::Stream(stream));
        cx.polls.notify(self.fd);
        Ok(())
    }

    pub(super) fn go_on_connecting(&mut self, cx: &mut Context, under_way: Errno) -> Outcome<()> {
        match self.connection(&cx.shard) {
            Some((_, snapshot)) if is_opening(&snapshot) => {
                self.blocking.wait_or(BlockedOn::Connected(self.fd), under_way)
            }
            Some((_, snapshot)) if !is_over(&snapshot) => {
                if let Some(stream) = self.stream_mut() {
                    stream.progress = Progress::Connected;
                }
                Outcome::Done(Ok(()))
            }
            _ => {
                let errno = self.take_error(&cx.shard).unwrap_or(Errno::ECONNABORTED);
                self.give_up(cx);
                Outcome::fail(errno)
            }
        }
    }

    /// Restores the socket after a failed attempt.
    fn give_up(&mut self, cx: &mut Context) {
        if let Phase::Stream(stream) = self.phase {
            cx.shard.close(stream.handle);
            self.forget(cx);
        }
    }

    /// Forgets the connection or listener, and releases a port drawn for it.
    pub(super) fn forget(&mut self, cx: &mut Context) {
        let phase = core::mem::replace(&mut self.phase, Phase::Idle);
        if let Phase::Stream(Stream { drew_port: true, bound, .. }) = phase
            && let Some(local) = core::mem::replace(&mut self.local, bound)
        {
            cx.ports.release(local.port, self.fd);
        }
        phase.leave(cx);
        cx.polls.notify(self.fd);
    }
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
        // There is no route, or the destination is a group or this host, which a shard does not
        // reach.
        _ => Errno::ENETUNREACH,
    }
}
