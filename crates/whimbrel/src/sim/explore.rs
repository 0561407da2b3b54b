//! Runs of a test with many seeds, and twice with one.

use std::any::Any;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::World;

/// Runs `test` in a world of each seed, with a thread for each core, until one panics. If the
/// environment variable `WHIMBREL_SIM_SEED` has a number, only that seed is run.
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
pub fn explore(seeds: impl IntoIterator<Item = u64>, test: impl Fn(&World) + Sync) {
    if let Some(seed) = named_seed() {
        return test(&World::new(seed));
    }
    // An iterator need not be `Send`.
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let progress = Mutex::new(Progress { next: 0, failed: None });
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads.min(seeds.len()) {
            scope.spawn(|| run(&seeds, &progress, &test));
        }
    });
    let failed = progress.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    if let Some((place, payload)) = failed {
        let seed = seeds.get(place).copied().unwrap_or_default();
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
struct Progress {
    /// Place of the next seed.
    next: usize,
    /// The first seed that failed, by place, with its panic.
    failed: Option<(usize, Box<dyn Any + Send>)>,
}

/// Runs seeds until none is left or one has failed. Seeds before a failed one are all run, so that the
/// first of those that fail does not depend on the threads.
fn run(seeds: &[u64], progress: &Mutex<Progress>, test: &impl Fn(&World)) {
    let lock = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let place = {
            let mut progress = lock();
            progress.next += 1;
            match progress.failed {
                None => progress.next - 1,
                Some(_) => return,
            }
        };
        let Some(seed) = seeds.get(place) else { return };
        let result = catch_unwind(AssertUnwindSafe(|| test(&World::new(*seed))));
        if let Err(payload) = result {
            let mut progress = lock();
            if progress.failed.as_ref().is_none_or(|(former, _)| place < *former) {
                progress.failed = Some((place, payload));
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
