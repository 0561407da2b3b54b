//! Measures the cost of a lock around a host whose threads serve short connections. Three designs
//! are compared: one lock for all operations, one lock that accept does not take, and a shard for
//! each thread without a lock. Threads and time are real; frames go from memory to memory.
//!
//! Each thread is a queue of a network device with its share of the application, and has its own
//! client whose queries arrive there: connect, request, response, close. A reply goes to its
//! client's thread, whichever thread made it.

mod client;
mod server;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use whimbrel_base::{Instant, Secrets};
use whimbrel_io::Clock;
use whimbrel_stack::profile::Locking;
use whimbrel_stack::shard::{ConfigError, ListenError};
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, Shard, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use client::Client;
use server::{Access, LockedHost, OwnHost, ReadyEvents, ServingHost};

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Contention {
    /// Serving threads, at least 1 and at most [`Contention::MOST_THREADS`].
    pub threads: usize,
    /// Design of the sharing.
    pub locking: Locking,
    /// Extra time for which the lock is held each time; with a shard for each thread, extra time of
    /// each of the same steps.
    pub hold: Duration,
    /// Time during which queries are counted.
    pub time: Duration,
    /// Tunables of the server.
    pub tunables: Tunables,
}

/// Results of the threads, and their waits for each other.
#[derive(Clone, Default, Debug)]
pub struct ContentionResult {
    /// Queries that were answered in full, and their connections closed.
    pub queries: u64,
    /// Queries that ended otherwise.
    pub failed: u64,
    /// Time during which they were counted.
    pub time: Duration,
    /// Number of times that the lock was taken.
    pub locks: u64,
    /// Number of times that the lock was not free.
    pub waits: u64,
    /// Time that all threads together waited for it.
    pub waited: Duration,
    /// Time that it was held.
    pub held: Duration,
    /// The results by slices of the time, [`Contention::SLICES`] of equal length.
    pub slices: Vec<Slice>,
}

/// Results of a slice of the time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Slice {
    /// Queries that were answered in full.
    pub queries: u64,
    /// Time that all threads together waited for the lock.
    pub waited: Duration,
}

impl ContentionResult {
    /// Returns the queries per second.
    pub fn rate(&self) -> f64 {
        self.queries as f64 / self.time.as_secs_f64().max(f64::EPSILON)
    }

    /// Adds the results of another thread that ran at the same time.
    fn add(&mut self, other: &Self) {
        self.queries += other.queries;
        self.failed += other.failed;
        self.locks += other.locks;
        self.waits += other.waits;
        self.waited += other.waited;
        self.held += other.held;
        self.slices.resize(self.slices.len().max(other.slices.len()), Slice::default());
        for (slice, other) in self.slices.iter_mut().zip(&other.slices) {
            slice.queries += other.queries;
            slice.waited += other.waited;
        }
    }
}

