//! A handler that ends the process at a second signal, and a check for ignored signals. Safe
//! libraries cannot offer this handler, because it reads the time.

use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use signal_hook::{SigId, low_level};

use whimbrel_base::Instant;

use crate::Clock;

/// Time of the first of several signals.
#[derive(Debug)]
pub(crate) struct FirstSignal {
    clock: Clock,
    /// Time in nanoseconds on that clock.
    came: AtomicU64,
    /// Written to when the signal arrives.
    wakes: PipeWriter,
}

impl FirstSignal {
    /// Creates the record before any signal. A signal wakes the reader of this pipe.
    pub(crate) fn new(wakes: PipeWriter) -> Self {
        Self { clock: Clock::start(), came: AtomicU64::new(NONE), wakes }
    }

    /// True if a signal has arrived.
    pub(crate) fn has_come(&self) -> bool {
        self.came.load(Ordering::Relaxed) != NONE
    }

    /// Records a signal at `now`. Returns whether it is a second one, at least `gap` after the
    /// first.
    fn take(&self, now: Instant, gap: Duration) -> bool {
        let now = now.as_nanos();
        match self.came.compare_exchange(NONE, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                // This is written once, so the pipe cannot fill.
                let _ = (&self.wakes).write(&[1]);
                false
            }
            Err(first) => Duration::from_nanos(now.saturating_sub(first)) >= gap,
        }
    }
}

/// Makes `signal` wake the sleepers. At least `gap` after the first, a signal has its default
/// effect.
pub(crate) fn end_at_second(
    signal: i32,
    first: Arc<FirstSignal>,
    gap: Duration,
) -> io::Result<SigId> {
    let act = move || {
        // SAFETY: the place of this thread's errno, which lives as long as the thread.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above. The interrupted code may be about to read it.
        let before = unsafe { *errno };
        if first.take(first.clock.now(), gap) {
            // It fails only for signals that cannot be sent.
            let _ = low_level::emulate_default_handler(signal);
        }
        // SAFETY: as above.
        unsafe { *errno = before };
    };
    // SAFETY: the handler reads a clock, changes an atomic, may write to a pipe and may send a signal.
    // It allocates nothing and takes no lock, so it may interrupt whatever does.
    unsafe { low_level::register(signal, act) }
}

/// True if this process ignores `signal`.
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
