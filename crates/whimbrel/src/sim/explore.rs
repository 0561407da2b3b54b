//! Runs of a test with many seeds, and twice with one.

use std::any::Any;
use std::env;
use std::iter::Enumerate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::World;

/// Runs `test` in a world of each seed, with a thread for each core, until one panics: `0..` goes on
/// until then. If the environment variable `WHIMBREL_SIM_SEED` has a number, only that seed is run.
///
/// # Panics
///
/// Panics if `test` does, with the first of the seeds that fails and its message; and if the variable
/// has something else.
///
/// ```
/// use whimbrel::TcpListener;
/// use whimbrel::sim::explore;
///
/// explore(0..20, |world| {
///     world.set_link("delay=5ms,loss=1%".parse().unwrap());
///     let net = world.net("web");
///     world.run(async { TcpListener::bind(net.stack(), "0.0.0.0:80").await }).unwrap();
/// });
/// ```
pub fn explore<S>(seeds: S, test: impl Fn(&World) + Sync)
where
    S: IntoIterator<Item = u64, IntoIter: Send>,
{
    if let Some(seed) = named_seed() {
        return test(&World::new(seed));
    }
    let progress = Mutex::new(Progress { seeds: seeds.into_iter().enumerate(), failed: None });
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| run(&progress, &test));
        }
    });
    let failed = progress.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    if let Some(FailedSeed { seed, payload, .. }) = failed {
        let text = text_of(&*payload).unwrap_or("a panic without text");
        panic!("seed {seed}: {text}\nrun only this one with {VARIABLE}={seed}");
    }
}

/// Runs `test` twice with one seed: that of the environment variable `WHIMBREL_SIM_SEED`, or 1. Returns
/// the [fingerprint](World::fingerprint) of both.
///
/// # Panics
///
/// Panics if `test` does, and if the runs differ in the time, addresses, ports, flags, sequence numbers
/// or length of a packet: the message shows the first one.
pub fn twice(test: impl Fn(&World)) -> u64 {
    let seed = named_seed().unwrap_or(1);
    let run = || {
        let world = World::new(seed);
        world.keep_history();
        test(&world);
        (world.take_history(), world.fingerprint())
    };
    let ((first, fingerprint), (second, _)) = (run(), run());
    let mut pairs = first.iter().zip(&second);
    let place = pairs.position(|(one, other)| one != other);
    let place = place.unwrap_or(first.len().min(second.len()));
    if place < first.len().max(second.len()) {
        let show = |packet: Option<_>| match packet {
            Some(packet) => format!("{packet}"),
            None => "no packet".to_owned(),
        };
        let number = place + 1;
        panic!(
            "seed {seed}: packet {number} differs\n first run: {}\nsecond run: {}",
            show(first.get(place)),
            show(second.get(place))
        );
    }
    fingerprint
}

/// Runs shared by threads.
struct Progress<S> {
    /// Seeds to run, with their places.
    seeds: Enumerate<S>,
    /// The first by place of those that failed.
    failed: Option<FailedSeed>,
}

/// A seed whose run panicked.
struct FailedSeed {
    place: usize,
    seed: u64,
    payload: Box<dyn Any + Send>,
}

/// Runs seeds until none is left or one has failed. Seeds before a failed one are all run, so that the
/// first of those that fail does not depend on the threads.
fn run(progress: &Mutex<Progress<impl Iterator<Item = u64>>>, test: &impl Fn(&World)) {
    let lock = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut progress = lock();
        if progress.failed.is_none() { progress.seeds.next() } else { None }
    };
    while let Some((place, seed)) = next() {
        let result = catch_unwind(AssertUnwindSafe(|| test(&World::new(seed))));
        if let Err(payload) = result {
            let mut progress = lock();
            if progress.failed.as_ref().is_none_or(|former| place < former.place) {
                progress.failed = Some(FailedSeed { place, seed, payload });
            }
        }
    }
}

fn named_seed() -> Option<u64> {
    let text = env::var(VARIABLE).ok()?;
    let seed = text.parse();
    Some(seed.unwrap_or_else(|_| panic!("{VARIABLE}={text}: give a number, 0 to {}", u64::MAX)))
}

fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
}

const VARIABLE: &str = "WHIMBREL_SIM_SEED";
