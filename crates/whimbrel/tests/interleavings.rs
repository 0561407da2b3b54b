//! Tasks and a shard meet in a mailbox and in a stream's cell, in every order that two or three
//! threads and the memory model allow: the files that decide, compiled against loom's atomics.
//!
//! What stands around them is a model: queues are locked ones, the descriptor a flag that can be
//! waited on. That a shard waits for ever is what loom reports as a deadlock.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves
#![allow(dead_code)] // of files that have more than the models need

use std::collections::VecDeque;

use loom::sync::{Arc, Mutex, Notify, atomic};
use loom::thread;

use flags::Flags;
use sleep_flag::SleepFlag;
use worker_state::WorkerState;

#[path = "../src/cell/flags.rs"]
mod flags;
#[path = "../../io/src/waker/sleep_flag.rs"]
mod sleep_flag;
#[path = "../src/mailbox/worker_state.rs"]
mod worker_state;

/// The way into a shard.
struct Mailbox {
    queue: Mutex<VecDeque<u32>>,
    worker_state: WorkerState,
    sleep_flag: SleepFlag,
    /// The descriptor: readable from a signal until a wait has seen it.
    event: Notify,
    refused: Mutex<Vec<u32>>,
}

impl Mailbox {
    fn new() -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            worker_state: WorkerState::new(),
            sleep_flag: SleepFlag::new(),
            event: Notify::new(),
            refused: Mutex::new(Vec::new()),
        }
    }

    /// Does the same as [`Mailbox::ask`] and [`Mailbox::post`] of the crate.
    fn put(&self, item: u32) {
        self.queue.lock().unwrap().push_back(item);
        if self.sleep_flag.claim_wake_up() {
            self.event.notify();
        }
        if self.worker_state.has_ended_since() {
            self.refuse_all();
        }
    }

    fn refuse_all(&self) {
        while let Some(item) = self.next() {
            self.refused.lock().unwrap().push(item);
        }
    }

    fn next(&self) -> Option<u32> {
        self.queue.lock().unwrap().pop_front()
    }

    /// A turn of the worker, and its sleep if that found nothing: `look` returns whether it did.
    fn turn(&self, mut look: impl FnMut() -> bool) {
        if look() {
            return;
        }
        self.sleep_flag.announce();
        if !look() {
            self.event.wait();
        }
        self.sleep_flag.retract();
    }

    fn end(&self) {
        self.worker_state.end();
        self.refuse_all();
    }
}

/// All interleavings of three threads take minutes: those with so many interruptions.
fn check(interruptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = interruptions;
    builder.check(model);
}

#[test]
fn a_request_is_served_or_refused_whenever_the_worker_ends() {
    check(Some(3), || {
        let mailbox = Arc::new(Mailbox::new());
        let asks = |item| {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.put(item))
        };
        let tasks = [asks(1), asks(2)];
        // One turn, whatever it finds, and the end.
        let mut heard: Vec<_> = mailbox.next().into_iter().collect();
        mailbox.end();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        heard.append(&mut mailbox.refused.lock().unwrap());
        heard.sort_unstable();
        assert_eq!(heard, [1, 2], "each once");
    });
}

/// State shared by a task and its shard.
#[derive(Default)]
struct Cell {
    flags: Flags,
    handle: Option<u32>,
    unsent: u32,
}

/// A stream's cell, and the way into its shard.
struct Stream {
    cell: Mutex<Cell>,
    mailbox: Mailbox,
}

impl Stream {
    fn new(handle: Option<u32>) -> Arc<Self> {
        let cell = Mutex::new(Cell { handle, ..Cell::default() });
        Arc::new(Self { cell, mailbox: Mailbox::new() })
    }

    /// The task leaves something, then unlocks, then does its duty.
    fn leave(&self, leave: impl FnOnce(&mut Cell)) {
        let mut cell = self.cell.lock().unwrap();
        leave(&mut cell);
        let handle = cell.handle;
        let duty = cell.flags.mark_dirty(handle);
        drop(cell);
        if let Some(handle) = duty {
            self.mailbox.put(handle);
        }
    }

    /// The shard looks at each dirty cell; returns whether there was one.
    fn exchange(&self, mut take: impl FnMut(&mut Cell)) -> bool {
        let mut any = false;
        while self.mailbox.next().is_some() {
            let mut cell = self.cell.lock().unwrap();
            assert!(cell.flags.take(Flags::DIRTY), "posted once for each mark");
            take(&mut cell);
            any = true;
        }
        any
    }
}

#[test]
fn shard_takes_queued_data_and_notices_drop() {
    // All interleavings take more than two minutes.
    check(Some(3), || {
        let stream = Stream::new(Some(7));
        let task = {
            let stream = Arc::clone(&stream);
            thread::spawn(move || {
                stream.leave(|cell| cell.unsent += 1);
                stream.leave(|cell| cell.unsent += 1);
                stream.leave(|cell| cell.flags.set(Flags::DROPPED));
            })
        };
        let (mut taken, mut parted) = (0, false);
        while !parted {
            stream.mailbox.turn(|| {
                stream.exchange(|cell| {
                    taken += std::mem::take(&mut cell.unsent);
                    parted |= cell.flags.has(Flags::DROPPED);
                }) || parted
            });
        }
        assert_eq!(taken, 2);
        task.join().unwrap();
        assert_eq!(stream.mailbox.next(), None, "nothing is posted of a stream that is gone");
    });
}

#[test]
fn a_stream_that_two_tasks_write_to_loses_nothing() {
    check(Some(2), || {
        let stream = Stream::new(Some(7));
        let writes = || {
            let stream = Arc::clone(&stream);
            thread::spawn(move || stream.leave(|cell| cell.unsent += 1))
        };
        let tasks = [writes(), writes()];
        let mut taken = 0;
        while taken < 2 {
            stream
                .mailbox
                .turn(|| stream.exchange(|cell| taken += std::mem::take(&mut cell.unsent)));
        }
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn dropped_connect_ends_before_or_after_shard_sees_it() {
    check(None, || {
        let stream = Stream::new(None);
        let task = {
            let stream = Arc::clone(&stream);
            thread::spawn(move || stream.leave(|cell| cell.flags.set(Flags::DROPPED)))
        };
        // The shard opens it, unless it was dropped.
        let mut ended = {
            let mut cell = stream.cell.lock().unwrap();
            cell.handle = Some(7);
            cell.flags.has(Flags::DROPPED)
        };
        while !ended {
            stream
                .mailbox
                .turn(|| stream.exchange(|cell| ended |= cell.flags.has(Flags::DROPPED)) || ended);
        }
        task.join().unwrap();
    });
}
