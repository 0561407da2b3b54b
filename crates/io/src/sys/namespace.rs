//! Network namespaces: a thread's interfaces, routes, sockets and `net.*` settings.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;

use super::check;

/// A network namespace. It exists as long as this value, a thread in it, or a socket or device of
/// it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace with only a loopback interface, which is down. Needs CAP_SYS_ADMIN.
    pub fn fresh() -> io::Result<Self> {
        // It is created around a thread, which may then end.
        let maker = thread::Builder::new().spawn(|| {
            // SAFETY: unshare takes no pointer, and a network namespace is the thread's own.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            Self::current()
        })?;
        maker.join().map_err(|_panic| io::Error::other("the maker of a namespace panicked"))?
    }

    /// Returns a path by which other processes of this user can enter it while this value lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// Opens the namespace of a file, such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Runs `work` with the calling thread in this namespace, then moves the thread back, even if
    /// `work` panics.
    ///
    /// # Panics
    ///
    /// If the thread may not move back because `work` dropped its privileges.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let _back = Return(Self::current()?);
        self.enter()?;
        Ok(work())
    }

    fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    fn enter(&self) -> io::Result<()> {
        // SAFETY: setns takes no pointer, and the descriptor is ours.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
    }
}

/// Range of the process ids in a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessIds {
    /// Those of the machine.
    Shared,
    /// Children of this process have ids of their own, and the first is process 1: when it ends, so do
    /// all.
    Own,
}

/// Moves this process, which has one thread, into user, network and mount namespaces of its own, in
/// which it has all capabilities (unshare(2)). Needs no privilege where the system lets users do so.
///
/// # Errors
///
/// EPERM where users may not, ENOSPC at the limit of namespaces, EINVAL with other threads.
pub fn isolate(ids: ProcessIds) -> io::Result<()> {
    let ids = match ids {
        ProcessIds::Shared => 0,
        ProcessIds::Own => libc::CLONE_NEWPID,
    };
    let own = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS | ids;
    // SAFETY: unshare takes no pointer. None of these flags takes memory or descriptors from a thread.
    check(unsafe { libc::unshare(own) }).map(drop)
}

/// Moves the thread back when dropped.
struct Return(Namespace);

impl Drop for Return {
    fn drop(&mut self) {
        self.0.enter().expect("a thread may return to the namespace that it came from");
    }
}
