//! Short connections on FreeBSD 9.2, whose cores wait for one lock.

use super::{Bound, Case, Glance, Measure, Parameter, Picture, Role, Row, Unit, exactly, within};

pub(super) const CASE: Case = Case {
    name: "freebsd-qps",
    about: "threads that share a host answer queries of a connection each, in real time",
    story: "\
People saw FreeBSD 9.2 answer 52,000 TCP queries per second, each over a connection of its own, and no more
on more cores: they waited for the lock around the table of all connections.

They entered a connection into the listen queue only when it was complete, so that accept needs no such lock:
55,000 queries per second, 5 % more. Later work took the lock off most other steps as well and reached
150,000.

What was wrong: each step of each connection takes the same lock, in a query some seven times. However many
cores there are, together they do no more of it than one.

By default Whimbrel has a shard for each thread, with tables of its own, and nothing to lock between segment
and application. The figures here are of this machine and this moment: what has a verdict is how often a query
takes the lock.",
    parameters: &[
        Parameter { name: "threads", about: "threads that serve", unit: Unit::Count, default: 2.0, least: 1.0, most: 128.0 },
        Parameter { name: "hold", about: "how much longer each step takes, under the lock if there is one", unit: Unit::Time, default: 0.0, least: 0.0, most: 1.0 },
        Parameter { name: "lasts", about: "the length of a round", unit: Unit::Time, default: 1.0, least: 0.1, most: 3_600.0 },
        Parameter { name: "rounds", about: "rounds, of which the median counts", unit: Unit::Count, default: 3.0, least: 1.0, most: 1_000.0 },
    ],
    rows: &[
        Row { profile: "freebsd-9.2", settings: &[], role: Role::Report, bounds: &[NONE_FAILED, within("locks", 6.5, 9.0)] },
        Row { profile: "freebsd-9.2+accept-patch", settings: &[], role: Role::Report, bounds: &[NONE_FAILED, within("locks", 5.5, 6.5)] },
        Row { profile: "whimbrel", settings: &[], role: Role::Cure, bounds: &[NONE_FAILED, exactly("locks", 0.0)] },
    ],
    ablation: &[],
    columns: &[
        ("rate", "queries/s"),
        ("spread", "spread"),
        ("locks", "locks each"),
        ("held", "held"),
        ("waiting", "waiting"),
    ],
    picture: Picture::Bar("rate"),
    glance: Glance {
        title: "A server that more processors do not make faster",
        why: "\
Each step of each connection takes one lock that all processors share, so while one works the others wait:
twice the processors, hardly more answers. The first remedy took one of some seven steps off that lock. Whimbrel
gives each processor connections of its own, and nothing to lock.",
        figure: "locks",
        what: "locks taken for each query",
        rows: [0, 2],
    },
    distribution: None,
    steps: &[],
    measure: Measure::OnThreads,
};

const NONE_FAILED: Bound = exactly("failed", 0.0);
