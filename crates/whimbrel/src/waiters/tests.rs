use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn latest_polling_task_and_all_awaiting_tasks_wake() {
    let bells: [Arc<Bell>; 4] = Default::default();
    let [first, second, third, fourth] = bells.clone().map(Waker::from);
    let mut waiters = Waiters::default();
    assert!(waiters.register(&first).is_none());
    assert!(waiters.register(&second).is_some_and(|replaced| replaced.will_wake(&first)));
    let (mut third_ticket, mut fourth_ticket) = (None, None);
    assert!(waiters.line_up(&mut third_ticket, &third).is_none());
    assert!(waiters.line_up(&mut fourth_ticket, &fourth).is_none());

    let mut woken = Vec::new();
    waiters.take_all(&mut woken);
    wake_all(&mut woken);
    waiters.take_all(&mut woken);
    assert!(woken.is_empty(), "each is woken once");
    let counts = bells.map(|bell| bell.0.load(Ordering::Relaxed));
    assert_eq!(counts, [0, 1, 1, 1]);
}

#[test]
fn place_is_kept_from_wake_to_leave() {
    let waker = Waker::noop();
    let mut waiters = Waiters::default();
    let (mut early, mut late) = (None, None);
    assert!(waiters.line_up(&mut early, waker).is_none());
    waiters.take_all(&mut Vec::new());
    assert!(waiters.line_up(&mut late, waker).is_none());
    assert_ne!(early, late, "the woken one has not left");

    // The woken one waits again, and leaves; the other stays.
    assert!(waiters.line_up(&mut early, waker).is_none());
    assert!(waiters.leave(early.unwrap()).is_some());
    assert!(waiters.leave(early.unwrap()).is_none());
    assert!(waiters.leave(late.unwrap()).is_some());
    assert!(waiters.line.is_none());
}
