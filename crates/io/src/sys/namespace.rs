//! Network namespaces: a thread's interfaces, routes, sockets and `net.*` settings.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::check;

/// A network namespace. It lives as long as this, a thread in it, or a socket or device of it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Takes the calling thread into a fresh one, for good. Needs CAP_SYS_ADMIN.
    pub fn unshare() -> io::Result<Self> {
        // SAFETY: unshare takes no pointer, and a network namespace is the thread's own.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Takes the calling thread into this one, for good.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: setns takes no pointer, and the descriptor is ours.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
    }
}

/// The number by which `/proc` knows the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }
}
