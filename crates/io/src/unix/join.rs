//! How two processes find each other at one path.

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
    /// The one that came first, and its peer if there is one.
    First { listener: Listener, peer: Option<SeqPacket> },
    /// The one that connected.
    Second { peer: SeqPacket },
}

/// The socket at the path. It goes with its file.
#[derive(Debug)]
pub(super) struct Listener {
    socket: SeqPacket,
    path: PathBuf,
}

impl End {
    /// The other end, if it is there.
    pub(super) fn peer(&self) -> Option<&SeqPacket> {
        match self {
            Self::First { peer, .. } => peer.as_ref(),
            Self::Second { peer } => Some(peer),
        }
    }

    /// Takes the next peer in, if there is none and one waits.
    pub(super) fn welcome(&mut self) -> io::Result<()> {
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

/// Connects to whoever listens at `path`; if nobody does, listens there. A file that a process left
/// behind is replaced. The folder is locked meanwhile (flock), or two that start at once could each
/// take the other's new file for an old one.
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

/// Nobody listens at the file: it goes, if it is a socket's.
fn remove_stale(path: &Path) -> Result<(), UnixError> {
    let refused = |error| UnixError::refused("remove an old socket", path, error);
    if !fs::symlink_metadata(path).map_err(refused)?.file_type().is_socket() {
        return Err(UnixError::NotASocket(path.into()));
    }
    fs::remove_file(path).map_err(refused)
}

/// Locks the folder of `path` for as long as the file lives. Whoever has it locked is about to let
/// it go; if not, it is somebody else's lock and cannot be waited for.
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
        // Somebody may have removed it before.
        let _ = fs::remove_file(&self.path);
    }
}

/// Who wait while there is a peer.
const BACKLOG: i32 = 4;
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
