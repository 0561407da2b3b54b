//! malloc_trim(3): the allocator gives back to the system what nobody uses.

/// Gives back all whole pages that are free, wherever they lie. Takes some milliseconds where much is.
pub(crate) fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it reads and writes nothing but the allocator's own, under its locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
