//! The path of a control socket, and the checks of its folder.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ControlError;
use crate::sys::limits::effective_user;
use crate::sys::unix_stream;
use crate::text;

/// Place of a control socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlPlace {
    /// The first of [`folders`] that can be used, under the number of the process.
    Default,
    /// This path. Its folder must exist.
    Path(PathBuf),
}

/// Returns the folders of control sockets, in the order in which they are tried: `whimbrel` in
/// `XDG_RUNTIME_DIR`, or without that variable in `/run`, and `whimbrel-UID` in the temporary folder.
pub fn folders() -> Vec<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|it| it.is_absolute());
    let first = runtime.unwrap_or_else(|| "/run".into()).join("whimbrel");
    let own = env::temp_dir().join(format!("whimbrel-{}", effective_user()));
    vec![first, own]
}

/// A bound socket's file, which is removed at the end unless another process has replaced it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: Option<(u64, u64)>,
    /// The folder of sockets with default paths: the last of them removes it.
    folder: Option<PathBuf>,
}

impl SocketFile {
    /// Binds a socket at `place`, readable and writable only for this user.
    pub(super) fn bind(place: &ControlPlace) -> Result<(Self, UnixListener), ControlError> {
        match place {
            ControlPlace::Path(path) => {
                let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
                check_is_folder(folder.unwrap_or(Path::new(".")))?;
                Self::bind_at(path)
            }
            ControlPlace::Default => {
                let mut refused = None;
                // Twice: another process may remove an empty folder that this one is about to use.
                for folder in folders().into_iter().flat_map(|folder| [folder.clone(), folder]) {
                    match own_folder(&folder).and_then(|()| Self::bind_in(&folder)) {
                        Ok((mut file, listener)) => {
                            sweep(&folder);
                            file.folder = Some(folder);
                            return Ok((file, listener));
                        }
                        Err(error) => {
                            // It stays if it is in use.
                            let _ = fs::remove_dir(folder);
                            refused = Some(error);
                        }
                    }
                }
                Err(refused.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound).into()))
            }
        }
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Binds a socket under the number of this process, with a second number if it has several stacks.
    fn bind_in(folder: &Path) -> Result<(Self, UnixListener), ControlError> {
        let pid = std::process::id();
        let first = Self::bind_at(&folder.join(format!("{pid}.sock")));
        (2..=MOST_STACKS).fold(first, |bound, number| match bound {
            Err(ControlError::Taken { .. }) => {
                Self::bind_at(&folder.join(format!("{pid}-{number}.sock")))
            }
            bound => bound,
        })
    }

    fn bind_at(path: &Path) -> Result<(Self, UnixListener), ControlError> {
        remove_stale(path)?;
        let failed = |error| ControlError::Bind { path: text::path(path).to_string(), error };
        let listener = at_short_path(path, UnixListener::bind).map_err(failed)?;
        let file = Self { path: path.to_owned(), identity: identity(path), folder: None };
        // Until here the umask decides, and the check of each peer.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok((file, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // The folder may have gone.
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            // It stays while another process has a socket in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Connects to the control socket at `path`, within `limit`.
///
/// # Errors
///
/// Returns the error of connect(2), also if the folder of a long path cannot be opened. With
/// [`io::ErrorKind::WouldBlock`] the queue of the socket stayed full, because its process does not run.
pub fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    at_short_path(path, |path| unix_stream::connect(&path, limit))
}

/// Calls `act` with a path of `path`'s socket that has room in an address (unix(7)): of a long one, by the descriptor
/// of its folder.
fn at_short_path<T>(path: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > MOST_BYTES => {
            let folder = fs::File::open(folder)?;
            act(Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
        }
        _ => act(path.to_owned()),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|it| (it.dev(), it.ino()))
}

/// Removes the socket of a process that has ended; anything else at the path is an error.
fn remove_stale(path: &Path) -> Result<(), ControlError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let taken = |why| ControlError::Taken { path: text::path(path).to_string(), why };
    if !found.file_type().is_socket() {
        return Err(taken("is there, and is no socket: use another path"));
    }
    match connect(path, STALE_CHECK) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(taken("a process that does not run listens there: use another path"));
        }
        Err(_) => return Err(taken("is another user's socket: use another path")),
        Ok(_) => return Err(taken("a process listens there: use another path")),
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ControlError::Bind { path: text::path(path).to_string(), error })
        }
        _ => Ok(()),
    }
}

/// Removes the sockets of processes that were killed. One of another PID namespace is kept if it answers, and
/// one that is about to listen if its process exists.
fn sweep(folder: &Path) {
    let paths = fs::read_dir(folder).into_iter().flatten().filter_map(|it| Some(it.ok()?.path()));
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".sock"));
        let pid = name.and_then(|name| name.split('-').next()?.parse::<u32>().ok());
        let has_ended = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if has_ended
            && connect(&path, STALE_CHECK)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            // Another process may have removed it.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Creates the folder if it is missing, and checks that only this user can use it.
fn own_folder(folder: &Path) -> Result<(), ControlError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(refuse(folder, format!("cannot be created: {error}"), USE_PATH));
        }
        _ => {}
    }
    check_is_folder(folder)?;
    let found = fs::symlink_metadata(folder).map_err(|error| unreadable(folder, &error))?;
    let (user, mode) = (effective_user(), found.mode() & 0o777);
    if found.uid() != user {
        let why = format!("belongs to user {}, and this process to {user}", found.uid());
        return Err(refuse(folder, why, USE_PATH));
    }
    if mode & 0o077 != 0 {
        let why = format!("has mode {mode:03o}, so that others can use it");
        return Err(refuse(folder, why, "set it to 700, or use --control PATH"));
    }
    Ok(())
}

/// Checks that a path is a folder and no symbolic link, which another user may have made.
fn check_is_folder(folder: &Path) -> Result<(), ControlError> {
    let found = fs::symlink_metadata(folder).map_err(|error| unreadable(folder, &error))?;
    if found.is_symlink() {
        return Err(refuse(folder, "is a symbolic link".into(), "give the folder that it names"));
    }
    if !found.is_dir() {
        return Err(refuse(folder, "is no folder".into(), USE_PATH));
    }
    Ok(())
}

fn unreadable(folder: &Path, error: &io::Error) -> ControlError {
    refuse(folder, error.to_string(), "create it, or use another")
}

fn refuse(folder: &Path, why: String, remedy: &'static str) -> ControlError {
    ControlError::Folder { folder: text::path(folder).to_string(), why, remedy }
}

const USE_PATH: &str = "use --control PATH, or --control off";
/// Bytes of a socket's path at most: its address has 108, with the NUL behind it (unix(7)).
const MOST_BYTES: usize = 107;
/// Time for a process to take a connection, by which it is known to live.
const STALE_CHECK: Duration = Duration::from_millis(100);
/// Stacks of one process with default paths.
const MOST_STACKS: u32 = 64;

#[cfg(test)]
mod tests;
