//! The server's host, and the ways in which threads access it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, RxFrame, Shard, TxBatch};

use super::client::{BATCH, Client, RESPONSE};
use super::{ContentionResult, Frames, Inboxes, lock, take_all};

/// A host that serves.
pub(super) struct ServingHost {
    shard: Shard,
    listener: ListenerId,
    batch: TxBatch,
    /// True if the thread that processes a handshake's last segment accepts the connection at once
    /// and publishes it.
    publishes: bool,
}

/// Events for applications. As sockets have their own locks, it is not under the host's lock.
#[derive(Default)]
pub(super) struct ReadyEvents {
    /// True if a connection can be accepted.
    is_listening: bool,
    /// Connections accepted already, and not seen by an application.
    published: VecDeque<Handle>,
    /// Connections with data to read.
    readable: VecDeque<Handle>,
}

impl ServingHost {
    pub(super) fn new(shard: Shard, listener: ListenerId, publishes: bool) -> Self {
        Self { shard, listener, batch: TxBatch::new(BATCH), publishes }
    }

    /// Processes a frame.
    fn rx(&mut self, now: Instant, frame: &[u8], out: &mut Frames, news: &mut ReadyEvents) {
        self.shard.rx(now, &[RxFrame::new(frame, SegMeta::SINGLE)]);
        self.collect(out, news);
    }

    /// Collects replies and events after any operation.
    fn collect(&mut self, out: &mut Frames, news: &mut ReadyEvents) {
        take_all(&mut self.shard, &mut self.batch, out);
        while let Some(event) = self.shard.poll_event() {
            match event {
                Event::Accepted(_) if self.publishes => {
                    while let Some(handle) = self.shard.accept(self.listener) {
                        news.published.push_back(handle);
                    }
                }
                Event::Accepted(_) => news.is_listening = true,
                Event::Readable(handle) | Event::Closed(handle, _) => {
                    news.readable.push_back(handle);
                }
                _ => {}
            }
        }
    }

    /// Answers a query; closes the connection at the end of its stream.
    fn answer(&mut self, handle: Handle) {
        match self.shard.recv(handle) {
            // The client detects by the length that it was not all.
            Recv::Data(_) => {
                let _ = self.shard.send(handle, &mut Bytes::from_static(&RESPONSE));
            }
            Recv::Pending | Recv::Unknown => {}
            Recv::End | Recv::Closed(_) => self.shard.close(handle),
        }
    }
}

/// A thread's access to the host.
pub(super) trait Access {
    /// Runs one step, with its extra time and what follows from it.
    fn step<T>(
        &mut self,
        work: impl FnOnce(&mut ServingHost, &mut Frames, &mut ReadyEvents) -> T,
    ) -> T;

    /// Accesses the applications' events.
    fn ready<T>(&mut self, look: impl FnOnce(&mut ReadyEvents) -> T) -> T;

    /// True if the timers are due.
    fn is_timely(&mut self, now: Instant) -> bool;

    /// Returns the frames sent since, to be routed.
    fn out(&mut self) -> &mut Frames;

    fn forget_counts(&mut self);

    fn counted(&self) -> ContentionResult;

    /// Runs a turn: each frame of the client arrives by itself, then the applications run.
    fn turn(&mut self, now: Instant, client: &mut Client, inboxes: &Inboxes) {
        if self.is_timely(now) {
            self.step(|served, out, news| {
                while served.shard.advance(now, BATCH) {}
                served.collect(out, news);
            });
        }
        for frame in client.asked() {
            self.step(|served, out, news| served.rx(now, frame, out, news));
        }
        if self.ready(|ready| std::mem::take(&mut ready.is_listening)) {
            let accept = |served: &mut ServingHost, out: &mut Frames, news: &mut ReadyEvents| {
                let accepted = served.shard.accept(served.listener).is_some();
                served.collect(out, news);
                accepted
            };
            while self.step(accept) {}
        }
        while self.ready(|ready| ready.published.pop_front()).is_some() {}
        while let Some(handle) = self.ready(|ready| ready.readable.pop_front()) {
            self.step(|served, out, news| {
                served.answer(handle);
                served.collect(out, news);
            });
        }
        inboxes.route(self.out());
    }
}

