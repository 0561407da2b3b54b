//! Output written during a run, such as a capture. If it ends early, its owner is informed once and
//! at once.

use std::io::{self, Write};

/// Callback that receives the error when output ends early.
pub type ErrorHandler = Box<dyn FnOnce(&io::Error) + Send>;

/// A writer that ends at its first failure.
pub(crate) struct CheckedWriter {
    out: Box<dyn Write + Send>,
    /// The write error, until it was returned once.
    failure: Option<io::Error>,
    /// True once nothing more is written.
    broken: bool,
    handler: Option<ErrorHandler>,
}

impl CheckedWriter {
    pub(crate) fn new(handler: Option<ErrorHandler>, out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), failure: None, broken: false, handler }
    }

    /// True once nothing more is written.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes `bytes`, unless a write failed before.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if !self.broken
            && let Err(failure) = self.out.write_all(bytes)
        {
            self.break_off(failure);
        }
    }

    /// Continues in another output, once this one is flushed.
    pub(crate) fn continue_in(&mut self, next: impl FnOnce() -> io::Result<Box<dyn Write + Send>>) {
        if self.broken {
            return;
        }
        match self.out.flush().and_then(|()| next()) {
            Ok(out) => self.out = out,
            Err(failure) => self.break_off(failure),
        }
    }

    /// Ends the output, or a part of it. Returns the write error, which only the first caller gets.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if !self.broken
            && let Err(failure) = self.out.flush()
        {
            self.break_off(failure);
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    fn break_off(&mut self, failure: io::Error) {
        self.broken = true;
        // This closes the file and frees its buffer.
        self.out = Box::new(io::sink());
        if let Some(handler) = self.handler.take() {
            handler(&failure);
        }
        self.failure = Some(failure);
    }
}
