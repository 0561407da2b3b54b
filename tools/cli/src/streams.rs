//! The standard streams: all that the program prints but screens, access logs and captures passes here, and
//! nothing in it that a peer or a file brought acts on a terminal.

use std::io::{self, Write};

use anstyle::Style;
use whimbrel_base::foreign::printable;

/// Writes on what stands for the standard output. False if its reader is gone: work goes on without it, unless it
/// has no other end.
pub(crate) fn write(out: impl Write, text: &str) -> io::Result<bool> {
    write_painted(out, text, str::to_owned)
}

/// Writes as [`write`] does, in the styles of `paint`, which are the only ones in the text.
pub(crate) fn write_painted(
    mut out: impl Write,
    text: &str,
    paint: impl FnOnce(&str) -> String,
) -> io::Result<bool> {
    match out.write_all(paint(&printable(text)).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes on the standard error. That its reader may be gone stops nothing.
pub(crate) fn tell(text: &str) {
    let _ = anstream::stderr().write_all(printable(text).as_bytes());
}

/// Writes a line behind a word in this style.
pub(crate) fn tell_in(style: Style, word: &str, text: &str) {
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#} {}", printable(text));
}
