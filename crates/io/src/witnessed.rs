//! What is written beside a run, and may end before it: whoever asked for it is told once and at once.

use std::io::{self, Write};

/// Told why what was to be written ends before its time.
pub type Witness = Box<dyn FnOnce(&io::Error) + Send>;

/// A writer that ends at its first failure.
pub(crate) struct Witnessed {
    out: Box<dyn Write + Send>,
    /// Why no more can be written, until somebody was told.
    failure: Option<io::Error>,
    /// Nothing is written any more.
    broken: bool,
    witness: Option<Witness>,
}

impl Witnessed {
    pub(crate) fn new(witness: Option<Witness>, out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), failure: None, broken: false, witness }
    }

    /// Nothing is written any more.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes, unless that failed before.
    pub(crate) fn write(&mut self, octets: &[u8]) {
        if !self.broken
            && let Err(failure) = self.out.write_all(octets)
        {
            self.break_off(failure);
        }
    }

    /// Goes on elsewhere, once all is written that was to be written here.
    pub(crate) fn go_on(&mut self, next: impl FnOnce() -> io::Result<Box<dyn Write + Send>>) {
        if self.broken {
            return;
        }
        match self.out.flush().and_then(|()| next()) {
            Ok(out) => self.out = out,
            Err(failure) => self.break_off(failure),
        }
    }

    /// The end, or the end of a part: why no more could be written, which the first who asks is told.
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
        // The file is closed, and what waited for it is let go of.
        self.out = Box::new(io::sink());
        if let Some(witness) = self.witness.take() {
            witness(&failure);
        }
        self.failure = Some(failure);
    }
}
