//! Helpers that the tests of devices share.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::thread;

#[path = "../../../../tests/harness/needs.rs"]
pub(crate) mod needs;

/// Runs `test`, which needs these (see [`needs::found`]), in a fresh network namespace.
pub(crate) fn in_namespace(needs: &[&str], test: impl FnOnce() + Send + 'static) {
    if !needs::found(needs) {
        return;
    }
    let name = needs::test();
    let said: Vec<_> = needs.iter().map(|need| (*need).to_owned()).collect();
    let running = thread::spawn(move || {
        // SAFETY: unshare takes no pointer, and a network namespace belongs to this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let error = std::io::Error::last_os_error();
            needs::skip_test(&name, &format!("no network namespace ({error}): run as root"));
            return;
        }
        needs::say(&said);
        needs::furnish_namespace();
        test();
    });
    if let Err(panic) = running.join() {
        std::panic::resume_unwind(panic);
    }
}
