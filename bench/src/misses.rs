//! Cache misses of short connections and of datagrams, simulated: misses of instructions and of data of a first-level
//! cache that is the same on every machine, compared with their recorded numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Failure;
use crate::case::PORTS;
use crate::churn::{Churn, Options, Work};
use crate::counts::{Misses, collect_misses, measured, side_by_side};
use crate::datagrams::CountedDatagrams;

/// Work whose cache misses count.
struct Row {
    name: &'static str,
    /// Connections, or round trips: both figures are of one.
    times: u64,
}

impl Row {
    /// Short connections, then datagrams.
    fn all() -> Vec<Self> {
        let churns = CHURNS.iter().map(|(name, ..)| Self { name, times: u64::from(CONNECTIONS) });
        let datagrams = CountedDatagrams::ALL.iter();
        let datagrams = datagrams.map(|it| Self { name: it.name, times: CountedDatagrams::TRIPS });
        churns.chain(datagrams).collect()
    }

    /// Misses of instructions and of data, to the nearest.
    fn count(&self) -> Result<[u64; 2], Failure> {
        let Misses { instructions, data } = collect_misses(&["part", self.name])?;
        Ok([instructions, data].map(|misses| (misses + self.times / 2) / self.times))
    }
}

/// Compares the misses of each row with the recorded ones; returns the number that exceed their limit.
pub(crate) fn judge(known: &BTreeMap<&str, u64>) -> Result<u32, Failure> {
    let mut dearer = 0;
    println!("{:<26}{:>14}{:>14}{:>14}", "misses of L1", "each", "were", "at most");
    for (name, now) in count_rows()? {
        let were = known.get(name.as_str()).ok_or_else(|| format!("{name}: not recorded"))?;
        let most = match name.as_str() {
            "churn-64 D1" => MOST_DATA_OF_64,
            _ => were + (were * PERCENT).div_ceil(100).max(LEAST),
        };
        println!("{name:<26}{now:>14}{were:>14}{most:>14}");
        dearer += u32::from(now > most);
    }
    Ok(dearer)
}

/// Adds the rows to what is recorded.
pub(crate) fn record(text: &mut String) -> Result<(), Failure> {
    for (name, count) in count_rows()? {
        writeln!(text, "{name} = {count}")?;
    }
    Ok(())
}

/// Each figure by its name.
fn count_rows() -> Result<Vec<(String, u64)>, Failure> {
    let rows = Row::all();
    let counts = side_by_side(&rows, Row::count)?;
    let named = rows.iter().zip(counts).flat_map(|(row, counts)| {
        ["I1", "D1"].into_iter().zip(counts).map(|(cache, count)| {
            let name = format!("{} {cache}", row.name);
            (name, count)
        })
    });
    Ok(named.collect())
}

/// Does the connections of the row with this name; `None` if there is none.
pub(crate) fn run(name: &str) -> Option<Result<(), Failure>> {
    let (_, at_a_time, options) = CHURNS.iter().find(|(known, ..)| *known == name)?;
    Some(churn(*at_a_time, *options))
}

fn churn(at_a_time: u32, options: Options) -> Result<(), Failure> {
    let work = Work { connections: CONNECTIONS, at_a_time, waiting: 0, options, ports: PORTS };
    let mut churn = Churn::new(&work)?;
    churn.run(WARM_UP)?;
    let mut done = Ok(());
    measured(&mut || done = churn.run(CONNECTIONS));
    done
}

/// Connections at a time, and their options.
const CHURNS: [(&str, u32, Options); 4] = [
    ("churn-4", 4, Options::Default),
    ("churn-64", 64, Options::Default),
    ("churn-4-bare", 4, Options::Off),
    ("churn-64-bare", 64, Options::Off),
];
/// Until tables and pools have their size.
const WARM_UP: u32 = 1_000;
const CONNECTIONS: u32 = 4_000;
/// Per cent by which misses may grow: they depend on where code and data happen to stand. One commit, built in two
/// folders, misses 203 and 221 instructions (`churn-4-bare I1`).
const PERCENT: u64 = 12;
/// Misses of data that a connection may have where 64 at a time, with their packets, exceed the cache.
const MOST_DATA_OF_64: u64 = 220;
/// By so many they may grow at least.
const LEAST: u64 = 16;
