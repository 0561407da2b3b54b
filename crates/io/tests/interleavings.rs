//! All interleavings of tasks and a worker that two or three threads and the memory model allow,
//! with the waker's own file compiled against loom's atomics.
//!
//! The rest is a model: the queue is locked, the descriptor is a flag that can be waited on. If the
//! worker waits for ever, loom reports a deadlock.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex, Notify, atomic};
use loom::thread;

use sleep_flag::SleepFlag;

#[path = "../src/waker/sleep_flag.rs"]
mod sleep_flag;

/// State shared by a worker and the threads that wake it.
struct SleepingWorker {
    queue: Mutex<VecDeque<u32>>,
    sleep_flag: SleepFlag,
    /// The descriptor: readable from a signal until the next wait.
    event: Notify,
}

impl SleepingWorker {
    fn new() -> Arc<Self> {
        Arc::new(Self::model())
    }

    fn model() -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            sleep_flag: SleepFlag::new(),
            event: Notify::new(),
        }
    }

    /// Queues an item and wakes the worker, as a task does.
    fn put(&self, item: u32) {
        self.queue.lock().unwrap().push_back(item);
        if self.sleep_flag.claim_wake_up() {
            self.event.notify();
        }
    }

    fn drain(&self, into: &mut Vec<u32>) -> bool {
        let before = into.len();
        into.extend(self.queue.lock().unwrap().drain(..));
        into.len() > before
    }

    /// Takes `count` items, as a worker does.
    fn take(&self, count: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < count {
            if self.drain(&mut taken) {
                continue;
            }
            self.sleep_flag.announce();
            if !self.drain(&mut taken) {
                self.event.wait();
            }
            self.sleep_flag.retract();
        }
        taken
    }
}

/// Checks that the worker takes all items of all tasks. Threads are interrupted at most
/// `interruptions` times (`None`: no limit).
fn all_are_taken(tasks: u32, each: u32, interruptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = interruptions;
    model.check(move || {
        let meeting = SleepingWorker::new();
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let meeting = Arc::clone(&meeting);
                thread::spawn(move || (0..each).for_each(|item| meeting.put(task * each + item)))
            })
            .collect();
        let count = tasks.len() as u32 * each;
        let mut taken = meeting.take(count as usize);
        taken.sort_unstable();
        assert_eq!(taken, (0..count).collect::<Vec<_>>());
        for task in tasks {
            task.join().unwrap();
        }
    });
}

#[test]
fn a_worker_sleeps_on_nothing_that_one_task_put() {
    all_are_taken(1, 2, None);
}

#[test]
fn a_worker_sleeps_on_nothing_that_two_tasks_put() {
    // All interleavings of three threads take minutes.
    all_are_taken(2, 1, Some(2));
}

/// A worker that a task polls. A wake-up has it polled once more, also while it is polled.
struct PolledWorker {
    worker: SleepingWorker,
    /// Set to end the worker.
    stop: AtomicBool,
}

impl PolledWorker {
    /// Models `Worker::poll` in a runtime, until it has seen an item and its end.
    fn run(&self) {
        let (mut taken, SleepingWorker { sleep_flag, event, .. }) = (Vec::new(), &self.worker);
        let is_over = |taken: &[u32]| self.stop.load(Ordering::Acquire) && taken == [1];
        loop {
            sleep_flag.retract();
            while self.worker.drain(&mut taken) {}
            sleep_flag.announce();
            let late = self.worker.drain(&mut taken);
            if is_over(&taken) {
                return;
            }
            if !late {
                event.wait();
            }
        }
    }

    /// Ends the worker.
    fn end(&self) {
        self.stop.store(true, Ordering::Release);
        if self.worker.sleep_flag.claim_wake_up() {
            self.worker.event.notify();
        }
    }
}

/// Checks that a polled worker sees all of these acts, each on its own thread.
fn a_polled_worker_hears_of(acts: &'static [fn(&PolledWorker)], interruptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interruptions);
    model.check(move || {
        let (worker, stop) = (SleepingWorker::model(), AtomicBool::new(false));
        let polled = Arc::new(PolledWorker { worker, stop });
        let act = |act: &'static fn(&PolledWorker)| {
            let polled = Arc::clone(&polled);
            thread::spawn(move || act(&polled))
        };
        let others: Vec<_> = acts.iter().map(act).collect();
        polled.run();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn polled_worker_sees_queued_items_and_its_end() {
    let put_and_end: fn(&PolledWorker) = |polled| {
        polled.worker.put(1);
        polled.end();
    };
    a_polled_worker_hears_of(Box::leak(Box::new([put_and_end])), 3);
}

#[test]
fn a_worker_that_a_task_polls_is_ended_by_another_than_who_puts() {
    let put: fn(&PolledWorker) = |polled| polled.worker.put(1);
    a_polled_worker_hears_of(Box::leak(Box::new([put, PolledWorker::end])), 2);
}

/// Two shards, each with the queue by which the other forwards frames.
struct Neighbours([SleepingWorker; 2]);

impl Neighbours {
    /// Forwards a frame, and works until the other's frame has arrived, as a shard does. Only its
    /// queue reports it: the shard checks that after the announcement.
    fn work(&self, own: usize) {
        self.0[1 - own].put(own as u32);
        let SleepingWorker { queue, sleep_flag, event } = &self.0[own];
        loop {
            let adopted = queue.lock().unwrap().pop_front();
            if let Some(frame) = adopted {
                assert_eq!(frame, 1 - own as u32);
                return;
            }
            sleep_flag.announce();
            let is_empty = queue.lock().unwrap().is_empty();
            if is_empty {
                event.wait();
            }
            sleep_flag.retract();
        }
    }
}

#[test]
fn shards_that_pass_frames_on_to_each_other_both_get_them() {
    loom::model(|| {
        let shards = Arc::new(Neighbours([SleepingWorker::model(), SleepingWorker::model()]));
        let other = {
            let shards = Arc::clone(&shards);
            thread::spawn(move || shards.work(1))
        };
        shards.work(0);
        other.join().unwrap();
    });
}
