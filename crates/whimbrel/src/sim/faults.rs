//! Crashes and partitions drawn from a seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};

use super::network::Network;

/// Crashes and partitions of some hosts, for [`World::faults`](super::World::faults).
///
/// Times are drawn evenly between zero and twice the mean, which is at most a thousand years. One host is
/// down at a time, and one pair is parted at a time.
///
/// ```
/// use std::time::Duration;
/// use whimbrel::sim::Faults;
///
/// // A crash every 30 s for 5 s, a partition every 10 s for 1 s, and none after ten minutes.
/// let faults = Faults::among(["one", "two", "three"])
///     .crashes(Duration::from_secs(30), Duration::from_secs(5))
///     .partitions(Duration::from_secs(10), Duration::from_secs(1))
///     .until(Duration::from_secs(600));
/// # drop(faults);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    hosts: Vec<String>,
    crashes: Option<Means>,
    partitions: Option<Means>,
    until: Option<Duration>,
}

/// Mean times of a kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Means {
    between: Duration,
    lasting: Duration,
}

impl Faults {
    /// No faults yet, of the hosts with these names. [`World::faults`](super::World::faults) wants one of
    /// them for crashes, and two for partitions.
    pub fn among<N: Into<String>>(hosts: impl IntoIterator<Item = N>) -> Self {
        let hosts = hosts.into_iter().map(Into::into).collect();
        Self { hosts, crashes: None, partitions: None, until: None }
    }

    /// Crashes one of the hosts and restarts it. `between` is the mean time from a restart to the next
    /// crash, at least 1 ms; `lasting` from a crash to its restart.
    pub fn crashes(mut self, between: Duration, lasting: Duration) -> Self {
        self.crashes = Some(Means::new(between, lasting));
        self
    }

    /// Parts two of the hosts, and heals the partition. `between` is the mean time from healing to the
    /// next partition, at least 1 ms; `lasting` the mean time of a partition.
    pub fn partitions(mut self, between: Duration, lasting: Duration) -> Self {
        self.partitions = Some(Means::new(between, lasting));
        self
    }

    /// Ends the faults after this time: what is down then restarts, and what is parted heals. By
    /// default they go on until the world ends.
    pub fn until(mut self, time: Duration) -> Self {
        self.until = Some(time);
        self
    }

    /// Spawns the tasks that cause the faults.
    pub(super) fn spawn(self, network: &Arc<Network>, seed: u64) {
        let places: BTreeSet<_> = self.hosts.iter().map(|name| network.port(name)).collect();
        let mut rng = Rng::with_seed(seed);
        let end = self.until.and_then(|time| Instant::now().checked_add(time));
        let hosts: Arc<[String]> = self.hosts.into();
        let kinds = [(self.crashes, Kind::Crash), (self.partitions, Kind::Partition)];
        for (means, kind) in kinds {
            // Both are drawn whether or not they are used.
            let task = FaultTask {
                network: Arc::clone(network),
                hosts: Arc::clone(&hosts),
                rng: rng.fork(),
                end,
                kind,
            };
            let Some(means) = means else { continue };
            let (most, least) = (places.len(), kind.hosts());
            assert!(most >= least, "{kind:?} needs {least} hosts, and Faults::among names {most}");
            assert!(most == hosts.len(), "Faults::among names a host twice: {hosts:?}");
            network.spawn("faults".into(), async move {
                task.run(means).await;
                Ok(())
            });
        }
    }
}

/// Kind of fault.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Crash,
    Partition,
}

impl Kind {
    /// Number of hosts that it takes.
    const fn hosts(self) -> usize {
        match self {
            Self::Crash => 1,
            Self::Partition => 2,
        }
    }
}

/// Causes faults of one kind.
struct FaultTask {
    network: Arc<Network>,
    hosts: Arc<[String]>,
    rng: Rng,
    end: Option<Instant>,
    kind: Kind,
}

impl FaultTask {
    async fn run(mut self, means: Means) {
        loop {
            sleep(means.draw(means.between, &mut self.rng)).await;
            if self.end.is_some_and(|end| Instant::now() >= end) {
                return;
            }
            let mut hosts = self.rng.choose_multiple(self.hosts.iter(), self.kind.hosts());
            self.rng.shuffle(&mut hosts);
            let over = Instant::now() + means.draw(means.lasting, &mut self.rng);
            let over = self.end.map_or(over, |end| over.min(end));
            match (self.kind, hosts.as_slice()) {
                (Kind::Crash, [host, ..]) => {
                    self.network.crash(host);
                    sleep_until(over).await;
                    self.network.restart(host);
                }
                (Kind::Partition, [one, other]) => {
                    self.network.partition(one, other);
                    sleep_until(over).await;
                    self.network.heal(one, other);
                }
                _ => return,
            }
        }
    }
}

impl Means {
    fn new(between: Duration, lasting: Duration) -> Self {
        Self {
            between: between.clamp(Duration::from_millis(1), LONGEST),
            lasting: lasting.min(LONGEST),
        }
    }

    /// Draws a time evenly between zero and twice `mean`.
    fn draw(self, mean: Duration, rng: &mut Rng) -> Duration {
        mean.mul_f64(2.0 * rng.f64())
    }
}

/// Longest mean: a thousand years, twice of which can be added to any time.
const LONGEST: Duration = Duration::from_secs(1_000 * 365 * 86_400);
