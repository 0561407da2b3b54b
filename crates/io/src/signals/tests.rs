use std::time::Duration;

use super::*;
use crate::sys::{Interest, PollFd, ppoll};

#[test]
fn a_question_is_asked_once_however_often_the_signal_comes() {
    let question = StatusRequest::install().unwrap();
    let is_asked = || {
        let mut fds = [PollFd::new(&question, Interest::Read)];
        ppoll(&mut fds, Some(Duration::ZERO)).unwrap() == 1
    };
    assert!(!is_asked());
    low_level::raise(SIGUSR1).unwrap();
    low_level::raise(SIGUSR1).unwrap();
    assert!(is_asked());
    question.take().unwrap();
    assert!(!is_asked());
}

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
    // Sent at once after the first, as `timeout` does it, it must not end these tests.
    low_level::raise(SIGTERM).unwrap();
}
