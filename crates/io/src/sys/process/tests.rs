use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::*;

/// True if the process of this number runs. A zombie does not.
fn runs(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(' ') && !rest.starts_with(" Z"))
}

#[test]
fn what_a_thread_started_ends_with_it() {
    let start = || {
        let mut command = Command::new("sleep");
        command.arg("1000").stdout(Stdio::null());
        end_with_starter(&mut command).spawn().unwrap()
    };
    let mut own = start();
    let mut other = thread::spawn(start).join().unwrap();
    let tries = (0..500).find(|_| {
        thread::sleep(Duration::from_millis(10));
        !runs(other.id())
    });
    let is_left = runs(own.id());
    own.kill().unwrap();
    own.wait().unwrap();
    let _ = other.kill();
    other.wait().unwrap();
    assert!(tries.is_some() && is_left, "{tries:?} {is_left}");
}
