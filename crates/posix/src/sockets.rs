//! A process's sockets: descriptors over one shard, and the calls on them.
//!
//! Whoever drives the shard does so through [`Sockets::shard_mut`] (`rx`, `advance`, `tx`, and
//! `tell_time` before a call that follows a pause), but leaves its events to
//! [`Sockets::drain_events`].

mod accept;
mod bind;
mod calls;
mod poll;

use whimbrel_stack::{Event, Shard};
use whimbrel_tcp::conn::KeepAlive;

use crate::Fd;
use crate::context::Context;
use crate::descriptor::Descriptors;

pub use crate::command::{Fcntl, Ioctl, Shut};
pub use crate::datagram::ReceivedFrom;
pub use crate::epoll::{EpollOp, EpollReport};
pub use accept::Accepted;
pub use poll::PollFd;

/// The sockets of one process on one shard.
#[derive(Debug)]
pub struct Sockets {
    files: Descriptors,
    cx: Context,
}

/// Getters, and what a driver does.
impl Sockets {
    /// Linux' usual bound on descriptors (`RLIMIT_NOFILE`).
    pub const USUAL_LIMIT: usize = 1024;

    /// A process without descriptors; it may open [`Sockets::USUAL_LIMIT`].
    pub const fn new(shard: Shard) -> Self {
        Self::with_limit(shard, Self::USUAL_LIMIT)
    }

    /// The same, with another bound on descriptors.
    pub const fn with_limit(shard: Shard, limit: usize) -> Self {
        Self { files: Descriptors::new(limit), cx: Context::new(shard) }
    }

    /// The host that the sockets are over.
    pub const fn shard(&self) -> &Shard {
        &self.cx.shard
    }

    /// The host beneath, to drive it.
    pub const fn shard_mut(&mut self) -> &mut Shard {
        &mut self.cx.shard
    }

    /// The descriptors that are open, in order.
    pub fn descriptors(&self) -> impl Iterator<Item = Fd> {
        self.files.iter().map(|(fd, _)| fd)
    }

    /// Takes the shard's events: to be called after it was driven. (Calls that depend on events
    /// do so themselves.)
    pub fn drain_events(&mut self) {
        while let Some(event) = self.cx.shard.poll_event() {
            let Some(fd) = self.cx.owners.of(&event) else { continue };
            // The keep-alive timer of a connection begins when it is established.
            if let Event::Connected(handle) = event
                && let Ok(socket) = self.files.stream(fd)
                && socket.settings.options.keep_alive == KeepAlive::On
            {
                self.cx.shard.set_keep_alive(handle, KeepAlive::On);
            }
            self.cx.polls.notify(fd);
        }
    }

    /// How many entries of the tables lead to a descriptor: none, if none is open.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> usize {
        self.cx.owners.len() + self.cx.polls.len() + self.cx.ports.len()
    }
}
