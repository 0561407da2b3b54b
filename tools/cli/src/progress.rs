//! Progress of a run on the terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::options::ScreenOptions;
use crate::{output, status};

/// A progress line on the standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// Steps of the whole run (>= 1).
    of: u64,
}

impl Progress {
    /// `of` how many steps; none is shown if `quiet`.
    pub(crate) fn new(of: u64, screen: ScreenOptions, quiet: bool) -> Self {
        let shown = !quiet && !screen.no_tui && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::new(of.max(1));
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, of: of.max(1) }
    }

    /// True if it is visible.
    pub(crate) const fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    /// Shows the number of completed steps, and the text.
    pub(crate) fn show(&self, done: u64, text: impl Fn() -> String) {
        status::answer(|| format!("{}%  {}", 100 * done.min(self.of) / self.of, text()));
        if let Some(bar) = &self.bar {
            // It is drawn at the first of the two, and not again at once.
            bar.set_message(text());
            bar.set_position(done);
        }
    }

    /// Prints `text` on the standard output, above the line.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let print = || output::print(text);
        self.bar.as_ref().map_or_else(print, |bar| bar.suspend(print))
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A time as steps of a bar: milliseconds.
pub(crate) fn steps(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `crr` fits 80 columns, `bulk` 40; what is longer is cut, not wrapped.
const TEMPLATE: &str = "{bar:6} {percent:>3}%  {wide_msg}";
