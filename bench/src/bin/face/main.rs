//! Tasks that speak through sockets, and what that costs: tokio's on the kernel's loopback, Whimbrel's on a
//! wire inside the process, and ports on the threads of the same shards, where no task is. It is a program
//! of its own, as `in-flight` is. Figures and their history: `docs/BENCHMARKS.md`.
//!
//! Each measurement has a process of its own, in which both ends run. Rounds are interleaved.

mod measure;
mod ports;
mod table;
mod tasks;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use measure::{Figures, Work};
use table::Table;

/// An error of a measurement, with a remedy.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: whimbrel-bench face [--quick] [--rounds N] [--only PEER]... [--write]

One message of 64 bytes there and back on each of 1, 16 and 256 connections; a stream in writes of 64 KiB;
connections of one message each, 16 at a time. On sockets of the kernel's over its loopback (kernel), on
TcpStreams of Whimbrel's whose shards have threads (thread) or are tasks of the runtime (runtime), and on
its shards driven directly by ports on threads (shard). Each in a process of its own, on tokio's runtime of
as many threads as there are processors, in turns.

  --quick      3 rounds of 0.5 s each, not 7 of 2 s: a minute and a half
  --rounds N   so many rounds
  --only PEER  this alone, or several
  --write      the table into docs/BENCHMARKS.md, too";

/// Sockets of a measurement, or driver of its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Peer {
    Kernel,
    Thread,
    Runtime,
    Shard,
}

impl Peer {
    const ALL: [(&str, Self); 4] = [
        ("kernel", Self::Kernel),
        ("thread", Self::Thread),
        ("runtime", Self::Runtime),
        ("shard", Self::Shard),
    ];

    fn measure(self, work: Work, length: Duration) -> Result<Figures, Failure> {
        match self {
            Self::Kernel => tasks::kernel(work, length),
            Self::Thread => tasks::whimbrel(work, length, whimbrel::Driver::Thread),
            Self::Runtime => tasks::whimbrel(work, length, whimbrel::Driver::Runtime),
            Self::Shard => ports::run(work, length),
        }
    }
}

/// Peers, rounds and lengths of a run, as given on the command line.
struct FacePlan {
    peers: Vec<(&'static str, Peer)>,
    rounds: usize,
    length: Duration,
    write: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        // A reader that closes early is no failure.
        let _unread = writeln!(io::stdout(), "{USAGE}");
        return ExitCode::SUCCESS;
    }
    let done = match words.as_slice() {
        [one, peer, work, millis] if one == "one" => measure_one(peer, work, millis),
        _ => FacePlan::read(&words).and_then(|plan| plan.run(&words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// One measurement, in this process.
fn measure_one(peer: &str, work: &str, millis: &str) -> Result<(), Failure> {
    let known = Peer::ALL.into_iter().find(|(name, _)| *name == peer);
    let (_, peer) = known.ok_or_else(|| format!("{peer}: not a peer"))?;
    let work = Work::named(work).ok_or_else(|| format!("{work}: not a piece of work"))?;
    println!("{}", peer.measure(work, Duration::from_millis(millis.parse()?))?);
    Ok(())
}

impl FacePlan {
    fn read(words: &[String]) -> Result<Self, Failure> {
        let mut plan =
            Self { peers: Vec::new(), rounds: 7, length: Duration::from_secs(2), write: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--quick" => (plan.rounds, plan.length) = (3, Duration::from_millis(500)),
                "--rounds" => plan.rounds = value()?.parse()?,
                "--write" => plan.write = true,
                "--only" => {
                    let name = value()?;
                    let known = Peer::ALL.into_iter().find(|(known, _)| known == name);
                    plan.peers.push(known.ok_or_else(|| format!("{name}: not a peer"))?);
                }
                _ => return Err(format!("{word}: not an option\n{USAGE}").into()),
            }
        }
        if plan.peers.is_empty() {
            plan.peers = Peer::ALL.to_vec();
        }
        if plan.rounds == 0 {
            return Err("--rounds 0: give 1 or more".into());
        }
        Ok(plan)
    }

    fn run(&self, words: &[String]) -> Result<(), Failure> {
        let mut table = Table::new(self.peers.iter().map(|(name, _)| *name).collect());
        for round in 1..=self.rounds {
            for (work_name, work) in Work::ALL {
                for (place, (peer, _)) in self.peers.iter().enumerate() {
                    let figures = self.apart(peer, work_name)?;
                    eprintln!("{round}/{}: {work_name} {peer}: {figures}", self.rounds);
                    table.add(work, place, figures);
                }
            }
        }
        let command = [&["face".to_owned()], words].concat().join(" ");
        let text = table.markdown(&command, self.rounds, self.length)?;
        print!("{text}");
        if self.write {
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/BENCHMARKS.md");
            let known = std::fs::read_to_string(&page)?;
            std::fs::write(&page, table::replace(&known, &text)?)?;
        }
        Ok(())
    }

    /// In a process of its own.
    fn apart(&self, peer: &str, work: &str) -> Result<Figures, Failure> {
        let millis = self.length.as_millis().to_string();
        let output =
            Command::new(std::env::current_exe()?).args(["one", peer, work, &millis]).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{work} {peer}: {said}").into());
        }
        Figures::read(&String::from_utf8(output.stdout)?)
    }
}
