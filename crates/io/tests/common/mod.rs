//! What the tests of devices share.

use std::thread;

/// Runs `test` in a fresh network namespace.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let result = thread::spawn(move || {
        // SAFETY: unshare takes no pointer, and a network namespace belongs to this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let error = std::io::Error::last_os_error();
            let required = std::env::var_os("WHIMBREL_REQUIRE_NET").is_some();
            assert!(!required, "WHIMBREL_REQUIRE_NET is set, and there is no namespace: {error}");
            eprintln!("SKIPPED: cannot make a network namespace ({error}); run as root");
            return;
        }
        test();
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}
