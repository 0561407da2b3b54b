//! A socket opened elsewhere: in another network namespace, or by a parent process with the privilege.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::sys::packet::PacketSocket;

/// A socket for whole frames. Clones are the same socket.
#[derive(Clone, Debug)]
pub(super) struct PassedSocket(Arc<PacketSocket>);

impl PartialEq for PassedSocket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PassedSocket {}

impl PassedSocket {
    /// Takes the socket; `None` if it is none for whole frames.
    pub(super) fn new(fd: OwnedFd) -> Option<Self> {
        let socket = PacketSocket::adopt(fd).ok()??;
        Some(Self(Arc::new(socket)))
    }

    /// Duplicates its descriptor.
    pub(super) fn open(&self) -> io::Result<PacketSocket> {
        let fd = self.0.as_fd().try_clone_to_owned()?;
        PacketSocket::adopt(fd)?.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }
}
