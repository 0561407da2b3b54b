//! What a second signal does: a handler that a safe library cannot offer, because it tells the time.
//! And whether a signal is ignored.

use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use signal_hook::{SigId, low_level};

use whimbrel_base::Instant;

use crate::Clock;

/// When the first signal of several came.
#[derive(Debug)]
pub(crate) struct FirstSignal {
    clock: Clock,
    /// By that clock, nanoseconds.
    came: AtomicU64,
    /// What is written to when it comes.
    wakes: PipeWriter,
}

impl FirstSignal {
    /// None came yet. When one does, whoever reads the other end of this pipe wakes.
    pub(crate) fn new(wakes: PipeWriter) -> Self {
        Self { clock: Clock::start(), came: AtomicU64::new(NONE), wakes }
    }

    /// True if one came.
    pub(crate) fn has_come(&self) -> bool {
        self.came.load(Ordering::Relaxed) != NONE
    }

    /// One comes `now`. Returns whether it is a second one, `gap` or more behind the first.
    fn take(&self, now: Instant, gap: Duration) -> bool {
        let now = now.as_nanos();
        match self.came.compare_exchange(NONE, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                // Once in all: the pipe cannot fill.
                let _ = (&self.wakes).write(&[1]);
                false
            }
            Err(first) => Duration::from_nanos(now.saturating_sub(first)) >= gap,
        }
    }
}

/// From now on `signal` wakes whoever sleeps, and `gap` or more behind the first does what it does without
/// a handler.
pub(crate) fn end_at_second(
    signal: i32,
    first: Arc<FirstSignal>,
    gap: Duration,
) -> io::Result<SigId> {
    let act = move || {
        // SAFETY: the place of this thread's errno, which lives as long as the thread.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: the same. What was interrupted may be about to read it.
        let before = unsafe { *errno };
        if first.take(first.clock.now(), gap) {
            // It fails only for signals that cannot be sent.
            let _ = low_level::emulate_default_handler(signal);
        }
        // SAFETY: the same.
        unsafe { *errno = before };
    };
    // SAFETY: the handler reads a clock, changes an atomic, may write to a pipe and may send a signal.
    // It allocates nothing and takes no lock, so it may interrupt whatever does.
    unsafe { low_level::register(signal, act) }
}

/// Whether this process ignores `signal`.
pub(crate) fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: a `sigaction` of zeros is one: no handler, no flags, an empty mask.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes what stands there now into what was lent, and changes nothing.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(now.sa_sigaction == libc::SIG_IGN)
}

const NONE: u64 = u64::MAX;

#[cfg(test)]
mod tests;
