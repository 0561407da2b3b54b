//! The hosts of a world, their stacks and programs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use whimbrel_io::Clock;
use whimbrel_io::hub::{Hub, HubPort};
use whimbrel_link::LinkConfig;

use super::failure::{Failure, FailureSlot};
use super::hub_task::HubTask;
use super::net::Net;
use super::packet_log::PacketLog;
use super::program::{Outcome, Program, Start, TaskCount};
use crate::clock::TimeSource;
use crate::driver::Driver;
use crate::host_names::{HostAddresses, HostNames};
use crate::shutdown::Shutdown;
use crate::{BuildError, Stack, StackBuilder};

/// A world without its runtime, for the tasks in it.
pub(super) struct Network {
    pub(super) seed: u64,
    runtime: Handle,
    pub(super) clock: Clock,
    pub(super) hub: Arc<Hub>,
    pub(super) log: Arc<PacketLog>,
    names: Arc<HostNames>,
    pub(super) failures: Arc<FailureSlot>,
    /// Number of tasks of the world's own, except for those of stacks.
    tasks: Arc<AtomicUsize>,
    state: Mutex<State>,
}

/// State of a network that changes.
pub(super) struct State {
    /// By name in lower case.
    hosts: BTreeMap<String, Host>,
    pub(super) link: LinkConfig,
    pub(super) configure: Option<Arc<Configure>>,
    pub(super) time_limit: Duration,
    /// Ends of stacks that have tasks, with the number of these.
    stacks: Vec<(Weak<Shutdown>, usize)>,
    /// Number of calls of `faults`.
    faults: u64,
}

/// Configures the stack of the host with a name.
pub(super) type Configure =
    dyn Fn(&str, StackBuilder) -> Result<StackBuilder, BuildError> + Send + Sync;

/// A host, which may be down.
struct Host {
    name: Arc<str>,
    number: u16,
    port: HubPort,
    addresses: HostAddresses,
    /// Number of starts, each with its own seed.
    starts: u64,
    net: Option<Net>,
    shutdown: Weak<Shutdown>,
    start: Option<Start>,
    program: Option<AbortHandle>,
}

impl Network {
    pub(super) fn new(seed: u64, runtime: Handle) -> io::Result<Self> {
        let (clock, log) = (TimeSource::Runtime.start(), Arc::new(PacketLog::new()));
        let handle = runtime.clone();
        // Tests use handles of links outside of the runtime, too.
        let now = move || {
            let _context = handle.enter();
            clock.now()
        };
        let hub = Arc::new(Hub::new(clock, now, Arc::clone(&log) as _)?);
        let tasks = Arc::default();
        let state = State {
            hosts: BTreeMap::new(),
            link: LinkConfig::default(),
            configure: None,
            time_limit: TIME_LIMIT,
            stacks: Vec::new(),
            faults: 0,
        };
        let (names, failures) = (Arc::default(), Arc::default());
        let state = Mutex::new(state);
        let network = Self { seed, runtime, clock, hub, log, names, failures, tasks, state };
        network.spawn("hub".into(), HubTask::new(Arc::clone(&network.hub), clock));
        Ok(network)
    }

    /// Adds a host. Returns false if there is one of this name.
    pub(super) fn add(&self, name: &str, start: Option<Start>) -> bool {
        let mut state = self.lock();
        let key = name.to_ascii_lowercase();
        if state.hosts.contains_key(&key) {
            return false;
        }
        let is_name = !name.is_empty() && name.parse::<IpAddr>().is_err();
        assert!(
            is_name,
            "{name:?} is no name of a host: give a text that is not empty and no address"
        );
        let number = u16::try_from(state.hosts.len() + 1);
        let number = number.unwrap_or_else(|_| panic!("a world has at most 65,535 hosts"));
        let addresses = HostAddresses::numbered(number);
        let both = [addresses.v4.into(), addresses.v6.into()];
        let links = [state.link.clone(), state.link.back()];
        let name: Arc<str> = name.into();
        self.log.add_host(Arc::clone(&name));
        let port = self.hub.add(&both.map(IpAddr::into), links, self.mix(LINKS, number.into()));
        self.names.add(&name, addresses);
        let host = Host {
            name,
            number,
            port,
            addresses,
            starts: 0,
            net: None,
            shutdown: Weak::new(),
            start,
            program: None,
        };
        state.hosts.insert(key, host);
        true
    }

    /// Builds the stack of a host, and starts its program.
    pub(super) fn start(&self, name: &str) {
        let _context = self.runtime.enter();
        let (net, start) = {
            let mut state = self.lock();
            let configure = state.configure.clone();
            let host = state.host(name);
            host.starts += 1;
            let seed = self.mix(host.number.into(), host.starts);
            let (net, shutdown) = self.build(host, seed, configure.as_deref());
            host.shutdown = Weak::clone(&shutdown);
            host.net = Some(net.clone());
            let start = host.start.clone();
            state.stacks.retain(|(stack, _)| stack.strong_count() > 0);
            state.stacks.push((shutdown, net.stack().shards()));
            (net, start)
        };
        let Some(start) = start else { return };
        let program = self.spawn(format!("the program of host {:?}", net.name), start(net));
        self.lock().host(name).program = Some(program);
    }

