//! Limits on the descriptors that this process may have open.

use std::io;
#[cfg(feature = "control")]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::limits;

/// Raises the process's limit of open descriptors (`RLIMIT_NOFILE`) to the hard limit and returns
/// the limit in force then. Most systems begin with a soft limit of 1,024 for the sake of
/// select(2), which this crate never calls.
pub fn raise_limit() -> io::Result<u64> {
    let (soft, hard) = limits::of_descriptors()?;
    if soft >= hard {
        return Ok(soft);
    }
    limits::set_of_descriptors(hard, hard)?;
    Ok(hard)
}

/// Returns the number of descriptors that this process may have open (`RLIMIT_NOFILE`, the soft
/// limit).
pub fn limit() -> io::Result<u64> {
    limits::of_descriptors().map(|(soft, _)| soft)
}

/// Takes ownership of descriptors that the service manager passed to this process at its start, such as
/// those of socket units (sd_listen_fds(3)), and keeps them from children. Returns none at a second call.
pub fn take_passed(passed: impl IntoIterator<Item = i32>) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    passed.into_iter().map(limits::take_passed).collect()
}

/// True if a call failed because this process (`EMFILE`) or the machine (`ENFILE`) has no
/// descriptor left. The call may succeed after others are closed.
pub fn are_used_up(error: &io::Error) -> bool {
    limits::are_used_up(error)
}

/// A descriptor that is given up when no other is left, so that one client more can be accepted: then above all, an
/// operator needs an answer.
#[cfg(feature = "control")]
#[derive(Debug)]
pub(crate) struct SpareDescriptor(Option<OwnedFd>);

#[cfg(feature = "control")]
impl SpareDescriptor {
    /// Takes one, a copy of the listener's, if there is one.
    pub(crate) fn of(listener: &impl AsFd) -> Self {
        Self(listener.as_fd().try_clone_to_owned().ok())
    }

    /// Accepts a client; without a free descriptor, with the spare one.
    pub(crate) fn accept<L: AsFd, T>(
        &mut self,
        listener: &L,
        accept: impl Fn(&L) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.0.is_none() {
            *self = Self::of(listener);
        }
        match accept(listener) {
            Err(error) if are_used_up(&error) && self.0.take().is_some() => accept(listener),
            result => result,
        }
    }
}

#[cfg(all(test, feature = "control"))]
mod tests;
