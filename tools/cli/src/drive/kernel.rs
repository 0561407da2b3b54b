//! The kernel's sockets, as the baseline.

use std::time::Duration;

use whimbrel_apps::Model;
use whimbrel_base::Instant;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Clock, ShardThreads, Stop};
use whimbrel_wire::{Address, Endpoint};

use super::port::{WATCH, Watcher};
use super::{BUDGET, FinishedRun, Job, KernelNet, clients, no_client};
use crate::failure::Failure;

/// Runs the client's parts on separate threads, each with a server if there is no other.
pub(super) fn run<J: Job>(
    job: &mut J,
    target: Option<Endpoint>,
    stop: &Stop,
) -> Result<FinishedRun<J::Outcome>, Failure>
where
    J::Client<KernelNet>: Send,
    J::Server<KernelNet>: Send,
{
    let threads = job.kernel_threads();
    // On failure it opens fewer, and reports that.
    let _as_it_is = whimbrel_io::descriptors::raise_limit();
    let (target, servers) = match target {
        Some(target) => (target, Vec::new()),
        None => listen(threads)?,
    };
    let clients = clients(job, threads, target);
    let (mut watcher, clock) = (Watcher::new(job, &clients, stop), Clock::start());
    let shared = &watcher.shared();
    let mut servers = servers.into_iter();
    let pair = |(number, client)| {
        let near = KernelNet::new().map_err(Failure::run)?;
        let server = servers.next().map(|net| (net, job.server()));
        Ok((number, KernelPair { client, near, server, clock }))
    };
    let pairs = clients.into_iter().enumerate().map(pair).collect::<Result<Vec<_>, Failure>>()?;
    let drive = |(number, mut pair): (usize, KernelPair<J::Client<KernelNet>, _>)| {
        let tell = |client: &_, net: &_, now| {
            // The kernel's usage is for all threads: the first one reports it.
            let net = (number == 0).then_some(net);
            shared.tell(number, || J::progress(client, net, now));
        };
        pair.run(tell, || shared.on_done(), stop)?;
        Ok(J::end(pair.client, &mut pair.near, clock.now()))
    };
    let threads = ShardThreads { stop, processors: &[] };
    let outcomes = threads.run(pairs, drive, || watcher.stay(job, || clock.now(), stop))?;
    let outcome = job.conclude(outcomes).ok_or_else(no_client)?;
    Ok(FinishedRun::over_the_kernel(outcome, target))
}

/// The sockets of `servers` servers, all at one free port of this machine: the kernel gives each
/// connection to one of them.
fn listen(servers: u32) -> Result<(Endpoint, Vec<KernelNet>), Failure> {
    let mut at = Endpoint::new(Address::from_v4_bytes([127, 0, 0, 1]), 0);
    let mut nets = Vec::new();
    for _ in 0..servers {
        let mut net = KernelNet::new().map_err(Failure::run)?;
        at = net.listen_beside_others(at, BACKLOG).map_err(Failure::run)?;
        nets.push(net);
    }
    Ok((at, nets))
}

/// A client on one thread, with a server if it needs one in this process.
struct KernelPair<C, S> {
    client: C,
    near: KernelNet,
    server: Option<(KernelNet, S)>,
    clock: Clock,
}

impl<C: Model<KernelNet>, S: Model<KernelNet>> KernelPair<C, S> {
    /// Runs until stopped. A watcher sees the client's progress regularly. Calls `on_done` once the
    /// client is done; the server continues.
    fn run(
        &mut self,
        mut watch: impl FnMut(&C, &KernelNet, Instant),
        on_done: impl Fn(),
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut next_watch = Instant::ZERO;
        let mut done = false;
        while !stop.is_set() {
            let now = self.clock.now();
            let mut more = !done && self.client.poll(&mut self.near, now, AT_ONE_TIME);
            if let Some((net, server)) = &mut self.server {
                more |= server.poll(net, self.clock.now(), BUDGET);
                net.check().map_err(Failure::run)?;
            }
            self.near.check().map_err(Failure::run)?;
            if now >= next_watch {
                watch(&self.client, &self.near, now);
                next_watch = now + WATCH;
            }
            if !done && self.client.is_done() {
                done = true;
                on_done();
                more = true;
            }
            if !more {
                self.wait(stop, done)?;
            }
        }
        Ok(())
    }

    fn wait(&self, stop: &Stop, done: bool) -> Result<(), Failure> {
        let server = self.server.as_ref().and_then(|(_, server)| server.next_deadline());
        let next = [self.client.next_deadline(), server].into_iter().flatten().min();
        let timeout = next.map_or(WATCH, |next| self.clock.until(next)).min(Duration::from_secs(1));
        let patience = self.server.as_ref().and_then(|(net, _)| net.patience());
        let timeout = patience.map_or(timeout, |patience| timeout.min(patience));
        let near = PollFd::new(&self.near, Interest::Read);
        let stop = PollFd::new(stop, Interest::Read);
        let far = self.server.as_ref().map(|(net, _)| PollFd::new(net, Interest::Read));
        // Events of a client that is done have no reader.
        let ready = match (done, far) {
            (false, Some(far)) => ppoll(&mut [near, stop, far], Some(timeout)),
            (false, None) => ppoll(&mut [near, stop], Some(timeout)),
            (true, Some(far)) => ppoll(&mut [stop, far], Some(timeout)),
            (true, None) => ppoll(&mut [stop], Some(timeout)),
        };
        ready.map(|_| ()).map_err(Failure::run)
    }
}

/// Events of the client dealt with at one time. A server elsewhere answers while others are dealt
/// with: were they taken for simultaneous, its answers would seem to take no time at all.
const AT_ONE_TIME: usize = 1;
/// The bound of the accept queue.
const BACKLOG: u32 = 4096;
