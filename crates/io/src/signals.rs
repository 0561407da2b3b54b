//! SIGINT, SIGTERM and SIGHUP as a [`Stop`], SIGUSR1 as a status request, and others kept until they are taken.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::Stop;
use crate::sys::signal::{FirstSignal, end_at_second, is_ignored};

/// While it exists, SIGINT, SIGTERM and SIGHUP set a [`Stop`]. A second signal, at least
/// [`MEANT_TWICE`] later, ends the process at once, so that a hanging program can be interrupted.
/// SIGHUP stays ignored if it was ignored before, as nohup(1) requires.
///
/// Dropping it removes the handlers; the signals are then ignored, not fatal again.
#[derive(Debug)]
#[must_use = "the signals are handled only while this lives"]
pub struct Signals {
    registered: Vec<SigId>,
    first: Arc<FirstSignal>,
    /// The last signal, or 0.
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Makes the signals set `stop`.
    pub fn install(stop: &Stop) -> io::Result<Self> {
        Self::install_these(stop, &[SIGHUP, SIGTERM, SIGINT])
    }

    /// Makes SIGINT and SIGTERM set `stop`, and leaves SIGHUP to [`KeptSignals`].
    pub fn install_without_hangup(stop: &Stop) -> io::Result<Self> {
        Self::install_these(stop, &[SIGTERM, SIGINT])
    }

    fn install_these(stop: &Stop, list: &[i32]) -> io::Result<Self> {
        let first = Arc::new(FirstSignal::new(stop.writer()?));
        let number = Arc::<AtomicUsize>::default();
        let mut signals = Self { registered: Vec::new(), first: Arc::clone(&first), number };
        // SIGINT last: a process that is seen to handle it (`SigCgt` in /proc) handles all of them.
        for signal in list.iter().copied() {
            if signal == SIGHUP && is_ignored(signal)? {
                continue;
            }
            let number = Arc::clone(&signals.number);
            signals.registered.push(flag::register_usize(signal, number, signal as usize)?);
            // The flag is set before the sleepers wake.
            signals.registered.push(flag::register(signal, stop.flag())?);
            let first = Arc::clone(&first);
            signals.registered.push(end_at_second(signal, first, MEANT_TWICE)?);
        }
        Ok(signals)
    }

    /// True if the last of them was SIGTERM.
    pub fn are_termination(&self) -> bool {
        self.number.load(Ordering::Relaxed) == SIGTERM as usize
    }

    /// True if one of them has arrived.
    pub fn have_come(&self) -> bool {
        self.first.has_come()
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error. By default SIGXFSZ ends
/// the process without a message.
pub fn survive_file_limits() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(|_for_good| ())
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Makes each SIGUSR1 set `asked` from now on, instead of ending the process.
pub fn on_status_request(asked: Arc<AtomicBool>) -> io::Result<()> {
    flag::register(SIGUSR1, asked).map(|_for_good| ())
}

/// While it exists, SIGUSR1 is a status request and not fatal.
#[derive(Debug)]
#[must_use = "the signal is handled only while this lives"]
pub struct StatusRequest {
    asked: PipeReader,
    registered: SigId,
}

impl StatusRequest {
    /// Installs the handler. Fails if the system has no descriptor.
    pub fn install() -> io::Result<Self> {
        let (asked, writer) = io::pipe()?;
        let registered = low_level::pipe::register(SIGUSR1, writer)?;
        Ok(Self { asked, registered })
    }

    /// Takes the pending requests; several signals count as one. Waits unless this is readable.
    pub fn take(&self) -> io::Result<()> {
        (&self.asked).read(&mut [0; 64]).map(drop)
    }
}

impl AsFd for StatusRequest {
    /// Readable after the signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.asked.as_fd()
    }
}

impl Drop for StatusRequest {
    fn drop(&mut self) {
        low_level::unregister(self.registered);
    }
}

/// While it exists, these signals are kept until they are taken, and are not fatal. Those that were
/// ignored before stay ignored. A program that is executed meanwhile has the default effects.
#[derive(Debug)]
#[must_use = "the signals are kept only while this lives"]
pub struct KeptSignals {
    wakes: PipeReader,
    kept: Vec<(i32, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
}

impl KeptSignals {
    /// Installs the handlers. Fails if the system has no descriptor.
    pub fn install(signals: &[i32]) -> io::Result<Self> {
        let (wakes, writer) = io::pipe()?;
        let mut all = Self { wakes, kept: Vec::new(), registered: Vec::new() };
        for signal in signals.iter().copied() {
            if is_ignored(signal)? {
                continue;
            }
            let has_come = Arc::new(AtomicBool::new(false));
            // The flag is set before the sleeper wakes.
            all.registered.push(flag::register(signal, Arc::clone(&has_come))?);
            all.registered.push(low_level::pipe::register(signal, writer.try_clone()?)?);
            all.kept.push((signal, has_come));
        }
        Ok(all)
    }

    /// Takes the signals that came since the last call; several of one kind count as one. Waits unless
    /// this is readable.
    pub fn take(&self) -> io::Result<impl Iterator<Item = i32>> {
        let _count = (&self.wakes).read(&mut [0; 64])?;
        let come = self.kept.iter().filter(|(_, has_come)| has_come.swap(false, Ordering::AcqRel));
        Ok(come.map(|(signal, _)| *signal))
    }
}

impl AsFd for KeptSignals {
    /// Readable after a signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

impl Drop for KeptSignals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// The signal of a hangup, which asks services to reload.
pub const HANGUP: i32 = SIGHUP;
/// Least delay after which a signal counts as a second one: `timeout` sends one to the program and
/// to its group, within microseconds.
pub const MEANT_TWICE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
