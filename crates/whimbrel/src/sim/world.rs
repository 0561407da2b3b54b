//! A world: a network of hosts with its runtime.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::yield_now;
use whimbrel_base::Instant;
use whimbrel_io::hub::{HubCounters, HubLinks};
use whimbrel_link::LinkConfig;

use super::faults::Faults;
use super::net::Net;
use super::network::Network;
use super::packet_log::Fingerprints;
use super::packet_summary::PacketSummary;
use super::program::{Outcome, Start};
use crate::{BuildError, StackBuilder};

/// A network of hosts at one hub, in virtual time.
///
/// Hosts have a link to the hub and one from it, so a round trip between two of them takes each delay
/// twice. All share one tokio runtime, whose clock is paused; [`World::run`] runs it. The world ends
/// with this value.
///
/// Methods that take a name panic if no host has it: a test has mistyped it.
pub struct World {
    runtime: Runtime,
    network: Arc<Network>,
}

impl World {
    /// Creates a world without hosts. All that its links and stacks draw comes from `seed`, and with
    /// `--cfg tokio_unstable` the order of `select!`, too.
    ///
    /// # Panics
    ///
    /// Panics if the system gives no descriptor, and within a tokio runtime: a world has its own.
    pub fn new(seed: u64) -> Self {
        assert!(Handle::try_current().is_err(), "World::new: {NESTED}");
        let runtime = runtime(seed).unwrap_or_else(|error| panic!("{NO_RUNTIME}: {error}"));
        let network = {
            let _context = runtime.enter();
            Network::new(seed, runtime.handle().clone())
        };
        Self { runtime, network: Arc::new(network.unwrap_or_else(|error| panic!("{error}"))) }
    }

    /// Sets the links of hosts that are added from now on. `link` describes the direction to the hub,
    /// and [`LinkConfig::back`] the other. The default is a perfect link.
    pub fn set_link(&self, link: LinkConfig) {
        self.network.lock().link = link;
    }

    /// Configures stacks that are built from now on: `configure` gets the name of the host and the
    /// builder. The world sets the wire, addresses, driver and seed.
    pub fn configure(
        &self,
        configure: impl Fn(&str, StackBuilder) -> Result<StackBuilder, BuildError>
        + Send
        + Sync
        + 'static,
    ) {
        self.network.lock().configure = Some(Arc::new(configure));
    }

