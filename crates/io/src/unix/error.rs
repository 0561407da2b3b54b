//! Why a socket to another process could not be had, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::text;

/// Why a socket to another process could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixError {
    /// Something else has the name.
    #[error("{} exists and is no socket: choose another path, or remove it", text::path(.0))]
    NotASocket(PathBuf),
    /// A socket of another kind.
    #[error(
        "{} is the socket of another program, which speaks streams or datagrams: choose another path",
        text::path(.0)
    )]
    OtherSocket(PathBuf),
    /// Both ends are taken, and processes wait already.
    #[error(
        "{} has a process at each end, and others wait: end one of them, or choose another path",
        text::path(.0)
    )]
    Busy(PathBuf),
    /// Somebody holds the folder.
    #[error(
        "the folder of {} is locked (flock) by another program: choose a path in another folder",
        text::path(.0)
    )]
    Locked(PathBuf),
    /// The system does not allow that without a privilege.
    #[error(
        "no privilege to {doing} at {path} ({error}): choose a path in a folder of your own, or run \
         both processes as one user",
        path = text::path(.path)
    )]
    Privilege {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The folder is not there.
    #[error("there is no folder for {}: make it (mkdir), or choose another path", text::path(.0))]
    NoFolder(PathBuf),
    /// Anything else that the system refused.
    #[error("cannot {doing} at {path}: {error}", path = text::path(.path))]
    Refused {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl UnixError {
    /// Whether a privilege is missing: exit code 4 of the command line. Otherwise 1.
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
