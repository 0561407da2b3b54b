//! Tests that want a network namespace of their own.

use std::env;
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

use whimbrel_io::process::end_with_starter;

use crate::needs;

/// Runs the test of this name once more, in a network namespace that ends with that process, and there
/// `inside`, which needs these (see [`needs::found`]).
pub(crate) fn in_a_namespace(name: &str, needs: &[&str], inside: fn()) {
    if env::var_os(INSIDE).is_some() {
        // Without it, it would block the programs behind it, and the failure would not name it.
        thread::spawn(|| {
            thread::sleep(LIMIT);
            eprintln!("it did not end in {} s", LIMIT.as_secs());
            exit(1);
        });
        needs::say(needs);
        needs::furnish_namespace();
        return inside();
    }
    if !needs::found(&[&["unshare"], needs].concat()) {
        return;
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg(env::current_exe().unwrap()).args([name, "--exact", "--nocapture"]);
    let output = end_with_starter(command.env(INSIDE, "1")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("unshare failed") {
        return needs::skip(&format!("no network namespace ({}): run as root", errors.trim()));
    }
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && words.contains("1 passed"), "{words}{errors}");
}

/// Far more than any of them takes.
const LIMIT: Duration = Duration::from_secs(200);
/// Set in the process that is in the namespace.
pub(crate) const INSIDE: &str = "WHIMBREL_INSIDE_NAMESPACE";
