use std::time::Duration;

use super::*;
use crate::sys::{Interest, PollFd, ppoll};

#[test]
fn a_signal_sets_stop_and_wakes_who_sleeps_on_it() {
    let stop = Stop::new().unwrap();
    let _signals = Signals::install(&stop).unwrap();
    assert!(!stop.is_set());
    low_level::raise(SIGTERM).unwrap();
    assert!(stop.is_set());
    let mut fds = [PollFd::new(&stop, Interest::Read)];
    assert_eq!(ppoll(&mut fds, Some(Duration::ZERO)).unwrap(), 1);
    assert!(fds[0].is_readable());
    // Sent once more at once, as `timeout` does it, it would have ended these tests.
    low_level::raise(SIGTERM).unwrap();
}
