//! A load over the kernel's sockets that several threads share, each with some of its connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use whimbrel_apps::Part;
use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::Runs;
use whimbrel_base::Instant;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Clock, Stop};
use whimbrel_wire::Endpoint;

use super::figures::Outcome;
use super::job::{Opposite, RunsJob};
use super::plan::LoadRunPlan;
use super::progress::LoadProgress;
use crate::drive::kernel::{self, KernelPair};
use crate::drive::{self, Job, KernelNet, Ran, Watch, nobody};
use crate::failure::Failure;
use crate::shards;

/// Runs `plan` on its threads; `job` is told how it goes.
pub(super) fn run(
    job: &mut RunsJob<'_, LoadRunPlan>,
    plan: &LoadRunPlan,
) -> Result<Ran<Outcome>, Failure> {
    drive::measure(|stop| {
        let (target, parts) = parts(job, plan)?;
        let shared = &ThreadsShared {
            seen: Mutex::new(vec![None; parts.len()]),
            left: AtomicUsize::new(parts.len()),
            is_followed: job.is_followed(),
            clock: Clock::start(),
            stop,
        };
        let outcomes = thread::scope(|scope| {
            let begin = |part: Share| {
                scope.spawn(move || {
                    // The server is made here: it stays on its thread.
                    part.drive(plan.server(), shared)
                })
            };
            let threads: Vec<_> = parts.into_iter().map(begin).collect();
            // None ends before the last one is done, unless it failed.
            let ended = || stop.is_set() || threads.iter().any(ScopedJoinHandle::is_finished);
            let watched = shared.watch(job, ended);
            stop.set();
            let outcomes = threads.into_iter().map(shards::join).collect::<Result<Vec<_>, _>>();
            watched.and(outcomes)
        })?;
        let outcome = job.conclude(outcomes).ok_or_else(nobody)?;
        Ok(Ran::over_the_kernel(outcome, target))
    })
}

/// What the threads have in common.
struct ThreadsShared<'s> {
    /// How far each is, since it told last.
    seen: Mutex<Vec<Option<LoadProgress>>>,
    /// How many are not done.
    left: AtomicUsize,
    /// Whether anybody wants to know.
    is_followed: bool,
    clock: Clock,
    stop: &'s Stop,
}

/// What one thread has of the load.
struct Share {
    number: usize,
    client: Runs<KernelNet>,
    /// The client's sockets.
    near: KernelNet,
    /// Those of its server, if that is in this process.
    far: Option<KernelNet>,
}

/// What each thread has of the load, and where the server is.
fn parts(
    job: &RunsJob<'_, LoadRunPlan>,
    plan: &LoadRunPlan,
) -> Result<(Endpoint, Vec<Share>), Failure> {
    let (target, servers) = match plan.target {
        Some(target) => (target, Vec::new()),
        None => kernel::listen(plan.threads)?,
    };
    let mut servers = servers.into_iter();
    let mut parts = Vec::new();
    for (number, place) in (0..plan.threads).enumerate() {
        let part = Part { number: place, of: plan.threads };
        let client = job.client(target, part);
        let near = KernelNet::new().map_err(Failure::run)?;
        parts.push(Share { number, client, near, far: servers.next() });
    }
    Ok((target, parts))
}

impl Share {
    /// Runs it from its beginning to its end, on the calling thread.
    fn drive(
        self,
        server: HttpServer<FixedBody, KernelNet>,
        shared: &ThreadsShared<'_>,
    ) -> Result<Outcome, Failure> {
        let mut next_look = Instant::ZERO;
        let tell = |client: &Runs<KernelNet>, net: &KernelNet, now| {
            if !shared.is_followed || now < next_look {
                return;
            }
            next_look = now + LOOK;
            // What the kernel holds it holds for all: the first tells.
            let told = LoadProgress::of(client, (self.number == 0).then_some(net), now);
            let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = seen.get_mut(self.number) {
                *place = Some(told);
            }
        };
        // Its server may have connections of the others: the last one ends all.
        let on_done = || {
            if shared.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                shared.stop.set();
            }
        };
        let server = self.far.map(|net| (net, server));
        let mut pair =
            KernelPair { client: self.client, near: self.near, server, clock: shared.clock };
        pair.run(tell, on_done, shared.stop)?;
        Ok(RunsJob::<LoadRunPlan>::end(pair.client, &mut pair.near, shared.clock.now()))
    }
}

impl ThreadsShared<'_> {
    /// Tells `job` how all of them go, until they end, or are to end.
    fn watch(
        &self,
        job: &mut RunsJob<'_, LoadRunPlan>,
        ended: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        while !ended() {
            let mut stop = [PollFd::new(self.stop, Interest::Read)];
            ppoll(&mut stop, Some(LOOK)).map_err(Failure::run)?;
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // A thread that has not told anything yet would be missed in the sum.
            let seen: Option<Vec<_>> = seen.into_iter().collect();
            if seen.is_some_and(|courses| job.watch(&courses) == Watch::End) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// How often they are looked at: what they measured so far is copied each time.
const LOOK: Duration = Duration::from_millis(200);
