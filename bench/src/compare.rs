//! Every case on every peer, one after the other, round by round, so that a machine that drifts
//! drifts for all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::case::{Answer, Case, Kind, Limits, Measured, Spent};
use crate::meter::children_cpu_time;
use crate::peers::{PEERS, Peer, Ready, last_line};
use crate::report::grouped;

/// A comparison.
pub(crate) struct ComparisonPlan {
    /// Each case, in the order of the table.
    pub(crate) cases: Vec<Case>,
    /// Limits of each call.
    pub(crate) limits: Limits,
    /// Number of rounds of each case.
    pub(crate) rounds: u32,
    /// The measured subject.
    pub(crate) subject: Subject,
}

/// Subject of a comparison: its table's text, and its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// Short connections and their records, on all peers.
    Churn,
    /// Datagrams, on those that carry them between two hosts in one thread.
    Datagrams,
}

impl Subject {
    /// Its name on the command line and at its table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Churn => "churn",
            Self::Datagrams => "datagrams",
        }
    }

    fn peers(self) -> impl Iterator<Item = &'static Peer> {
        PEERS.iter().filter(move |peer| self == Self::Churn || ECHOING.contains(&peer.name))
    }
}

/// Results of the comparison.
pub(crate) struct Comparison {
    /// The peers that were there.
    pub(crate) peers: Vec<Ready>,
    /// Those that were not, and why.
    pub(crate) missing: Vec<(&'static str, String)>,
    /// By case and peer.
    pub(crate) cells: HashMap<(Case, &'static str), Cell>,
}

/// A peer's result of a case.
pub(crate) enum Cell {
    /// A measurement a round, at least one.
    Measured(Vec<Measured>),
    /// Why it was not measured.
    Without(String),
}

impl ComparisonPlan {
    /// Everything, or what takes a minute.
    pub(crate) fn new(quick: bool, rounds: Option<u32>) -> Self {
        // Filling all ports takes the slowest peer some seconds.
        let ports: &[u32] = if quick { &[0, 99] } else { &[0, 50, 99, 100] };
        let (most, record_count, idle): (_, _, &[u32]) = if quick {
            (100_000, 100_000, &[10_000])
        } else {
            (10_000_000, 1_000_000, &[10_000, 1_000_000])
        };
        let of = |kind: Kind, scales: &[u32]| -> Vec<Case> {
            scales.iter().filter(|it| **it <= most).map(|&scale| Case { kind, scale }).collect()
        };
        let waiting = [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
        let cases = [
            of(Kind::Churn, &waiting),
            of(Kind::Few, &[0]),
            of(Kind::Ports, ports),
            of(Kind::TimeWait, &[record_count]),
            of(Kind::Syn, &[record_count]),
            of(Kind::Idle, &[record_count]),
            of(Kind::Packet, idle),
            of(Kind::Burst, idle),
        ];
        let (fill, measure) = if quick { (500, 100) } else { (60_000, 1_000) };
        let limits = Limits {
            fill: Duration::from_millis(fill),
            measure: Duration::from_millis(measure),
            memory: MEMORY,
        };
        let (cases, subject) = (cases.concat(), Subject::Churn);
        Self { cases, limits, rounds: rounds.unwrap_or(if quick { 1 } else { 3 }), subject }
    }

    /// Datagrams there and back, one at a time and many.
    pub(crate) fn datagrams(quick: bool, rounds: Option<u32>) -> Self {
        let cases = [1, 64].map(|scale| Case { kind: Kind::Datagrams, scale });
        let measure = Duration::from_millis(if quick { 100 } else { 300 });
        let limits = Limits { fill: Duration::ZERO, measure, memory: MEMORY };
        let rounds = rounds.unwrap_or(if quick { 3 } else { 7 });
        Self { cases: cases.into(), limits, rounds, subject: Subject::Datagrams }
    }

    /// Does it, and says on stderr how far it is. Without `only`, all peers.
    pub(crate) fn run(&self, only: &[String]) -> Result<Comparison, Failure> {
        let names: Vec<_> = self.subject.peers().map(|it| it.name).collect();
        if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(format!("{unknown}: no peer; there are {}", names.join(", ")).into());
        }
        let mut comparison =
            Comparison { peers: Vec::new(), missing: Vec::new(), cells: HashMap::new() };
        let wanted = |it: &&Peer| only.is_empty() || only.iter().any(|o| o == it.name);
        for peer in self.subject.peers().filter(wanted) {
            eprintln!("preparing {}", peer.name);
            match peer.prepare() {
                Ok(ready) => comparison.peers.push(ready),
                Err(reason) => {
                    eprintln!("skipped {}: {reason}", peer.name);
                    comparison.missing.push((peer.name, reason.to_string()));
                }
            }
        }
        let begun = Instant::now();
        for round in 1..=self.rounds {
            for case in &self.cases {
                let (elapsed, name) = (begun.elapsed().as_secs(), case.kind.name());
                eprint!("{elapsed:>5} s, round {round} of {}: {name} {}", self.rounds, case.scale);
                comparison.do_case(*case, &self.limits)?;
                eprintln!();
            }
        }
        Ok(comparison)
    }
}

impl Comparison {
    fn do_case(&mut self, case: Case, limits: &Limits) -> Result<(), Failure> {
        for ready in &self.peers {
            let key = (case, ready.peer.name);
            if self.cells.get(&key).is_some_and(Cell::is_settled) {
                continue;
            }
            let answer = match ready
                .unable(case)
                .or_else(|| self.out_of_reach(case, ready.peer.name, limits))
            {
                Some(reason) => Answer::Skipped(reason),
                // What one peer fails of is not to cost the figures of all others.
                None => call(ready, case, limits)
                    .unwrap_or_else(|failure| Answer::Skipped(failure.to_string())),
            };
            match answer {
                Answer::Measured(measured) => {
                    eprint!(", {} {:.3}", ready.peer.name, measured.value);
                    let cell = self.cells.entry(key).or_insert(Cell::Measured(Vec::new()));
                    if let Cell::Measured(rounds) = cell {
                        rounds.push(measured);
                    }
                }
                Answer::Skipped(reason) => {
                    eprint!(", {} skipped: {reason}", ready.peer.name);
                    self.cells.entry(key).or_insert(Cell::Without(reason));
                }
            }
        }
        Ok(())
    }

    /// Reason not to try a case: the peer exceeded the limits at a smaller scale.
    fn out_of_reach(&self, case: Case, peer: &'static str, limits: &Limits) -> Option<String> {
        let smaller = self.cells.iter().filter(|((other, name), _)| {
            *name == peer && other.kind == case.kind && other.scale < case.scale
        });
        let reached = smaller.filter_map(|((other, _), cell)| match cell {
            Cell::Measured(rounds) => {
                let first = rounds.first()?;
                first.is_short_of(*other).then(|| (first.scale, first.limit(limits)))
            }
            // It took all ports already, to give some of them back.
            Cell::Without(reason) if case.kind == Kind::Ports => Some((0, reason.clone())),
            Cell::Without(_) => None,
        });
        let (scale, limit) = reached.max()?;
        Some(if scale > 0 { format!("it reached {} {limit}", grouped(scale)) } else { limit })
    }
}

impl Cell {
    /// True if another round would say nothing more, or take too long for what it says.
    fn is_settled(&self) -> bool {
        match self {
            Self::Without(_) => true,
            Self::Measured(rounds) => rounds.iter().any(|round| round.spent.wall > ONCE_ABOVE),
        }
    }
}

impl Measured {
    /// True if the limits ended the filling: a twentieth less is what a moment's end makes.
    pub(crate) fn is_short_of(&self, case: Case) -> bool {
        self.scale * 20 < u64::from(case.scale) * 19
    }

    /// Which limit ended the filling.
    fn limit(&self, limits: &Limits) -> String {
        if self.spent.cpu >= limits.fill {
            format!("in {} s of CPU time", limits.fill.as_secs_f64())
        } else {
            format!("in {} GiB of memory, or all it can have", limits.memory >> 30)
        }
    }
}

/// Calls a peer's program, and ends it if it takes far longer than its limits.
fn call(ready: &Ready, case: Case, limits: &Limits) -> Result<Answer, Failure> {
    let (begun, cpu) = (Instant::now(), children_cpu_time()?);
    let patience = limits.fill * 6 + limits.measure * 10 + PATIENCE;
    let mut command = ready.command(case, limits);
    let piped = std::process::Stdio::piped;
    let mut child = command.stdout(piped()).stderr(piped()).spawn()?;
    while child.try_wait()?.is_none() {
        if begun.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(Answer::Skipped(format!("it did not end within {} s", patience.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Ok(Answer::Skipped(format!("failed: {}", last_line(&output.stderr))));
    }
    let mut answer = Answer::read(case.kind, &String::from_utf8(output.stdout)?)?;
    if let Answer::Measured(measured) = &mut answer {
        let cpu = children_cpu_time()?.saturating_sub(cpu);
        measured.spent = Spent { wall: begun.elapsed(), cpu };
    }
    Ok(answer)
}

/// The peers that `datagrams` compares, by their names on the command line.
const ECHOING: [&str; 4] = ["whimbrel", "smoltcp", "lwip", "gvisor"];
/// Memory limit of a peer, bytes.
const MEMORY: u64 = 12 << 30;
/// Longer cases are not repeated.
const ONCE_ABOVE: Duration = Duration::from_secs(20);
/// Time that a peer may take beyond its limits: exhausted ports are slow to find.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
