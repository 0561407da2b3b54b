//! SIGINT and SIGTERM as a [`Stop`], for the binary.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::Stop;
use crate::sys::signal::{FirstSignal, end_at_second};

/// While it lives, SIGINT and SIGTERM set a [`Stop`]; a second one, [`MEANT_TWICE`] later or more, ends
/// the process at once, so that a program that hangs while it ends can still be interrupted.
///
/// Dropping it takes the handlers out; the two signals are then ignored, not fatal again.
#[derive(Debug)]
#[must_use = "the signals are handled only while this lives"]
pub struct Signals {
    registered: Vec<SigId>,
}

impl Signals {
    /// Lets SIGINT and SIGTERM set `stop`.
    pub fn install(stop: &Stop) -> io::Result<Self> {
        let mut signals = Self { registered: Vec::with_capacity(6) };
        let first = Arc::new(FirstSignal::new());
        for signal in [SIGINT, SIGTERM] {
            let first = Arc::clone(&first);
            signals.registered.push(end_at_second(signal, first, MEANT_TWICE)?);
            signals.registered.push(flag::register(signal, stop.flag())?);
            signals.registered.push(low_level::pipe::register(signal, stop.writer()?)?);
        }
        Ok(signals)
    }
}

/// From now on a file that has reached its limit (`ulimit -f`) is an error of the write, which can be
/// told, and not SIGXFSZ, which ends a process without a word.
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

/// How much later than the first a signal is a second one: `timeout` sends one to the program and to
/// its group, within microseconds.
pub const MEANT_TWICE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
