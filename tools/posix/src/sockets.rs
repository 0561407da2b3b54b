//! A process's sockets: descriptors over one shard, and the calls on them.
//!
//! The driver of the shard works through [`Sockets::shard_mut`] (`rx`, `advance`, `tx`, and
//! `set_now` before a call that follows a pause), but leaves its events to
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

/// Getters, and calls of the driver.
impl Sockets {
    /// Linux' default limit of descriptors (`RLIMIT_NOFILE`).
    pub const USUAL_LIMIT: usize = 1024;

    /// A process without descriptors, with the default limit.
    pub const fn new(shard: Shard) -> Self {
        Self::with_limit(shard, Self::USUAL_LIMIT)
    }

    /// Makes a process with another limit of descriptors.
    pub const fn with_limit(shard: Shard, limit: usize) -> Self {
        Self { files: Descriptors::new(limit), cx: Context::new(shard) }
    }

    /// The shard under the sockets.
    pub const fn shard(&self) -> &Shard {
        &self.cx.shard
    }

    /// The shard, to drive it.
    pub const fn shard_mut(&mut self) -> &mut Shard {
        &mut self.cx.shard
    }

    /// Open descriptors, in order.
    pub fn descriptors(&self) -> impl Iterator<Item = Fd> {
        self.files.iter().map(|(fd, _)| fd)
    }

    /// Handles the shard's events: call it after driving the shard. (Calls that depend on events do
    /// so themselves.)
    pub fn drain_events(&mut self) {
        while let Some(event) = self.cx.shard.poll_event() {
            let Some(fd) = self.cx.owners.of(&event) else { continue };
            // The keep-alive timer of a connection starts when it is established.
            if let Event::Connected(handle) = event
                && let Ok(socket) = self.files.stream(fd)
                && socket.settings.options.keep_alive == KeepAlive::On
            {
                self.cx.shard.set_keep_alive(handle, KeepAlive::On);
            }
            self.cx.polls.notify(fd);
        }
    }

    /// Number of table entries that lead to a descriptor: 0 if none is open.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> usize {
        self.cx.owners.len() + self.cx.polls.len() + self.cx.ports.len()
    }
}