/// Reason why the measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentionError {
    /// The number of threads is 0, or exceeds the available addresses.
    #[error("{0} threads: from 1 to {max} can serve", max = Contention::MOST_THREADS)]
    Threads(usize),
    /// A host could not be created.
    #[error(transparent)]
    Shard(#[from] ConfigError),
    /// The server could not listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl Contention {
    /// Limit of threads: each thread's client has its own addresses.
    pub const MOST_THREADS: usize = 128;
    /// Number of slices of a run.
    pub const SLICES: usize = 20;

    /// Returns the length of a slice.
    pub fn slice(&self) -> Duration {
        self.time / Self::SLICES as u32
    }

    /// Runs the server for a tenth of a second, and then for the time during which queries are
    /// counted. That time is extended by up to 30 seconds until each thread has answered 200
    /// queries, since figures of fewer depend on where the time begins and ends.
    pub fn run(&self) -> Result<ContentionResult, ContentionError> {
        if !(1..=Self::MOST_THREADS).contains(&self.threads) {
            return Err(ContentionError::Threads(self.threads));
        }
        let (clock, inboxes) = (Clock::start(), Inboxes::new(self.threads));
        let (counts, ends, have_enough) = Default::default();
        let run = Run { clock, inboxes, counts, ends, have_enough };
        let clients = (0..self.threads).map(Client::new).collect::<Result<Vec<_>, _>>()?;
        let counted = match self.locking {
            Locking::None => {
                let own = (0..self.threads).map(|_| self.serve(true));
                let own = own.collect::<Result<Vec<_>, _>>()?.into_iter();
                self.drive(
                    &run,
                    clients,
                    own.map(|(served, ready)| OwnHost::new(served, ready, self.hold)),
                )
            }
            Locking::All | Locking::AllButAccept => {
                let (served, ready) = self.serve(self.locking == Locking::All)?;
                let (served, ready) = (Mutex::new(served), Mutex::new(ready));
                let of = || LockedHost::new(&served, &ready, self.hold);
                self.drive(&run, clients, (0..self.threads).map(|_| of()))
            }
        };
        Ok(counted)
    }

    fn serve(&self, accepts: bool) -> Result<(ServingHost, ReadyEvents), ContentionError> {
        let mut shard = shard(&self.tunables, vec![SERVER], 1)?;
        let listener = shard.listen(Endpoint::new(SERVER, PORT), BACKLOG)?;
        Ok((ServingHost::new(shard, listener, !accepts), ReadyEvents::default()))
    }

    /// Runs the threads, with the calling thread as their clock.
    fn drive<A: Access + Send>(
        &self,
        run: &Run,
        clients: Vec<Client>,
        servers: impl Iterator<Item = A>,
    ) -> ContentionResult {
        thread::scope(|scope| {
            let threads: Vec<_> = clients
                .into_iter()
                .zip(servers)
                .map(|(client, server)| {
                    scope.spawn(move || run.serve(client, server, self.slice()))
                })
                .collect();
            thread::sleep(WARM_UP);
            run.counts.store(true, Ordering::Relaxed);
            thread::sleep(self.time);
            run.wait_for_queries(threads.len());
            run.ends.store(true, Ordering::Relaxed);
            let (mut all, mut span) = (ContentionResult::default(), None::<(Instant, Instant)>);
            for thread in threads {
                // A thread that panicked has reported its reason.
                let Ok((counted, began, ended)) = thread.join() else { continue };
                all.add(&counted);
                span = Some(span.map_or((began, ended), |it| (it.0.min(began), it.1.max(ended))));
            }
            all.time = span.map_or(Duration::ZERO, |(began, ended)| ended.since(began));
            all
        })
    }
}

/// State that the threads of a run share.
struct Run {
    clock: Clock,
    inboxes: Inboxes,
    /// True from the moment at which queries count.
    counts: AtomicBool,
    ends: AtomicBool,
    /// Number of threads that have answered [`LEAST_QUERIES`].
    have_enough: AtomicUsize,
}

impl Run {
    /// Waits until each of `threads` has answered enough queries, at most [`MOST_EXTRA`].
    fn wait_for_queries(&self, threads: usize) {
        let end = self.clock.now() + MOST_EXTRA;
        while self.have_enough.load(Ordering::Relaxed) < threads && self.clock.now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs one thread until the end. Returns its results, and the times of its first and last
    /// counted work.
    fn serve<A: Access>(
        &self,
        mut client: Client,
        mut server: A,
        slice: Duration,
    ) -> (ContentionResult, Instant, Instant) {
        let (mut began, mut enough, mut log) = (None, false, SliceLog::new(slice));
        while !self.ends.load(Ordering::Relaxed) {
            let now = self.clock.now();
            match began {
                None if self.counts.load(Ordering::Relaxed) => {
                    began = Some(now);
                    client.forget_counts();
                    server.forget_counts();
                }
                Some(began) if log.is_due(now.since(began)) => {
                    log.note(now.since(began), client.counted().0, server.counted().waited);
                }
                _ => {}
            }
            client.ask(now);
            server.turn(now, &mut client, &self.inboxes);
            client.hear(now, &self.inboxes);
            if !enough && began.is_some() && client.counted().0 >= LEAST_QUERIES {
                enough = true;
                self.have_enough.fetch_add(1, Ordering::Relaxed);
            }
        }
        let ended = self.clock.now();
        if began.is_none() {
            // The thread had no processor since queries count: its earlier results do not count.
            client.forget_counts();
            server.forget_counts();
        }
        let mut counted = server.counted();
        (counted.queries, counted.failed) = client.counted();
        counted.slices = log.finish(counted.queries, counted.waited);
        (counted, began.unwrap_or(ended), ended)
    }
}

/// Results of a thread by the end of each slice.
struct SliceLog {
    slice: Duration,
    /// End of the current slice, counted from the first counted query.
    until: Duration,
    done: Vec<Slice>,
}

impl SliceLog {
    fn new(slice: Duration) -> Self {
        Self { slice, until: slice, done: Vec::with_capacity(Contention::SLICES) }
    }

