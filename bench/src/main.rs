//! Whimbrel and its peers at a fixed piece of work, measured. Figures and their history:
//! `docs/BENCHMARKS.md`.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml -- churn` compares; `alone` does short
//! connections on Whimbrel alone, so that under `valgrind --tool=callgrind` instructions can be
//! counted, which other load on the machine does not change.

mod bulk;
mod case;
mod churn;
mod compare;
mod counts;
mod datagrams;
mod hostile;
mod idle;
mod meter;
mod misses;
mod part_run;
mod peers;
mod pieces;
mod plot;
mod report;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use case::Case;
use churn::{Churn, Options, Work};
use compare::{ComparisonPlan, Subject};

/// An error of a benchmark, with a remedy.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: whimbrel-bench churn [--quick] [--only PEER]... [--rounds N] [--json] [--write]
       whimbrel-bench datagrams [--quick] [--only PEER]... [--rounds N] [--json] [--write]
       whimbrel-bench face [--quick] [--rounds N] [--only PEER]... [--write]
       whimbrel-bench bulk [--quick] [--rounds N] [--write]
       whimbrel-bench peak
       whimbrel-bench alone [--connections N] [--at-a-time N] [--waiting N] [--no-options]
       whimbrel-bench counts [--bless]
       whimbrel-bench part NAME [bare]
       whimbrel-bench stream NAME
       whimbrel-bench peer PEER CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB

churn: connect, 64 bytes there, 256 back, close; 64 connections at a time, both hosts in one
thread, checksums computed and verified, the server closes first; with 0 to 10,000,000 in
TIME-WAIT; then 4 at a time, on whimbrel and smoltcp. Then the choice of a port, memory of records, packets to idle connections. On whimbrel,
whimbrel-plain (without timestamps and SACK), smoltcp, lwip, gvisor and linux, as far as each can
be had: lwip wants apt-get, dpkg-source and cc, gvisor wants go, linux wants root.

Without --quick it takes 40 to 60 minutes by itself; it says on stderr how far it is. What one peer
fails of costs none of the others' figures.

  --quick          a minute in all: up to 100,000 records, one round
  --only PEER      this peer alone, or several
  --rounds N       how often each case is done that takes less than 20 s, 1 or more (3)
  --json           each measurement instead of a table
  --write          the table and its drawing into docs, too

datagrams: 64 bytes there and back by UDP, one at a time and 64, each from a socket of its own, both hosts
in one thread, checksums computed and verified, every byte compared at both ends; CPU time of both. On
whimbrel, smoltcp, lwip and gvisor. The same options; a minute, without --quick.

face: echoes, a stream and short connections by tasks, on tokio's sockets over the kernel's loopback and on
Whimbrel's, and by ports on its shards directly; face --help says more.

bulk: text in one direction over 1 and 100 connections, both hosts in one thread; MTU 1500, 9000, 65535 and
super-segments without checksums; buffers of 64 KiB, 1 MiB and those that size themselves; applications
that copy or do not; with and without timestamps. On whimbrel, smoltcp, and a loop that makes the same
copies and sums; on lwip and gvisor, as far as they can be had, by reference alone. Every byte of the first 4 MiB of each is compared. 6 minutes.

  --quick          2 rounds of 30 ms: a minute
  --rounds N       how often each case is done, 1 or more (7 of 200 ms)
  --write          the table into docs, too

peak: memory of the process before and 10 s after a GiB of text waited to be read, which may be 1.2 times
as much.

alone: the first of churn's on Whimbrel alone, once; for callgrind.

  --connections N  how many are measured, 1 ..= 2^32-1 (200000)
  --at-a-time N    how many of them are under way at once, 1 or more (64)
  --waiting N      how many are in TIME-WAIT at the server, 0 ..= 10000000 (0: next to none, 2 MSL
                   are 2 ms)
  --no-options     without timestamps and SACK

counts: instructions of each part of a connection, counted by valgrind, against those in counts.toml;
and of each packet of hostile streams, of pieces of text in any order, of each segment of bulk, with
its page faults, and of a connection with control socket and metrics, against their bounds; and of a
quantum of paced flows against one that is not paced.

  --bless          writes them there

part, stream: what is counted of one part, pieces, or stream; how counts calls it.

