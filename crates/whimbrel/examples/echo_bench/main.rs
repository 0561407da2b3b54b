//! What the tokio types cost: the same echo over the same in-memory wire, by tasks on tokio and by ports on
//! the shards' own threads.
//!
//! `cargo run --release -p whimbrel --example echo_bench`
#![allow(clippy::unwrap_used, reason = "a measurement that fails says so by panicking")]

mod direct;
mod idle;
mod tokio_types;

use std::time::{Duration, Instant};

/// What is measured.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// So many connections, each with one message of 64 octets under way, there and back.
    PingPong { connections: usize },
    /// One connection, octets as fast as they go, one way.
    Stream { octets: u64 },
}

/// How it went: messages or octets, and the time they took, on the wall and of the processors.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    done: u64,
    took: Duration,
    cpu: Duration,
}

/// When a run began.
#[derive(Clone, Copy, Debug)]
struct Begun {
    wall: Instant,
    cpu: Duration,
}

impl Begun {
    fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    /// Whether it has run for long enough.
    fn is_over(self) -> bool {
        self.wall.elapsed() > Duration::from_millis(700)
    }

    fn outcome(self, done: u64) -> Outcome {
        Outcome { done, took: self.wall.elapsed(), cpu: cpu_time() - self.cpu }
    }
}

impl Outcome {
    fn per_second(self) -> f64 {
        self.done as f64 / self.took.as_secs_f64()
    }

    /// Processor time for each.
    fn cpu_nanos(self) -> f64 {
        self.cpu.as_nanos() as f64 / self.done as f64
    }
}

fn main() {
    idle::report();
    println!("{:34} {:>36} {:>36}", "", "tasks on tokio", "ports on the shards' threads");
    for connections in [1, 16, 256] {
        let load = Load::PingPong { connections };
        let name = format!("echo of 64 octets, {connections} at once");
        report(&name, load, |outcome| {
            let rate = outcome.per_second();
            let (each, cpu) = (connections as f64 / rate * 1e6, outcome.cpu_nanos() * 1e-3);
            format!("{rate:.0}/s, {each:.1} us, {cpu:.1} us CPU")
        });
    }
    let load = Load::Stream { octets: 2 << 30 };
    report("one flow, MTU 1500", load, |outcome| {
        let (rate, cpu) = (outcome.per_second() * 8e-9, outcome.cpu_nanos());
        format!("{rate:.2} Gbit/s, {cpu:.2} s CPU/GB")
    });
}

/// The median of three runs each, in turns.
fn report(name: &str, load: Load, show: impl Fn(Outcome) -> String) {
    let runs: Vec<_> = (0..3).map(|_| (tokio_types::run(load), direct::run(load))).collect();
    let median = |side: fn(&(Outcome, Outcome)) -> Outcome| {
        let mut outcomes: Vec<Outcome> = runs.iter().map(side).collect();
        outcomes.sort_by(|one, other| one.per_second().total_cmp(&other.per_second()));
        show(outcomes[1])
    };
    println!("{name:34} {:>36} {:>36}", median(|run| run.0), median(|run| run.1));
}

/// What the whole process has used so far, in steps of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    ticks.map(|ticks| Duration::from_millis(10) * ticks.parse::<u32>().unwrap()).sum()
}

const PORT: u16 = 7;
const MESSAGE: [u8; 64] = [7; 64];
const WRITE: usize = 64 << 10;