    /// True if the current slice is over.
    fn is_due(&self, since: Duration) -> bool {
        since >= self.until && self.done.len() < Contention::SLICES
    }

    /// Records the results at the end of a slice. Slices that passed while the thread had no
    /// processor are empty.
    fn note(&mut self, since: Duration, queries: u64, waited: Duration) {
        while self.is_due(since) {
            self.done.push(Slice { queries, waited });
            self.until += self.slice;
        }
    }

    /// Returns the results of each slice; the unfinished last one counts as a slice.
    fn finish(mut self, queries: u64, waited: Duration) -> Vec<Slice> {
        self.done.resize(Contention::SLICES, Slice { queries, waited });
        let before = [Slice::default()].into_iter().chain(self.done.iter().copied());
        let each = before.zip(&self.done).map(|(before, after)| Slice {
            queries: after.queries - before.queries,
            waited: after.waited - before.waited,
        });
        each.collect()
    }
}

/// Queues of replies to each thread's client.
struct Inboxes(Vec<Mutex<Frames>>);

impl Inboxes {
    fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::default()).collect())
    }

    /// Puts each frame into the queue of its client.
    fn route(&self, frames: &mut Frames) {
        for frame in frames.iter() {
            let owner = frame.get(17).map_or(0, |thread| usize::from(*thread));
            if let Some(inbox) = owner.checked_sub(1).and_then(|place| self.0.get(place)) {
                lock(inbox).push([frame]);
            }
        }
        frames.clear();
    }

    /// Takes the frames for the client of this thread, and leaves `empty` in their place.
    fn take(&self, thread: usize, empty: &mut Frames) {
        if let Some(inbox) = self.0.get(thread) {
            std::mem::swap(&mut *lock(inbox), empty);
        }
    }
}

/// Frames, one behind the other.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Frames {
    /// Appends a frame of these parts.
    fn push<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) {
        parts.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Takes all that a host has to send.
fn take_all(shard: &mut Shard, batch: &mut whimbrel_stack::TxBatch, frames: &mut Frames) {
    loop {
        let more = shard.tx(batch);
        for segment in batch.pending() {
            let slices = segment.payload.as_slice().iter().map(|slice| &slice[..]);
            frames.push(std::iter::once(segment.header()).chain(slices));
        }
        batch.consume(batch.pending().len());
        if !more {
            return;
        }
    }
}

/// Creates a host on a link of 1,500 bytes.
fn shard(tunables: &Tunables, addresses: Vec<Address>, seed: u64) -> Result<Shard, ConfigError> {
    let addresses = addresses.into_iter().map(|addr| InterfaceAddress { addr, prefix_len: 8 });
    Shard::new(ShardConfig {
        tunables: tunables.clone(),
        secrets: Secrets::from_seed(seed),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: addresses.collect(),
        routes: Vec::new(),
    })
}

/// Locks the value, even after a panic of another thread.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

const SERVER: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const PORT: u16 = 80;
const BACKLOG: u32 = 100_000;
/// Time until buffers and tables have reached their size.
const WARM_UP: Duration = Duration::from_millis(100);
/// Number of queries that each thread answers in a run.
const LEAST_QUERIES: u64 = 200;
/// Time for which a run goes on at most until each thread has answered that many.
const MOST_EXTRA: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
