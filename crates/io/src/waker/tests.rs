use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Wake;
use std::thread;
use std::time::Duration;

use super::*;
use crate::sys::{Interest, PollFd, ppoll};

fn sleep(waker: &Waker, timeout: Duration) -> bool {
    let mut fds = [PollFd::new(waker, Interest::Read)];
    ppoll(&mut fds, Some(timeout)).unwrap();
    fds[0].is_readable()
}

#[test]
fn an_awake_worker_is_not_written_to() {
    let waker = Waker::new().unwrap();
    waker.wake();
    assert!(!sleep(&waker, Duration::ZERO));
}

#[test]
fn a_sleeping_worker_is_written_to_once() {
    let waker = Waker::new().unwrap();
    waker.announce();
    waker.wake();
    waker.wake();
    assert!(sleep(&waker, Duration::ZERO));
    waker.clear();
    assert!(!sleep(&waker, Duration::ZERO));
    waker.wake();
    assert!(!sleep(&waker, Duration::ZERO), "it was not announced again");
}

/// A waker that counts its calls.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn wake_of_polled_worker_wakes_its_task_once() {
    let waker = Waker::new().unwrap();
    let task = Arc::new(Counting::default());
    waker.set_task(&task::Waker::from(Arc::clone(&task)));
    waker.wake();
    assert_eq!(task.0.load(Ordering::Relaxed), 0, "it is awake");
    waker.announce();
    waker.wake();
    waker.wake();
    assert_eq!(task.0.load(Ordering::Relaxed), 1);
    assert!(!sleep(&waker, Duration::ZERO));
}

#[test]
fn no_wake_up_is_lost_under_a_hundred_thousand_commands() {
    const COMMANDS: u32 = 50_000;
    let waker = Waker::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (sender, waker) = (sender.clone(), waker.clone());
            thread::spawn(move || {
                for command in 0..COMMANDS {
                    sender.send(command).unwrap();
                    waker.wake();
                }
            })
        })
        .collect();
    let mut received = 0;
    while received < 2 * COMMANDS {
        received += receiver.try_iter().count() as u32;
        waker.announce();
        let late = receiver.try_iter().count() as u32;
        received += late;
        if late == 0 && received < 2 * COMMANDS {
            assert!(sleep(&waker, Duration::from_secs(10)), "slept on {received} commands");
            waker.clear();
        }
        waker.retract();
    }
    for task in tasks {
        task.join().unwrap();
    }
}
