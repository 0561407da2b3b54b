//! Descriptors: small numbers, the lowest free one first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::datagram::Datagrams;
use crate::epoll::Epoll;
use crate::socket::Socket;
use crate::{Errno, Fd};

/// What a descriptor stands for.
#[derive(Debug)]
pub(crate) enum File {
    Socket(Socket),
    Datagrams(Datagrams),
    Epoll(Epoll),
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

    /// Whether one more may be opened.
    pub(crate) fn check_room(&self) -> Result<(), Errno> {
        if self.len() < self.limit { Ok(()) } else { Err(Errno::EMFILE) }
    }

    /// Gives the lowest free number to `file`.
    pub(crate) fn open(&mut self, file: File) -> Result<Fd, Errno> {
        self.check_room()?;
        let place = match self.free.pop_first() {
            Some(place) => place,
            None => {
                self.files.push(None);
                self.files.len() - 1
            }
        };
        if let Some(slot) = self.files.get_mut(place) {
            *slot = Some(file);
        }
        Ok(Fd(Fd::FIRST.0 + place as i32))
    }

    pub(crate) fn get(&self, fd: Fd) -> Result<&File, Errno> {
        place(fd).and_then(|place| self.files.get(place)?.as_ref()).ok_or(Errno::EBADF)
    }

    pub(crate) fn get_mut(&mut self, fd: Fd) -> Result<&mut File, Errno> {
        place(fd).and_then(|place| self.files.get_mut(place)?.as_mut()).ok_or(Errno::EBADF)
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

fn place(fd: Fd) -> Option<usize> {
    usize::try_from(fd.0.checked_sub(Fd::FIRST.0)?).ok()
}
