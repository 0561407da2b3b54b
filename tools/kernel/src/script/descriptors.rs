//! The descriptors that a script made, and no others: it cannot reach what else this process has
//! open.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{Shutdown, shutdown};
use whimbrel_posix::Domain;

/// A script's descriptors by number. Calls that block share it with those that do not.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    open: Mutex<BTreeMap<i32, Arc<Descriptor>>>,
}

#[derive(Debug)]
pub(super) struct Descriptor {
    fd: OwnedFd,
    /// The family of a socket; `None` for what is no socket.
    pub(super) domain: Option<Domain>,
}

impl Descriptors {
    /// Takes in a new one, and returns its number.
    pub(super) fn add(&self, fd: OwnedFd, domain: Option<Domain>) -> i32 {
        let number = fd.as_raw_fd();
        self.with(|open| open.insert(number, Arc::new(Descriptor { fd, domain })));
        number
    }

    /// The one with this number, to be used while somebody else may close it.
    pub(super) fn find(&self, number: i32) -> io::Result<Arc<Descriptor>> {
        let found = self.with(|open| open.get(&number).cloned());
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// close(2). As in the kernel, a call that is under way on it keeps what it stands for.
    pub(super) fn close(&self, number: i32) -> io::Result<()> {
        let closed = self.with(|open| open.remove(&number));
        closed.map(drop).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// Lets all go, and ends the calls that wait for one of them.
    pub(super) fn abandon(&self) {
        for descriptor in self.with(std::mem::take).into_values() {
            // Fails for what is no socket or not connected, and nobody sleeps there.
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
