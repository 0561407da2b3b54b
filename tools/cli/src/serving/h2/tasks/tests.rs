use std::cell::Cell;
use std::task::Poll;

use super::*;

/// Never over; counts how often it is polled, and leaves its waker.
struct Counted {
    polls: Rc<Cell<usize>>,
    waker: Rc<RefCell<Option<Waker>>>,
}

impl Future for Counted {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.polls.set(self.polls.get() + 1);
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[test]
fn only_woken_tasks_are_polled() {
    let tasks = Tasks::new(Waker::noop().clone());
    let polls: Rc<Cell<usize>> = Rc::default();
    let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
    for _ in 0..100 {
        tasks.execute(Counted { polls: Rc::clone(&polls), waker: Rc::clone(&waker) });
    }
    tasks.poll();
    assert_eq!(polls.replace(0), 100, "each once, to begin with");
    (0..1_000).for_each(|_| tasks.poll());
    assert_eq!(polls.get(), 0, "frames that are none of theirs");
    let woken = waker.borrow_mut().take().unwrap();
    woken.wake();
    tasks.poll();
    assert_eq!(polls.get(), 1);
}

#[test]
fn task_may_spawn_others_and_finished_ones_are_removed() {
    let tasks = Tasks::new(Waker::noop().clone());
    let (within, ran) = (tasks.clone(), Rc::new(Cell::new(false)));
    let seen = Rc::clone(&ran);
    tasks.execute(async move { within.execute(async move { seen.set(true) }) });
    assert!(!tasks.is_empty());
    tasks.poll();
    assert!(ran.get() && tasks.is_empty());
}
