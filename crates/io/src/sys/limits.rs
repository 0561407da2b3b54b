//! getrlimit(2) and setrlimit(2) for descriptors, and geteuid(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::check;

/// Returns the soft and the hard limit of descriptors of this process.
pub(crate) fn of_descriptors() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one structure, which is lent exclusively.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Returns the effective user of this process.
#[cfg(feature = "control")]
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid takes nothing, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sets the soft and the hard limit of descriptors.
pub(crate) fn set_of_descriptors(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: setrlimit reads one structure, which outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(|_| ())
}

/// True if a call failed because this process, or the machine, has no descriptor left.
pub(crate) fn are_used_up(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Takes ownership of a descriptor that was open when this process began. The caller calls this once for each.
pub(crate) fn take_passed(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: fcntl changes a flag of the descriptor, or fails if there is none.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and nothing in this process has opened it: its parent has passed it on.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
