//! The descriptors that a script made. It cannot reach other descriptors of this process.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{Shutdown, shutdown};
use whimbrel_posix::Domain;

/// A script's descriptors by number, shared by blocking and other calls.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    open: Mutex<BTreeMap<i32, Arc<Descriptor>>>,
}

#[derive(Debug)]
pub(super) struct Descriptor {
    fd: OwnedFd,
    /// Family of a socket; `None` for other descriptors.
    pub(super) domain: Option<Domain>,
}

impl Descriptors {
    /// Adds a descriptor and returns its number.
    pub(super) fn add(&self, fd: OwnedFd, domain: Option<Domain>) -> i32 {
        let number = fd.as_raw_fd();
        self.with(|open| open.insert(number, Arc::new(Descriptor { fd, domain })));
        number
    }

    /// Returns the descriptor of this number. It stays valid if it is closed during the use.
    pub(super) fn find(&self, number: i32) -> io::Result<Arc<Descriptor>> {
        let found = self.with(|open| open.get(&number).cloned());
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// Closes a descriptor, as close(2). A call under way on it keeps the file open, as in the
    /// kernel.
    pub(super) fn close(&self, number: i32) -> io::Result<()> {
        let closed = self.with(|open| open.remove(&number));
        closed.map(drop).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// Releases all descriptors, and ends the calls that wait on them.
    pub(super) fn abandon(&self) {
        for descriptor in self.with(std::mem::take).into_values() {
            // This fails for files other than connected sockets, on which no call sleeps.
            let _ = shutdown(&*descriptor, Shutdown::Both);
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<i32, Arc<Descriptor>>) -> T) -> T {
        change(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
