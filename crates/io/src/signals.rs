//! SIGINT and SIGTERM as a [`Stop`], for the binary.

use std::io;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::Stop;

/// While it lives, SIGINT and SIGTERM set a [`Stop`]; a second one ends the process at once, so
/// that a program that hangs while it ends can still be interrupted.
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
        for signal in [SIGINT, SIGTERM] {
            // They act in this order. The first looks at the flag before the second sets it.
            signals.registered.push(flag::register_conditional_default(signal, stop.flag())?);
            signals.registered.push(flag::register(signal, stop.flag())?);
            signals.registered.push(low_level::pipe::register(signal, stop.writer()?)?);
        }
        Ok(signals)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests;