    fn build(
        &self,
        host: &Host,
        seed: u64,
        configure: Option<&Configure>,
    ) -> (Net, Weak<Shutdown>) {
        let HostAddresses { v4, v6 } = host.addresses;
        let name = Arc::clone(&host.name);
        let failed = |error: &dyn Display| -> ! {
            panic!("the stack of host {name:?} cannot be built: {error}")
        };
        let Some(end) = self.hub.plug(host.port) else { failed(&"the hub has no place for it") };
        let build = || {
            let mut builder = Stack::builder();
            if let Some(configure) = configure {
                builder = configure(&name, builder)?;
            }
            let builder = builder.mem(end).address(v4, 8)?.address(v6, 64)?;
            builder.seed(seed).driver(Driver::Runtime).build_named(Arc::clone(&self.names))
        };
        match build() {
            Ok((stack, shutdown)) => {
                let (failures, failed) = (Arc::clone(&self.failures), Arc::clone(&name));
                shutdown.on_failure(move |why| {
                    failures.put(Failure::Error(format!(
                        "the stack of host {failed:?} has ended: {why}"
                    )));
                });
                let names = Arc::clone(&self.names);
                let addresses = host.addresses;
                (Net { name, stack, names, addresses }, Arc::downgrade(&shutdown))
            }
            Err(error) => failed(&error),
        }
    }

    /// Crashes a host, if it runs.
    pub(super) fn crash(&self, name: &str) {
        let (port, shutdown, program) = {
            let mut state = self.lock();
            let host = state.host(name);
            (host.port, std::mem::take(&mut host.shutdown), host.program.take())
        };
        self.hub.unplug(port);
        if let Some(shutdown) = shutdown.upgrade() {
            shutdown.end_for("its host has crashed".into());
        }
        if let Some(program) = program {
            program.abort();
        }
    }

    /// Starts a host again.
    pub(super) fn restart(&self, name: &str) {
        self.crash(name);
        self.start(name);
    }

    pub(super) fn partition(&self, one: &str, other: &str) {
        let (name, one, other) = (one, self.port(one), self.port(other));
        assert!(one != other, "a partition needs two hosts, and both names are of {name:?}");
        self.hub.block(one, other);
        self.hub.block(other, one);
    }

    pub(super) fn heal(&self, one: &str, other: &str) {
        let (one, other) = (self.port(one), self.port(other));
        self.hub.unblock(one, other);
        self.hub.unblock(other, one);
    }

    /// Spawns a task of the world's own, whose panics and errors fail the test. `what` names it.
    pub(super) fn spawn(
        &self,
        what: String,
        task: impl Future<Output = Outcome> + Send + 'static,
    ) -> AbortHandle {
        let program = Program {
            what,
            running: Box::pin(task),
            failures: Arc::clone(&self.failures),
            _counted: TaskCount::new(&self.tasks),
        };
        self.runtime.spawn(program).abort_handle()
    }

    /// Returns the host of this name, once it has been started.
    pub(super) fn net(&self, name: &str) -> Option<Net> {
        self.lock().host(name).net.clone()
    }

    /// Returns the names of all hosts.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.lock().hosts.values().map(|host| Arc::clone(&host.name)).collect()
    }

    pub(super) fn port(&self, name: &str) -> HubPort {
        self.lock().host(name).port
    }

    pub(super) fn spawned_tasks(&self) -> usize {
        let stacks = self
            .lock()
            .stacks
            .iter()
            .map(|(stack, tasks)| match stack.strong_count() {
                0 => 0,
                _ => *tasks,
            })
            .sum::<usize>();
        let own = stacks + self.tasks.load(Ordering::Relaxed);
        self.runtime.metrics().num_alive_tasks().saturating_sub(own)
    }

    /// Returns the seed of the next call of `faults`.
    pub(super) fn next_fault_seed(&self) -> u64 {
        let mut state = self.lock();
        state.faults += 1;
        self.mix(FAULTS, state.faults)
    }

    /// Derives a seed from the world's for one of several purposes.
    fn mix(&self, purpose: u64, number: u64) -> u64 {
        let mut rng = Rng::with_seed(self.seed);
        let mut rng = Rng::with_seed(rng.u64(..) ^ purpose);
        Rng::with_seed(rng.u64(..) ^ number).u64(..)
    }

    /// Locks the state. A panic under the lock has failed the test.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn host(&mut self, name: &str) -> &mut Host {
        let found = self.hosts.get_mut(&name.to_ascii_lowercase());
        found.unwrap_or_else(|| panic!("no host of this world has the name {name:?}"))
    }
}

/// Purposes of derived seeds; the numbers of hosts have 16 bits.
const LINKS: u64 = 1 << 16;
const FAULTS: u64 = 1 << 17;
const TIME_LIMIT: Duration = Duration::from_secs(24 * 3_600);
