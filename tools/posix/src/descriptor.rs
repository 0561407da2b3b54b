//! Descriptors: small numbers, the lowest free one first.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::datagram::Datagrams;
use crate::socket::Socket;
use crate::{Errno, Fd};

/// Object behind a descriptor.
#[derive(Debug)]
pub(crate) enum File {
    Socket(AnySocket),
    /// An epoll instance, held in [`Polls`](crate::epoll::Polls).
    Epoll,
}

/// A socket of either type.
#[derive(Debug)]
pub(crate) enum AnySocket {
    Stream(Box<Socket>),
    Datagrams(Datagrams),
}

/// The descriptors in use.
#[derive(Debug)]
pub(crate) struct Descriptors {
    files: Vec<Option<File>>,
    /// Places below `files.len()` without a file.
    free: BTreeSet<usize>,
    limit: usize,
}

impl Descriptors {
    /// At most `limit` at a time.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { files: Vec::new(), free: BTreeSet::new(), limit }
    }

    fn len(&self) -> usize {
        self.files.len() - self.free.len()
    }

    /// Fails if no further descriptor may be opened.
    pub(crate) fn check_room(&self) -> Result<(), Errno> {
        if self.len() < self.limit { Ok(()) } else { Err(Errno::EMFILE) }
    }

    /// Opens the file that `file` makes for the lowest free number.
    pub(crate) fn open(&mut self, file: impl FnOnce(Fd) -> File) -> Result<Fd, Errno> {
        self.check_room()?;
        let place = match self.free.pop_first() {
            Some(place) => place,
            None => {
                self.files.push(None);
                self.files.len() - 1
            }
        };
        let fd = Fd(Fd::FIRST.0 + place as i32);
        if let Some(slot) = self.files.get_mut(place) {
            *slot = Some(file(fd));
        }
        Ok(fd)
    }

    /// Object of `fd`, also while a socket is being closed.
    pub(crate) fn entry(&self, fd: Fd) -> Option<&File> {
        self.files.get(place(fd)?)?.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, fd: Fd) -> Option<&mut File> {
        self.files.get_mut(place(fd)?)?.as_mut()
    }

    /// Object of `fd`, unless it is closed or being closed.
    pub(crate) fn get(&self, fd: Fd) -> Result<&File, Errno> {
        self.entry(fd).filter(|file| !is_closing(file)).ok_or(Errno::EBADF)
    }

    pub(crate) fn socket(&self, fd: Fd) -> Result<&AnySocket, Errno> {
        match self.get(fd)? {
            File::Socket(socket) => Ok(socket),
            File::Epoll => Err(Errno::ENOTSOCK),
        }
    }

    pub(crate) fn socket_mut(&mut self, fd: Fd) -> Result<&mut AnySocket, Errno> {
        match self.entry_mut(fd).filter(|file| !is_closing(file)).ok_or(Errno::EBADF)? {
            File::Socket(socket) => Ok(socket),
            File::Epoll => Err(Errno::ENOTSOCK),
        }
    }

    /// Socket of `fd`, for calls that only streams have.
    pub(crate) fn stream(&self, fd: Fd) -> Result<&Socket, Errno> {
        match self.socket(fd)? {
            AnySocket::Stream(socket) => Ok(socket),
            AnySocket::Datagrams(_) => Err(Errno::EOPNOTSUPP),
        }
    }

    pub(crate) fn stream_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        match self.socket_mut(fd)? {
            AnySocket::Stream(socket) => Ok(socket),
            AnySocket::Datagrams(_) => Err(Errno::EOPNOTSUPP),
        }
    }

    pub(crate) fn close(&mut self, fd: Fd) -> Option<File> {
        let place = place(fd)?;
        let file = self.files.get_mut(place)?.take()?;
        self.free.insert(place);
        Some(file)
    }

    /// Every descriptor in use, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Fd, &File)> {
        let numbered = (Fd::FIRST.0..).zip(&self.files);
        numbered.filter_map(|(number, file)| Some((Fd(number), file.as_ref()?)))
    }
}

fn is_closing(file: &File) -> bool {
    matches!(file, File::Socket(AnySocket::Stream(socket)) if socket.is_closing())
}

fn place(fd: Fd) -> Option<usize> {
    usize::try_from(fd.0.checked_sub(Fd::FIRST.0)?).ok()
}