peer: one case on one peer of this program; how churn calls it.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_face = words.first().is_some_and(|command| command == "face");
    if !is_face && words.iter().any(|word| word == "--help" || word == "-h") {
        // A reader that closes early is no failure.
        let _unread = writeln!(io::stdout(), "{USAGE}");
        return ExitCode::SUCCESS;
    }
    let done = match words.split_first() {
        Some((command, rest)) if command == "churn" => compare(Subject::Churn, rest),
        Some((command, rest)) if command == "datagrams" => compare(Subject::Datagrams, rest),
        Some((command, rest)) if command == "face" => face(rest),
        Some((command, rest)) if command == "bulk" => bulk(rest),
        Some((command, [])) if command == "peak" => bulk::peak(),
        Some((command, rest)) if command == "bulk-peer" => bulk::peer(rest),
        Some((command, rest)) if command == "alone" => read_work(rest).and_then(alone),
        Some((command, rest)) if command == "peer" => peer(rest),
        Some((command, rest)) if command == "counts" => counts(rest),
        Some((command, rest)) if command == "part" => part(rest),
        Some((command, rest)) if command == "stream" => stream(rest),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn compare(subject: Subject, words: &[String]) -> Result<(), Failure> {
    let (mut quick, mut json, mut write) = (false, false, false);
    let (mut rounds, mut only) = (None, Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{word}: a value is missing"));
        match word.as_str() {
            "--quick" => quick = true,
            "--json" => json = true,
            "--write" => write = true,
            "--only" => only.push(value()?.clone()),
            "--rounds" => rounds = Some(value()?.parse()?).filter(|rounds| *rounds > 0),
            _ => return Err(format!("{word}: not an option\n{USAGE}").into()),
        }
    }
    let plan = match subject {
        Subject::Churn => ComparisonPlan::new(quick, rounds),
        Subject::Datagrams => ComparisonPlan::datagrams(quick, rounds),
    };
    let comparison = plan.run(&only)?;
    let command = [&[subject.name().to_owned()], words].concat().join(" ");
    let table = comparison.markdown(&plan, &command)?;
    if json {
        print!("{}", comparison.json(&command)?);
    } else {
        print!("{table}");
    }
    if write {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let page = docs.join("BENCHMARKS.md");
        let text = report::replace(&std::fs::read_to_string(&page)?, subject.name(), &table)?;
        std::fs::write(&page, text)?;
        if subject == Subject::Churn {
            std::fs::write(docs.join("measured/churn.svg"), plot::svg(&plan, &comparison)?)?;
        }
    }
    Ok(())
}

fn bulk(words: &[String]) -> Result<(), Failure> {
    let (mut quick, mut write, mut rounds) = (false, false, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            "--rounds" => {
                let given = rest.next().ok_or("--rounds: give a number")?;
                rounds = Some(given.parse()?).filter(|rounds| *rounds > 0);
            }
            _ => return Err(format!("{word}: not an option\n{USAGE}").into()),
        }
    }
    let command = [&["bulk".to_owned()], words].concat().join(" ");
    let table = bulk::compare(quick, rounds)?.markdown(&command)?;
    print!("{table}");
    if write {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/BENCHMARKS.md");
        let text = report::replace(&std::fs::read_to_string(&page)?, "bulk", &table)?;
        std::fs::write(&page, text)?;
    }
    Ok(())
}

fn peer(words: &[String]) -> Result<(), Failure> {
    let (name, rest) = words.split_first().ok_or(USAGE)?;
    let (case, limits) = Case::read(rest)?;
    print!("{}", peers::answer(name, case, &limits)?);
    Ok(())
}

fn counts(words: &[String]) -> Result<(), Failure> {
    match words {
        [] => counts::compare(),
        [bless] if bless == "--bless" => counts::bless(),
        _ => Err(USAGE.into()),
    }
}

fn stream(words: &[String]) -> Result<(), Failure> {
    match words {
        [name] => hostile::run(name),
        _ => Err(USAGE.into()),
    }
}

fn part(words: &[String]) -> Result<(), Failure> {
    let [name, options @ ..] = words else { return Err(USAGE.into()) };
    counts::run(name, options.first().map(String::as_str))
}

/// A program of its own, so that nothing that is counted here changes with it.
fn face(words: &[String]) -> Result<(), Failure> {
    let done = Command::new(counts::build("face")?).args(words).status()?;
    if done.success() { Ok(()) } else { Err("face: no figures".into()) }
}

fn alone(work: Work) -> Result<(), Failure> {
    let mut churn = Churn::new(&work)?;
    // Tables and pools reach their size; with `waiting`, the server's records too.
    churn.run(work.waiting.max(WARM_UP))?;
    let begun = Instant::now();
    churn.run(work.connections)?;
    let micros = begun.elapsed().as_secs_f64() * 1e6;
    let (each, waiting) = (micros / f64::from(work.connections), churn.waiting());
    println!("{} connections, {each:.3} us each; {waiting} in TIME-WAIT", work.connections);
    Ok(())
}

fn read_work(words: &[String]) -> Result<Work, Failure> {
    let mut work = Work {
        connections: 200_000,
        at_a_time: case::AT_A_TIME,
        waiting: 0,
        options: Options::Default,
        ports: case::PORTS,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut number = || -> Result<u32, Failure> {
            let given = rest.next().ok_or_else(|| format!("{word}: give a number"))?;
            given.parse().map_err(|why| format!("{word} {given}: {why}").into())
        };
        match word.as_str() {
            "--connections" => work.connections = number()?,
            "--at-a-time" => work.at_a_time = number()?,
            "--waiting" => work.waiting = number()?,
            "--no-options" => work.options = Options::Off,
            _ => return Err(format!("{word}: not an option\n{USAGE}").into()),
        }
    }
    if work.connections == 0 || work.at_a_time == 0 || work.waiting > churn::MOST_WAITING {
        return Err(USAGE.into());
    }
    Ok(work)
}

const WARM_UP: u32 = 1_000;
