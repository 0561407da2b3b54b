//! Whimbrel at a fixed piece of work, measured. Figures and their history: `docs/BENCHMARKS.md`.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml -- churn` says how long a short connection
//! takes; under `valgrind --tool=callgrind` the same program counts instructions, which other load
//! on the machine does not change.

mod churn;
mod counts;
mod course;

use std::process::ExitCode;
use std::time::Instant;

use churn::{Churn, Options, Work};

/// What a benchmark can fail of, with what to do about it.
type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: whimbrel-bench churn [--connections N] [--waiting N] [--no-options]
       whimbrel-bench counts [--bless]
       whimbrel-bench part NAME

  churn            connect, 64 octets there, 256 back, close; 64 connections at a time, both hosts
                   in one thread, checksums computed and verified, the server closes first
  --connections N  how many are measured, 1 ..= 2^32-1 (200000)
  --waiting N      how many are in TIME-WAIT at the server before, 0 ..= 15000000 (0: next to none,
                   2 MSL are 2 ms)
  --no-options     without timestamps and SACK

  counts           instructions of each part of a connection, counted by valgrind, against those in
                   counts.toml: more than 5 % apart fails
  --bless          writes them there

  part             does what is counted of one part";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["counts"] => counts::compare(),
        ["counts", "--bless"] => counts::bless(),
        ["part", name] => counts::run(name),
        ["churn", ..] => read_arguments(arguments.into_iter().skip(1)).and_then(run),
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

fn run(work: Work) -> Result<(), Failure> {
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

fn read_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Work, Failure> {
    let mut work = Work { connections: 200_000, waiting: 0, options: Options::Default };
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u32, Failure> {
            let given = arguments.next().ok_or_else(|| format!("{argument}: give a number"))?;
            given.parse().map_err(|why| format!("{argument} {given}: {why}").into())
        };
        match argument.as_str() {
            "--connections" => work.connections = number()?,
            "--waiting" => work.waiting = number()?,
            "--no-options" => work.options = Options::Off,
            _ => return Err(format!("{argument}: not an option\n{USAGE}").into()),
        }
    }
    if work.connections == 0 || work.waiting > churn::MOST_WAITING {
        return Err(USAGE.into());
    }
    Ok(work)
}

const WARM_UP: u32 = 1_000;
