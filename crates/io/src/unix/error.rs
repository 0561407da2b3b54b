//! Errors of opening a socket to another process.

use std::io;
use std::path::{Path, PathBuf};

use crate::text;

/// Reason why a socket to another process could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixError {
    /// The path is not a socket.
    #[error("{} exists and is no socket: choose another path, or remove it", text::path(.0))]
    NotASocket(PathBuf),
    /// The path is a socket of another kind.
    #[error(
        "{} is the socket of another program, which speaks streams or datagrams: choose another path",
        text::path(.0)
    )]
    OtherSocket(PathBuf),
    /// Both ends are taken, and other processes wait.
    #[error(
        "{} has a process at each end, and others wait: end one of them, or choose another path",
        text::path(.0)
    )]
    Busy(PathBuf),
    /// Another program has locked the folder.
    #[error(
        "the folder of {} is locked (flock) by another program: choose a path in another folder",
        text::path(.0)
    )]
    Locked(PathBuf),
    /// The system requires a privilege.
    #[error(
        "no privilege to {doing} at {path} ({error}): choose a path in a folder of your own, or run \
         both processes as one user",
        path = text::path(.path)
    )]
    Privilege {
        /// The refused operation, for messages.
        doing: &'static str,
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The folder does not exist.
    #[error("there is no folder for {}: make it (mkdir), or choose another path", text::path(.0))]
    NoFolder(PathBuf),
    /// Another refusal by the system.
    #[error("cannot {doing} at {path}: {error}", path = text::path(.path))]
    Refused {
        /// The refused operation, for messages.
        doing: &'static str,
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl UnixError {
    /// True if a privilege is missing: exit code 4 of the command line. Otherwise the code is 1.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::Privilege { .. })
    }

    pub(super) fn refused(doing: &'static str, path: &Path, error: io::Error) -> Self {
        let path = path.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege { doing, path, error },
            io::ErrorKind::NotFound => Self::NoFolder(path),
            _ => Self::Refused { doing, path, error },
        }
    }
}
