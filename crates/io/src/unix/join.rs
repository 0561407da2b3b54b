//! Connects two processes that use the same path.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{UnixError, is_transient};
use crate::sys::seqpacket::SeqPacket;

/// One of the two ends.
#[derive(Debug)]
pub(super) enum End {
    /// The process that listens, and its peer, if there is one.
    First { listener: Listener, peer: Option<SeqPacket> },
    /// The process that connected.
    Second { peer: SeqPacket },
}

/// The listening socket. Its file is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    socket: SeqPacket,
    path: PathBuf,
}

impl End {
    /// Returns the other end, if it is connected.
    pub(super) fn peer(&self) -> Option<&SeqPacket> {
        match self {
            Self::First { peer, .. } => peer.as_ref(),
            Self::Second { peer } => Some(peer),
        }
    }

    /// Accepts the next peer, if there is none and one waits.
    pub(super) fn accept_peer(&mut self) -> io::Result<()> {
        if let Self::First { listener, peer: peer @ None } = self {
            match listener.socket.accept() {
                Ok(new) => *peer = Some(new),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Connects to the process that listens at `path`; if there is none, listens there. A stale socket
/// file is replaced. The folder is locked meanwhile (flock): otherwise two processes that start at
/// once could each remove the other's new file as stale.
pub(super) fn join(path: &Path) -> Result<End, UnixError> {
    let refused = |doing| move |error| UnixError::refused(doing, path, error);
    let _lock = lock_folder(path)?;
    let socket = SeqPacket::new().map_err(refused("make a socket"))?;
    let Err(error) = socket.connect(path) else { return Ok(End::Second { peer: socket }) };
    match error.raw_os_error() {
        Some(libc::ENOENT) => {}
        Some(libc::ECONNREFUSED) => remove_stale(path)?,
        Some(libc::EPROTOTYPE) => return Err(UnixError::OtherSocket(path.into())),
        Some(libc::EAGAIN) => return Err(UnixError::Busy(path.into())),
        _ => return Err(UnixError::refused("connect", path, error)),
    }
    let socket = SeqPacket::new().map_err(refused("make a socket"))?;
    socket.listen(path, BACKLOG).map_err(refused("listen"))?;
    Ok(End::First { listener: Listener { socket, path: path.into() }, peer: None })
}

/// Removes the file at `path`, if it is a socket on which no process listens.
fn remove_stale(path: &Path) -> Result<(), UnixError> {
    let refused = |error| UnixError::refused("remove an old socket", path, error);
    if !fs::symlink_metadata(path).map_err(refused)?.file_type().is_socket() {
        return Err(UnixError::NotASocket(path.into()));
    }
    fs::remove_file(path).map_err(refused)
}

/// Locks the folder of `path` for as long as the file lives. Another process of this crate releases
/// it within moments; a lock held longer belongs to another program and is an error.
fn lock_folder(path: &Path) -> Result<File, UnixError> {
    let refused = |error| UnixError::refused("lock the folder", path, error);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = File::open(parent.unwrap_or(Path::new("."))).map_err(refused)?;
    for _ in 0..LOCK_TRIES {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(refused(error)),
        }
    }
    Err(UnixError::Locked(path.into()))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Limit of processes that wait while there is a peer.
const BACKLOG: i32 = 4;
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
