//! Short connections on FreeBSD 9.2, whose cores wait for one lock.

use crate::{
    Advice, Bound, Case, CaseSummary, Measure, Parameter, Picture, Role, Row, Unit, column,
    exactly, strip, within,
};

pub(super) const CASE: Case = Case {
    name: "freebsd-qps",
    about: "threads that share a host answer queries, each over its own connection, in real time",
    advice: Advice {
        symptom: "\
The processors are busy in the kernel, and twice as many hardly raise the rate, or lower it. `lockstat -A
sleep 5` (FreeBSD, illumos) or `perf lock contention -ab sleep 5` (Linux) names the lock.",
        today: "\
Keep connections alive, or send several queries over one. On FreeBSD use version 11 or later, and a listener
for each thread by `SO_REUSEPORT_LB`. On Linux do the same by `SO_REUSEPORT`, and distribute packets to as
many queues (RSS, RPS).",
        price: "\
With a listener for each thread, a hash distributes the connections: one thread may get more than another.",
        whimbrel: "\
Set only the number of threads (`whimbrel serve --shards 2`): each has its own connections.",
    },
    story: "\
People saw FreeBSD 9.2 answer 52,000 TCP queries per second, each over its own connection, and no more on
more cores: they waited for the lock around the table of all connections.

They added a connection to the listen queue only when it was complete, so that accept needs no such lock:
55,000 queries per second, 5 % more. Later work removed the lock from most other steps as well, and reached
150,000.

What was wrong: each step of each connection takes the same lock, about seven times for a query. Any number
of cores together completes no more of these steps than one.

By default Whimbrel has a shard for each thread, with its own tables, and takes no lock between segment and
application. The rates here are those of this machine at this moment; the verdict depends only on the number
of locks for each query.",
    parameters: &[
        Parameter { name: "threads", about: "threads of the server", unit: Unit::Count, default: 2.0, least: 1.0, most: 128.0 },
        Parameter { name: "hold", about: "additional time of each step, under the lock if there is one", unit: Unit::Time, default: 0.0, least: 0.0, most: 1.0 },
        Parameter { name: "lasts", about: "length of a round; longer until each thread has answered 200 queries", unit: Unit::Time, default: 1.0, least: 0.1, most: 3_600.0 },
        Parameter { name: "rounds", about: "rounds; the median counts", unit: Unit::Count, default: 3.0, least: 1.0, most: 1_000.0 },
    ],
    rows: &[
        Row { profile: "freebsd-9.2", settings: &[("threads", "1")], role: Role::Inferred, bounds: SEVEN },
        Row { profile: "freebsd-9.2", settings: &[("threads", "2")], role: Role::Report, bounds: SEVEN },
        Row { profile: "freebsd-9.2+accept-patch", settings: &[("threads", "2")], role: Role::Better, bounds: &[NONE_FAILED, within("locks", 5.5, 6.5)] },
        Row { profile: "whimbrel", settings: &[("threads", "1")], role: Role::Cure, bounds: NO_LOCK },
        Row { profile: "whimbrel", settings: &[("threads", "2")], role: Role::Cure, bounds: NO_LOCK },
    ],
    tunables: &[],
    ablation: &[],
    columns: &[
        column("rate", "queries/s", "queries/s"),
        column("spread", "spread", "spread of the rounds"),
        column("locks", "locks each", "locks for each query"),
        column("held", "held", "time that a lock is held"),
        column("waiting", "waiting", "share of the time that threads wait for it"),
    ],
    terms: &[("failed", "queries that failed")],
    picture: Picture::Bar("rate"),
    strips: &[
        strip("queries/s", "queries answered per second", "\
In each twentieth of the round. A second thread adds little or nothing where both take one lock (✕), and nearly as much again
where each has its own tables (✓)."),
        strip("waiting", "of the time threads wait for the lock", "\
✕ waits whenever the other thread is inside. ✓ has no lock to wait for."),
    ],
    glance: CaseSummary {
        title: "A server that a second thread makes no faster",
        because: "\
because each step of each connection, about seven for a query, takes one lock that all threads share",
        cure: "Whimbrel gives each thread its own connections, without a lock",
        why: "\
Each step of each connection takes one lock that all threads share, so while one works the others wait.
Twice the threads and processors give hardly more answers, or fewer, because passing the lock on takes time
as well. The first remedy removed the lock from one of about seven steps. The cure is to share nothing:
Whimbrel gives each thread its own connections, without a lock.",
        figure: "rate",
        what: "queries/s with two threads: measured in real time, by the machine that made this page",
        rows: [1, 4],
        bars: &[0, 1, 3, 4],
        limit: None,
    },
    distribution: None,
    steps: &[],
    measure: Measure::OnThreads { most_spread: 40.0 },
};

const NONE_FAILED: Bound = exactly("failed", 0.0);
const SEVEN: &[Bound] = &[NONE_FAILED, within("locks", 6.5, 9.0)];
const NO_LOCK: &[Bound] = &[NONE_FAILED, exactly("locks", 0.0)];