    /// Adds a host that runs `program`, now and at each [restart](World::restart). A program that fails
    /// or panics fails the test; one that ends leaves its host running. A panic of a task that it
    /// spawned stays with that task, as in tokio.
    ///
    /// # Panics
    ///
    /// Panics if there is a host of this name (case is ignored) or 65,535 hosts, if the name is empty or an
    /// address, or if its stack cannot be built.
    pub fn host<P, F>(&self, name: &str, program: P)
    where
        P: Fn(Net) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let start: Start = Arc::new(move |net| Box::pin(program(net)));
        assert!(self.network.add(name, Some(start)), "there is a host {name:?} already");
        self.network.start(name);
    }

    /// Returns the host of this name, as its program has it; adds one without a program if there is
    /// none. The stack of a crashed host has ended.
    ///
    /// # Panics
    ///
    /// Panics at 65,535 hosts, if the name is empty or an address, or if the stack cannot be built.
    pub fn net(&self, name: &str) -> Net {
        if self.network.add(name, None) {
            self.network.start(name);
        }
        let net = self.network.net(name);
        net.unwrap_or_else(|| panic!("host {name:?} does not run yet"))
    }

    /// Runs the world until `test` ends, and returns its result. Tasks go on in the next call.
    ///
    /// Programs begin before `test` is first polled. Create timers within it, as in
    /// `world.run(async { tokio::time::sleep(second).await })`: outside there is no runtime.
    ///
    /// # Panics
    ///
    /// Panics if a program has failed or panicked, or a stack has by a panic of code that it calls (as
    /// of [`LinkHandle::on`](crate::LinkHandle::on)); at the [time limit](World::set_time_limit); if a
    /// capture cannot be written; and within a tokio runtime.
    pub fn run<F: Future>(&self, test: F) -> F::Output {
        assert!(Handle::try_current().is_err(), "World::run: {NESTED}");
        let limit = self.network.lock().time_limit;
        let hosts = self.network.names().len();
        let failures = &self.network.failures;
        let output = self.runtime.block_on(async {
            // The runtime polls some 60 tasks in each turn.
            for _ in 0..=hosts / 16 {
                yield_now().await;
            }
            let (mut test, mut limited) = (pin!(test), pin!(tokio::time::sleep(limit)));
            poll_fn(|cx| {
                failures.check(cx);
                if let Poll::Ready(output) = test.as_mut().poll(cx) {
                    failures.check(cx);
                    return Poll::Ready(output);
                }
                assert!(
                    limited.as_mut().poll(cx).is_pending(),
                    "the test has not ended after {limit:?} of virtual time: see set_time_limit"
                );
                Poll::Pending
            })
            .await
        });
        let flushed = self.network.log.flush();
        flushed.unwrap_or_else(|error| panic!("the capture cannot be written: {error}"));
        output
    }

    /// Sets the longest virtual time of each [`World::run`], 24 hours by default. A test that waits
    /// for something that never happens ends there.
    pub fn set_time_limit(&self, limit: Duration) {
        self.network.lock().time_limit = limit;
    }

    /// Crashes a host: packets on its links are lost, its sockets fail, and the future of its program is
    /// dropped when the runtime next turns to it, without being polled. Peers see silence. Tasks that
    /// the program spawned go on, with failing sockets; [`World::spawned_tasks`] counts those that do
    /// not end. Does nothing to a crashed host.
    pub fn crash(&self, name: &str) {
        self.network.crash(name);
    }

    /// Starts a crashed host again, with a fresh stack of the same addresses and its program from the
    /// beginning. Its stack answers segments of former connections by RST. A host that runs is crashed
    /// first. Until its program listens, it refuses connections: if links have no delay, a `connect` at
    /// the same time is.
    pub fn restart(&self, name: &str) {
        self.network.restart(name);
    }

    /// Drops all packets between two hosts at the hub. Those on the links from it arrive.
    ///
    /// # Panics
    ///
    /// Panics if both names are of one host.
    pub fn partition(&self, one: &str, other: &str) {
        self.network.partition(one, other);
    }

    /// Ends a partition of two hosts.
    pub fn heal(&self, one: &str, other: &str) {
        self.network.heal(one, other);
    }

    /// Draws crashes and partitions from the world's seed, while it runs.
    ///
    /// # Panics
    ///
    /// Panics if a name of `faults` is no host's or stands twice, or if there are too few: crashes need one
    /// host, and partitions two.
    pub fn faults(&self, faults: Faults) {
        let seed = self.network.next_fault_seed();
        let _context = self.runtime.enter();
        faults.spawn(&self.network, seed);
    }

    /// Returns the links between a host and the hub. They stay the same when it restarts.
    pub fn links(&self, name: &str) -> HubLinks {
        let port = self.network.port(name);
        self.network.hub.links(port).unwrap_or_else(|| panic!("host {name:?} has no links"))
    }

    /// Writes all packets of the following time to a pcapng file: what hosts send, with what becomes of
    /// it on the link to the hub, what arrives, and on the interface `hub` what got lost there. Each
    /// [`World::run`] completes the file.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written.
    pub fn record(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.network.log.record(File::create(path)?)
    }

    /// Returns a number that two runs share if their hosts sent the same packets: time, addresses,
    /// ports, flags, sequence numbers and length of each.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprints().headers
    }

    /// Returns a number that two runs share if their hosts sent the same packets, byte by byte and at
    /// the same times.
    pub fn fingerprint_bytes(&self) -> u64 {
        self.fingerprints().bytes
    }

    /// Returns the number of tasks that programs and tests have spawned and that have not ended.
    pub fn spawned_tasks(&self) -> usize {
        self.network.spawned_tasks()
    }

    /// Returns the virtual time since the world began.
    pub fn elapsed(&self) -> Duration {
        let _context = self.runtime.enter();
        self.network.clock.now().since(Instant::ZERO)
    }

    /// Returns the counters of the hub.
    pub fn counters(&self) -> HubCounters {
        self.network.hub.counters()
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.network.seed
    }

    fn fingerprints(&self) -> Fingerprints {
        self.network.log.fingerprints()
    }

    /// Keeps summaries of all packets from now on.
    pub(super) fn keep_history(&self) {
        self.network.log.keep_history();
    }

    /// Returns the kept summaries.
    pub(super) fn take_history(&self) -> Vec<PacketSummary> {
        self.network.log.take_history()
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts = self.network.names();
        let mut world = f.debug_struct("World");
        world.field("seed", &self.network.seed).field("hosts", &hosts).finish_non_exhaustive()
    }
}

fn runtime(seed: u64) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true);
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    #[cfg(not(tokio_unstable))]
    let _ = seed;
    builder.build()
}

const NO_RUNTIME: &str = "the system gives no runtime";
const NESTED: &str = "there is a runtime of tokio already, and a world has its own: use #[test] instead of \
                      #[tokio::test], and pass the async code to World::run";
