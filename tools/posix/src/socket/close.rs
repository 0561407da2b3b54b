//! `shutdown` and `close`, with or without lingering.

use core::time::Duration;

use whimbrel_stack::Shard;
use whimbrel_tcp::conn::{Snapshot, State};

use super::readiness::{is_opening, is_over};
use super::{Phase, Socket, Stream};
use crate::command::Shut;
use crate::context::Context;
use crate::{BlockedOn, Errno, Linger};

impl Socket {
    /// Shutting down reading on a listener ends listening; any shutdown ends an attempt to open
    /// that has not received the peer's SYN.
    pub(crate) fn shutdown(&mut self, cx: &mut Context, how: Shut) -> Result<(), Errno> {
        let (read, write) = (how != Shut::Write, how != Shut::Read);
        match self.phase {
            Phase::Idle => return Err(Errno::ENOTCONN),
            Phase::Listening(_) => {
                if read {
                    self.disconnect(cx);
                }
                return Ok(());
            }
            Phase::Stream(_) => {}
        }
        let (stream, snapshot) = self.connection(&cx.shard).ok_or(Errno::ENOTCONN)?;
        if is_opening(&snapshot) && snapshot.state == State::SynSent {
            self.disconnect(cx);
            return Ok(());
        }
        if let Some(stream) = self.stream_mut() {
            stream.shut_read |= read;
            stream.shut_write |= write;
        }
        if read {
            cx.shard.shut_read(stream.handle);
        }
        if write {
            cx.shard.shutdown(stream.handle);
        }
        cx.polls.notify(self.fd);
        if is_over(&snapshot) { Err(Errno::ENOTCONN) } else { Ok(()) }
    }

    /// Closes the connection or listener, or returns the condition to wait for first.
    pub(crate) fn close(&mut self, cx: &mut Context) -> Option<BlockedOn> {
        match self.phase {
            Phase::Idle => {}
            Phase::Listening(listener) => cx.shard.close_listener(listener),
            Phase::Stream(stream) => {
                if let Some(wait) = self.close_stream(cx, stream) {
                    return Some(wait);
                }
            }
        }
        self.phase.leave(cx);
        if let Some(local) = self.local {
            cx.ports.release(local.port, self.fd);
            if !self.settings.reuse_addr && self.stream().is_some() {
                cx.ports.strict.insert(local.port);
            }
        }
        None
    }

    fn close_stream(&mut self, cx: &mut Context, stream: Stream) -> Option<BlockedOn> {
        match self.settings.linger {
            Linger::Seconds(0) => {
                cx.shard.abort(stream.handle);
                return None;
            }
            Linger::Seconds(seconds) => {
                if let Some(wait) = self.linger(cx, stream, seconds) {
                    return Some(wait);
                }
            }
            Linger::Off => {}
        }
        cx.shard.close(stream.handle);
        None
    }

    /// Sends FIN, and waits for its acknowledgment.
    fn linger(&mut self, cx: &mut Context, stream: Stream, seconds: u32) -> Option<BlockedOn> {
        let now = cx.shard.now();
        let until = match stream.lingers {
            Some(until) => until,
            None => {
                // With unread data `close` resets at once.
                cx.shard.snapshot(stream.handle).filter(|it| it.unread == 0 && !is_opening(it))?;
                cx.shard.shutdown(stream.handle);
                let until = now + Duration::from_secs(u64::from(seconds));
                self.stream_mut()?.lingers = Some(until);
                until
            }
        };
        (now < until && self.is_lingering(&cx.shard))
            .then_some(BlockedOn::Lingering(self.fd, until))
    }

    /// True if `close` has to go on waiting.
    pub(crate) fn is_lingering(&self, shard: &Shard) -> bool {
        self.connection(shard).is_some_and(|(_, snapshot)| has_unacked(&snapshot))
    }
}

/// The states in which Linux' `close` lingers.
fn has_unacked(snapshot: &Snapshot) -> bool {
    matches!(snapshot.state, State::FinWait1 | State::Closing | State::LastAck)
}
