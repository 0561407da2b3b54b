//! How many descriptors this process may have open.

use std::io;

use crate::sys::limits;

/// Raises this process's bound of open descriptors (`RLIMIT_NOFILE`) as far as it may by itself, to
/// the hard one, and returns what is in force then. Most systems begin with a soft bound of 1,024
/// for the sake of select(2), which nothing here calls.
pub fn raise_limit() -> io::Result<u64> {
    let (soft, hard) = limits::of_descriptors()?;
    if soft >= hard {
        return Ok(soft);
    }
    limits::set_of_descriptors(hard, hard)?;
    Ok(hard)
}

/// How many descriptors this process may have open now (`RLIMIT_NOFILE`, the soft bound).
pub fn limit() -> io::Result<u64> {
    limits::of_descriptors().map(|(soft, _)| soft)
}

/// Whether a call failed because this process (`EMFILE`) or the machine (`ENFILE`) has no descriptor
/// left: it may succeed when others are closed.
pub fn are_used_up(error: &io::Error) -> bool {
    limits::are_used_up(error)
}
