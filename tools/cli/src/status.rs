//! SIGUSR1 asks a command how far it is: it prints that on the standard error and goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use whimbrel_io::signals::on_status_request;

use crate::streams;

/// True after a SIGUSR1 that was not answered yet.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on SIGUSR1 is a request, and does not end the process.
pub(crate) fn install() {
    // Without the handler the signal ends the process, as the system has it.
    let _ = on_status_request(Arc::clone(&ASKED));
}

/// True if a request waits for an answer.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Answers a request with `text`, if one waits.
pub(crate) fn answer(text: impl FnOnce() -> String) {
    if ASKED.swap(false, Ordering::Relaxed) {
        streams::tell(&format!("whimbrel, pid {}: {}\n", std::process::id(), text().trim()));
    }
}
