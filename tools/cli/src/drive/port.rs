//! Models as workers' ports, and the watch over the clients.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use whimbrel_apps::{Model, Transport};
use whimbrel_base::Instant;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Activity, Port, Stop};
use whimbrel_stack::Shard;
use whimbrel_stack::link::AddressConflict;

use super::{BUDGET, Job, Watch};
use crate::failure::{Failure, tell_conflict};
use crate::status;

/// Place where clients report their progress and their end.
pub(super) struct ClientProgress<C> {
    /// The last report of each client, until it is read.
    progress: Vec<Mutex<Option<C>>>,
    is_followed: bool,
    /// Number of running clients.
    left: AtomicUsize,
    /// Set once none is.
    done: Stop,
}

/// The watcher of all clients.
pub(super) struct Watcher<C> {
    shared: Arc<ClientProgress<C>>,
    latest: Vec<C>,
    next: Instant,
}

impl<C: Send> Watcher<C> {
    /// Watches these clients, and the last of them that is done sets `done`.
    pub(super) fn new<J: Job<Progress = C>, T: Transport>(
        job: &J,
        clients: &[J::Client<T>],
        done: &Stop,
    ) -> Self {
        let shared = ClientProgress {
            progress: clients.iter().map(|_| Mutex::default()).collect(),
            is_followed: job.is_followed(),
            left: AtomicUsize::new(clients.len()),
            done: done.clone(),
        };
        let latest =
            clients.iter().map(|client| J::progress(client, None, Instant::ZERO)).collect();
        Self { shared: Arc::new(shared), latest, next: Instant::ZERO }
    }

    /// The place where the clients of all shards report progress.
    pub(super) fn shared(&self) -> Arc<ClientProgress<C>> {
        Arc::clone(&self.shared)
    }

    /// Reports the progress of all clients to `job` if it is due and wanted. Ends all clients on
    /// request.
    pub(super) fn look(&mut self, job: &mut impl Job<Progress = C>, now: Instant) {
        if !self.shared.is_followed() || now < self.next {
            return;
        }
        self.next = now + WATCH;
        let mut has_news = self.shared.is_followed;
        for (latest, told) in self.latest.iter_mut().zip(&self.shared.progress) {
            if let Some(progress) = lock(told).take() {
                (*latest, has_news) = (progress, true);
            }
        }
        // A request came just now: the clients have to report first.
        if !has_news {
            return;
        }
        if job.watch(&self.latest) == Watch::End {
            self.shared.done.set();
        }
    }

    /// Looks until `stop` is set, on a thread that has nothing else to do.
    pub(super) fn stay(
        &mut self,
        job: &mut impl Job<Progress = C>,
        now: impl Fn() -> Instant,
        stop: &Stop,
    ) -> Result<(), Failure> {
        while !stop.is_set() {
            ppoll(&mut [PollFd::new(stop, Interest::Read)], Some(WATCH)).map_err(Failure::run)?;
            self.look(job, now());
        }
        Ok(())
    }
}

impl<C> ClientProgress<C> {
    /// True if progress is shown, or asked for by a signal.
    fn is_followed(&self) -> bool {
        self.is_followed || status::is_asked()
    }

    /// The client numbered `number` is so far, if anybody wants to know.
    pub(super) fn tell(&self, number: usize, progress: impl FnOnce() -> C) {
        if let Some(place) = self.progress.get(number).filter(|_| self.is_followed()) {
            // Another one's progress is dropped after the lock is.
            let _replaced = lock(place).replace(progress());
        }
    }

    /// One of them is done: the last ends all.
    pub(super) fn on_done(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.set();
        }
    }
}

/// A client of one shard.
pub(super) struct ClientPort<J: Job> {
    pub(super) client: J::Client<Shard>,
    shared: Arc<ClientProgress<J::Progress>>,
    /// The number of the shard.
    number: usize,
    next_told: Instant,
    state: ClientState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientState {
    Running,
    Done,
}

impl<J: Job> ClientPort<J> {
    pub(super) fn new(
        client: J::Client<Shard>,
        shared: Arc<ClientProgress<J::Progress>>,
        number: usize,
    ) -> Self {
        Self { client, shared, number, next_told: Instant::ZERO, state: ClientState::Running }
    }
}

impl<J: Job> Port for ClientPort<J> {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let more = self.client.poll(shard, now, BUDGET);
        let is_done = self.client.is_done() && self.state == ClientState::Running;
        if is_done || now >= self.next_told {
            self.shared.tell(self.number, || J::progress(&self.client, Some(shard), now));
            self.next_told = now + WATCH;
        }
        if is_done {
            self.state = ClientState::Done;
            self.shared.on_done();
        }
        Activity::busy_if(more)
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.client.next_deadline()
    }
}

/// A server of one shard, driven by its worker.
pub(super) struct ServerPort<M>(pub(super) M);

impl<M: Model<Shard>> Port for ServerPort<M> {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        Activity::busy_if(self.0.poll(shard, now, BUDGET))
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

/// No state is half changed after a panic.
fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Interval at which a client is watched.
pub(super) const WATCH: Duration = Duration::from_millis(50);
