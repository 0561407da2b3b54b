//! What the tests of devices share.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::thread;

#[path = "../../../../tests/harness/needs.rs"]
pub(crate) mod needs;

/// Runs `test` in a fresh network namespace.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    in_namespace_with(&[], test);
}

/// Runs `test`, which needs these programs, in a fresh network namespace.
pub(crate) fn in_namespace_with(programs: &[&str], test: impl FnOnce() + Send + 'static) {
    if !needs::found(programs) {
        return;
    }
    let name = needs::test();
    let result = thread::spawn(move || {
        // SAFETY: unshare takes no pointer, and a network namespace belongs to this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let error = std::io::Error::last_os_error();
            needs::skip_test(&name, &format!("no network namespace ({error}): run as root"));
            return;
        }
        test();
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}
