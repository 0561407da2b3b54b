//! The user at the other end of a socket.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::sys::limits::effective_user;
use crate::sys::option::{PlainOption, get};

/// Fails unless the other end belongs to this process's user, or to root.
pub(super) fn check(stream: &UnixStream) -> Result<(), String> {
    let peer = peer(stream).map_err(|error| format!("cannot tell whose socket it is: {error}"))?;
    let own = effective_user();
    if peer == own || peer == 0 {
        return Ok(());
    }
    Err(format!("this process belongs to user {own}, and you are user {peer}"))
}

/// The user who connected: SO_PEERCRED (unix(7)), whose value is `struct ucred`: process, user and group.
fn peer(stream: &UnixStream) -> io::Result<u32> {
    let option = PlainOption::new(libc::SOL_SOCKET, libc::SO_PEERCRED);
    let option = option.ok_or(io::ErrorKind::Unsupported)?;
    let mut credentials = [0; 12];
    let len = get(stream.as_fd(), option, &mut credentials)?;
    match credentials {
        [_, _, _, _, a, b, c, d, ..] if len == credentials.len() => {
            Ok(u32::from_ne_bytes([a, b, c, d]))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
