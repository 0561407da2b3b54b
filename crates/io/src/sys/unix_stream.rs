//! AF_UNIX streams whose connect(2) has a time limit, unlike the standard library's.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::seqpacket::address;
use super::{check, own};

/// Connects to the process that listens at `path`. If its queue is full for longer than `limit`, the error is
/// [`io::ErrorKind::WouldBlock`].
pub(crate) fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let (address, len) = address(path)?;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointer.
    let stream = UnixStream::from(own(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?);
    // connect(2) waits for room as long as a send waits (socket(7), SO_SNDTIMEO).
    stream.set_write_timeout(Some(limit))?;
    // SAFETY: the address outlives the call, and `len` bytes of it are its own.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), len) })?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}
