//! Returns the allocator's free memory to the system (malloc_trim(3)).

/// Returns all free whole pages to the system. Takes some milliseconds if there are many.
pub(crate) fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it reads and writes nothing but the allocator's own, under its locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
