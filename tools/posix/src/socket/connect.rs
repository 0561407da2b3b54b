//! `connect`, blocking or not, and disconnecting.

use bytes::Bytes;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_wire::Endpoint;

use alloc::boxed::Box;

use super::readiness::is_over;
use super::{Phase, Progress, Socket};
use crate::context::Context;
use crate::{Errno, Outcome};

/// Delay of the SYN until data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deferral {
    /// Nothing is sent: the SYN waits for data.
    Deferred,
    /// The SYN is on its way.
    Begun,
}

impl Socket {
    pub(crate) fn connect(&mut self, cx: &mut Context, to: Endpoint) -> Outcome<()> {
        match self.phase {
            Phase::Listening(_) => Outcome::fail(Errno::EISCONN),
            Phase::Stream(stream) => match stream.progress {
                Progress::Connected => Outcome::fail(Errno::EISCONN),
                Progress::Connecting => self.go_on_connecting(cx, Errno::EALREADY),
            },
            Phase::Idle => match self.defer_connecting(cx, to) {
                Ok(Deferral::Deferred) => Outcome::Done(Ok(())),
                Ok(Deferral::Begun) => self.go_on_connecting(cx, Errno::EINPROGRESS),
                Err(errno) => Outcome::fail(errno),
            },
        }
    }

    /// Connects now, unless the SYN is to wait for data.
    fn defer_connecting(&mut self, cx: &mut Context, to: Endpoint) -> Result<Deferral, Errno> {
        if self.deferred.is_some() {
            return Err(Errno::EISCONN);
        }
        if !self.settings.fast_open_connect {
            return self.start_connecting(cx, to, None).map(|()| Deferral::Begun);
        }
        self.check_family(&to.addr, Errno::ENETUNREACH)?;
        if cx.shard.knows_fast_open_cookie(self.local.map(|local| local.addr), &to) {
            self.deferred = Some(Box::new(to));
            cx.polls.notify(self.fd);
            return Ok(Deferral::Deferred);
        }
        // The SYN requests a cookie, so that the next can carry data.
        self.start_connecting(cx, to, Some(&mut Bytes::new())).map(|()| Deferral::Begun)
    }

    /// Resets the connection or ends listening, so that the socket can be used again.
    pub(crate) fn disconnect(&mut self, cx: &mut Context) {
        let reset = self.connection(&cx.shard).is_some_and(|(_, it)| needs_reset(&it));
        match self.phase {
            Phase::Idle => {}
            Phase::Listening(listener) => cx.shard.close_listener(listener),
            Phase::Stream(stream) => cx.shard.abort(stream.handle),
        }
        self.forget(cx);
        self.deferred = None;
        self.error = reset.then_some(Errno::ECONNRESET);
    }
}

/// True if Linux' `tcp_disconnect` leaves `ECONNRESET` behind.
const fn needs_reset(snapshot: &Snapshot) -> bool {
    !is_over(snapshot) && !matches!(snapshot.state, State::Closing | State::LastAck)
}
