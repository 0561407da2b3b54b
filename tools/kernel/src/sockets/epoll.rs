//! epoll(7), edge-triggered.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// A set of descriptors whose readiness the kernel reports, each change once.
#[derive(Debug)]
pub(super) struct Epoll(OwnedFd);

/// Readiness of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Readiness {
    /// The number it was added with.
    pub(super) token: u64,
    /// True if there is data to read, the end of the stream, or an error.
    pub(super) readable: bool,
    /// True if there is room to write, or an error.
    pub(super) writable: bool,
    /// True if the peer's end, or an error, is behind the data.
    pub(super) ended: bool,
    /// True if the connection failed.
    pub(super) failed: bool,
}

impl Epoll {
    /// Creates an empty set.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Adds a descriptor; it leaves the set when it is closed.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, fd, EventData::new_u64(token), events)?)
    }

    /// Calls `each` for the changes since the last call, without waiting.
    pub(super) fn poll(&self, each: impl FnMut(Readiness)) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); AT_ONCE];
        let (ready, _) = epoll::wait(&self.0, &mut room, Some(&Timespec::default()))?;
        let over = EventFlags::HUP | EventFlags::ERR;
        let readiness = |&mut Event { flags, data }| Readiness {
            token: data.u64(),
            readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP | over),
            writable: flags.intersects(EventFlags::OUT | over),
            ended: flags.intersects(EventFlags::RDHUP | over),
            failed: flags.contains(EventFlags::ERR),
        };
        ready.iter_mut().map(readiness).for_each(each);
        Ok(())
    }
}

impl AsFd for Epoll {
    /// Becomes readable while a descriptor is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Limit of changes in one call.
const AT_ONCE: usize = 256;
