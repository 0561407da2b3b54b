//! The kernel's sockets, as the baseline.

use std::time::Duration;

use whimbrel_apps::{Model, Part};
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::sys::{Interest, PollFd, ppoll};
use whimbrel_io::{Clock, Stop};
use whimbrel_tcp::Instant;
use whimbrel_wire::{Address, Endpoint};

use super::port::WATCH;
use super::{BUDGET, Job, KernelNet, Ran, nobody};
use crate::failure::Failure;

pub(super) fn run<J: Job>(
    job: &mut J,
    target: Option<Endpoint>,
    stop: &Stop,
) -> Result<Ran<J::Outcome>, Failure> {
    let (target, server) = match target {
        Some(target) => (target, None),
        None => {
            let (target, net) = listen()?;
            (target, Some((net, job.server())))
        }
    };
    let mut pair = Pair {
        client: job.client(target, Part::WHOLE),
        near: KernelNet::new().map_err(Failure::run)?,
        server,
        clock: Clock::start(),
    };
    pair.run(job, stop)?;
    let now = pair.clock.now();
    let outcome = J::end(pair.client, &mut pair.near, now);
    Ok(Ran {
        outcome: job.conclude(vec![outcome]).ok_or_else(nobody)?,
        client: None,
        server: None,
        links: None,
        steering: SteeringCounters::default(),
        target,
        seed: None,
        offloads: None,
        effort: None,
    })
}

/// A server's sockets, at a free port of this machine's own.
fn listen() -> Result<(Endpoint, KernelNet), Failure> {
    let mut net = KernelNet::new().map_err(Failure::run)?;
    let loopback = Address::from_v4_octets([127, 0, 0, 1]);
    let at = net.listen(Endpoint::new(loopback, 0), BACKLOG).map_err(Failure::run)?;
    Ok((at, net))
}

struct Pair<J: Job> {
    client: J::Client<KernelNet>,
    near: KernelNet,
    server: Option<(KernelNet, J::Server<KernelNet>)>,
    clock: Clock,
}

impl<J: Job> Pair<J> {
    fn run(&mut self, job: &mut J, stop: &Stop) -> Result<(), Failure> {
        let mut next_watch = Instant::ZERO;
        while !stop.is_set() && !self.client.is_done() {
            let now = self.clock.now();
            let mut more = self.client.poll(&mut self.near, now, AT_ONE_TIME);
            if let Some((net, server)) = &mut self.server {
                more |= server.poll(net, self.clock.now(), BUDGET);
                net.check().map_err(Failure::run)?;
            }
            self.near.check().map_err(Failure::run)?;
            if now >= next_watch && job.is_followed() {
                job.watch(&[J::course(&self.client, now)]);
                next_watch = now + WATCH;
            }
            if !more {
                self.wait(stop)?;
            }
        }
        Ok(())
    }

    fn wait(&self, stop: &Stop) -> Result<(), Failure> {
        let server = self.server.as_ref().and_then(|(_, server)| server.next_deadline());
        let next = [self.client.next_deadline(), server].into_iter().flatten().min();
        let timeout = next.map_or(WATCH, |next| self.clock.until(next)).min(Duration::from_secs(1));
        let near = PollFd::new(&self.near, Interest::Read);
        let stop = PollFd::new(stop, Interest::Read);
        let ready = match &self.server {
            Some((net, _)) => {
                let far = PollFd::new(net, Interest::Read);
                ppoll(&mut [near, stop, far], Some(timeout))
            }
            None => ppoll(&mut [near, stop], Some(timeout)),
        };
        ready.map(|_| ()).map_err(Failure::run)
    }
}

/// Events of the client dealt with at one time. A server elsewhere answers while others are dealt
/// with: were they taken for simultaneous, its answers would seem to take no time at all.
const AT_ONE_TIME: usize = 1;
/// The bound of the accept queue.
const BACKLOG: u32 = 4096;
