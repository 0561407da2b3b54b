//! `shutdown` and `close`, lingering or not.

use core::time::Duration;

use whimbrel_tcp::conn::{Snapshot, State};

use super::Sockets;
use super::readiness::{is_opening, is_over};
use crate::descriptor::File;
use crate::socket::{Phase, Stream};
use crate::{Errno, Fd, Linger, Outcome, Wait};

c_enum! {
    /// Which directions `shutdown` ends.
    Shut {
        /// No more is to be read.
        Read = 0, "SHUT_RD";
        /// Writing: FIN follows what was written.
        Write = 1, "SHUT_WR";
        /// Neither direction is used any more.
        Both = 2, "SHUT_RDWR";
    }
}

impl Sockets {
    /// `shutdown(2)`. On a listener reading ends listening; on an attempt to open that the peer's SYN
    /// has not met anything ends it.
    pub fn shutdown(&mut self, fd: Fd, how: Shut) -> Result<(), Errno> {
        if self.is_datagrams(fd) {
            return self.shutdown_datagrams(fd, how);
        }
        let (read, write) = (how != Shut::Write, how != Shut::Read);
        match self.get(fd)?.phase {
            Phase::Idle => return Err(Errno::ENOTCONN),
            Phase::Listening(_) if read => return self.disconnect(fd),
            Phase::Listening(_) => return Ok(()),
            Phase::Stream(_) => {}
        }
        let Some((stream, snapshot)) = self.connection(fd)? else { return Err(Errno::ENOTCONN) };
        if is_opening(&snapshot) && snapshot.state == State::SynSent {
            return self.disconnect(fd);
        }
        if let Some(stream) = self.stream_mut(fd) {
            stream.shut_read |= read;
            stream.shut_write |= write;
        }
        if read {
            self.shard.shut_read(stream.handle);
        }
        if write {
            self.shard.shutdown(stream.handle);
        }
        self.notify(fd);
        if is_over(&snapshot) { Err(Errno::ENOTCONN) } else { Ok(()) }
    }

    /// `close(2)`. With `SO_LINGER` it blocks, even if nothing else of this socket does, until all
    /// was acknowledged or the time is over; the number is free only then.
    pub fn close(&mut self, fd: Fd) -> Outcome<()> {
        let phase = match self.files.get(fd) {
            Err(errno) => return Outcome::fail(errno),
            Ok(File::Epoll(_) | File::Datagrams(_)) => Phase::Idle,
            Ok(File::Socket(socket)) => socket.phase,
        };
        match phase {
            Phase::Idle => {}
            Phase::Listening(listener) => self.shard.close_listener(listener),
            Phase::Stream(stream) => {
                if let Some(wait) = self.close_stream(fd, stream) {
                    return Outcome::Block(wait);
                }
            }
        }
        self.leave(phase);
        self.release(fd);
        Outcome::Done(Ok(()))
    }

    /// True if `close` of `fd` has to go on waiting.
    pub(super) fn is_lingering(&self, fd: Fd) -> bool {
        let Ok(File::Socket(socket)) = self.files.get(fd) else { return false };
        let snapshot = socket.stream().and_then(|stream| self.shard.snapshot(stream.handle));
        snapshot.as_ref().is_some_and(has_unacked)
    }

    fn close_stream(&mut self, fd: Fd, stream: Stream) -> Option<Wait> {
        let linger = match self.files.get(fd) {
            Ok(File::Socket(socket)) => socket.settings.linger,
            _ => Linger::Off,
        };
        if linger == Linger::Seconds(0) {
            self.shard.abort(stream.handle);
            return None;
        }
        if let Linger::Seconds(seconds) = linger
            && let Some(until) = self.linger(fd, stream, seconds)
        {
            return Some(until);
        }
        self.shard.close(stream.handle);
        None
    }

    /// Sends FIN, and waits for its acknowledgment.
    fn linger(&mut self, fd: Fd, stream: Stream, seconds: u32) -> Option<Wait> {
        let now = self.shard.now();
        let until = match stream.lingers {
            Some(until) => until,
            None => {
                // With something unread `close` resets at once.
                self.shard
                    .snapshot(stream.handle)
                    .filter(|it| it.unread == 0 && !is_opening(it))?;
                self.shard.shutdown(stream.handle);
                let until = now + Duration::from_secs(u64::from(seconds));
                self.stream_mut(fd)?.lingers = Some(until);
                until
            }
        };
        (now < until && self.is_lingering(fd)).then_some(Wait::Lingering(fd, until))
    }

    /// The descriptor is gone, and all that named it.
    fn release(&mut self, fd: Fd) {
        let Some(file) = self.files.close(fd) else { return };
        match file {
            File::Socket(socket) => {
                if let Some(local) = socket.local {
                    self.bound.remove(&(local.port, fd));
                    if !socket.settings.reuse_addr && socket.stream().is_some() {
                        self.strict.insert(local.port);
                    }
                }
                self.unwatch(fd);
            }
            File::Datagrams(socket) => {
                if let Some(handle) = socket.handle {
                    self.shard.udp_close(handle);
                    self.by_datagrams.remove(&handle);
                }
                self.unwatch(fd);
            }
            File::Epoll(epoll) => {
                for watched in epoll.watched.keys() {
                    self.watchers.remove(&(*watched, fd));
                }
            }
        }
    }

    /// Nobody watches `fd` any more.
    fn unwatch(&mut self, fd: Fd) {
        while let Some(pair) = self.watchers.range((fd, Fd::LEAST)..=(fd, Fd::GREATEST)).next() {
            let pair = *pair;
            self.watchers.remove(&pair);
            if let Ok(File::Epoll(epoll)) = self.files.get_mut(pair.1) {
                epoll.watched.remove(&fd);
                epoll.candidates.remove(&fd);
            }
        }
    }
}

/// The states in which Linux' `close` lingers.
fn has_unacked(snapshot: &Snapshot) -> bool {
    matches!(snapshot.state, State::FinWait1 | State::Closing | State::LastAck)
}