/// A host that only one thread uses.
pub(super) struct OwnHost {
    served: ServingHost,
    ready: ReadyEvents,
    hold: Duration,
    out: Frames,
    timers: Timers,
}

impl OwnHost {
    pub(super) fn new(served: ServingHost, ready: ReadyEvents, hold: Duration) -> Self {
        Self { served, ready, hold, out: Frames::default(), timers: Timers::default() }
    }
}

impl Access for OwnHost {
    fn step<T>(
        &mut self,
        work: impl FnOnce(&mut ServingHost, &mut Frames, &mut ReadyEvents) -> T,
    ) -> T {
        linger(self.hold);
        work(&mut self.served, &mut self.out, &mut self.ready)
    }

    fn ready<T>(&mut self, look: impl FnOnce(&mut ReadyEvents) -> T) -> T {
        look(&mut self.ready)
    }

    fn is_timely(&mut self, now: Instant) -> bool {
        self.timers.are_due(now)
    }

    fn out(&mut self) -> &mut Frames {
        &mut self.out
    }

    fn forget_counts(&mut self) {}

    fn counted(&self) -> ContentionResult {
        ContentionResult::default()
    }
}

/// A host that all threads share.
pub(super) struct LockedHost<'a> {
    served: &'a Mutex<ServingHost>,
    ready: &'a Mutex<ReadyEvents>,
    hold: Duration,
    out: Frames,
    news: ReadyEvents,
    counted: ContentionResult,
    timers: Timers,
}

impl<'a> LockedHost<'a> {
    pub(super) fn new(
        served: &'a Mutex<ServingHost>,
        ready: &'a Mutex<ReadyEvents>,
        hold: Duration,
    ) -> Self {
        let (out, news, counted) =
            (Frames::default(), ReadyEvents::default(), ContentionResult::default());
        Self { served, ready, hold, out, news, counted, timers: Timers::default() }
    }

    /// Locks the host, and counts the wait.
    fn wait(
        served: &'a Mutex<ServingHost>,
        counted: &mut ContentionResult,
    ) -> MutexGuard<'a, ServingHost> {
        counted.locks += 1;
        match served.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let began = std::time::Instant::now();
                let guard = lock(served);
                counted.waits += 1;
                counted.waited += began.elapsed();
                guard
            }
        }
    }
}

impl Access for LockedHost<'_> {
    fn step<T>(
        &mut self,
        work: impl FnOnce(&mut ServingHost, &mut Frames, &mut ReadyEvents) -> T,
    ) -> T {
        let mut served = Self::wait(self.served, &mut self.counted);
        let began = std::time::Instant::now();
        linger(self.hold);
        let done = work(&mut served, &mut self.out, &mut self.news);
        self.counted.held += began.elapsed();
        drop(served);
        if self.news.any() {
            let mut ready = lock(self.ready);
            ready.is_listening |= std::mem::take(&mut self.news.is_listening);
            ready.published.append(&mut self.news.published);
            ready.readable.append(&mut self.news.readable);
        }
        done
    }

    fn ready<T>(&mut self, look: impl FnOnce(&mut ReadyEvents) -> T) -> T {
        look(&mut lock(self.ready))
    }

    fn is_timely(&mut self, now: Instant) -> bool {
        self.timers.are_due(now)
    }

    fn out(&mut self) -> &mut Frames {
        &mut self.out
    }

    fn forget_counts(&mut self) {
        self.counted = ContentionResult::default();
    }

    fn counted(&self) -> ContentionResult {
        self.counted.clone()
    }
}

/// Time of a thread's last check of its host's timers.
struct Timers(Instant);

impl Default for Timers {
    fn default() -> Self {
        Self(Instant::ZERO)
    }
}

impl Timers {
    /// True once a millisecond.
    fn are_due(&mut self, now: Instant) -> bool {
        let due = now.since(self.0) >= Duration::from_millis(1);
        if due {
            self.0 = now;
        }
        due
    }
}

impl ReadyEvents {
    fn any(&self) -> bool {
        self.is_listening || !self.published.is_empty() || !self.readable.is_empty()
    }
}

/// Spins for `time`.
fn linger(time: Duration) {
    if time.is_zero() {
        return;
    }
    let began = std::time::Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}
