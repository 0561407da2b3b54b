//! Descriptors that ran out: which bound was met, and what to do about it.

use std::io;

use whimbrel_io::descriptors::{are_used_up, limit};

/// Names the exhausted resource, its limit, and the remedy.
pub(crate) fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(ENFILE) => format!(
            "no file descriptor is free on this machine, which has {} (fs.file-max): raise the \
             limit, or end other programs",
            machine_limit().unwrap_or_else(|| "no more".into())
        ),
        _ if are_used_up(error) => {
            format!("no file descriptor is free of {}: {REMEDY}", own_limit())
        }
        _ => error.to_string(),
    }
}

/// The error with that text, if a descriptor was missing.
pub(crate) fn explained(error: io::Error) -> io::Error {
    if are_used_up(&error) { io::Error::new(error.kind(), explain(&error)) } else { error }
}

/// The bound of this process, as in `the 1024 that this process may have (ulimit -n)`.
pub(crate) fn own_limit() -> String {
    let count = limit().map_or_else(|_| "those".into(), |limit| format!("the {limit}"));
    format!("{count} that this process may have (ulimit -n)")
}

fn machine_limit() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/fs/file-max").ok()?;
    Some(text.trim().to_owned())
}

const REMEDY: &str = "raise the limit, for example `ulimit -n 65536`";
/// Linux' number for it.
const ENFILE: i32 = 23;
