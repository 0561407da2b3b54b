//! Bulk: text in one direction between two hosts in one thread, on Whimbrel and its peers, and for
//! comparison a plain loop that makes the same copies and sums.
//!
//! Each measurement is a separate process, so that none inherits another's allocator; rounds go through
//! all of them in turn. Each compares every byte of its first MiB with the sent text, outside the
//! timing, and reports its page faults with its rate.

mod counted;
mod link;
mod outside;
pub(crate) mod paced;
mod peak;
mod plain;
mod rooms;
mod smoltcp;
mod table;
mod text;
mod whimbrel;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::meter::{cpu_time, minor_faults};

pub(crate) use counted::{CASES, Counted, MOST_FAULTS};
use link::Link;
use outside::Outside;
pub(crate) use peak::run as peak;
pub(crate) use table::Comparison;

/// A transfer, and its variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Case {
    flows: u32,
    link: Link,
    buffer: Buffer,
    copies: Copies,
    stamps: Stamps,
}

/// The size of send and receive buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Buffer {
    /// 64 KiB, whatever the path needs.
    Small,
    /// 1 MiB, the same.
    Large,
    /// 16 MiB, the same; not in the table.
    Huge,
    /// The stack's own choice. For smoltcp, which has none, 1 MiB.
    Auto,
}

/// Copies by applications when they write and read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Copies {
    None,
    Both,
}

/// Use of the TCP Timestamps option (RFC 7323).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stamps {
    On,
    Off,
}

/// Two hosts, and connections between them.
trait Pair {
    /// Carries until so many more bytes were read, or some more.
    fn carry(&mut self, bytes: u64, check: Check) -> Result<(), Failure>;

    /// Bytes of text that were read.
    fn carried(&self) -> u64;

    /// Frames with text.
    fn frames(&self) -> u64;
}

/// Comparison of received text with sent text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Check {
    Every,
    None,
}

/// Measurements of one process.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Measured {
    /// Gigabits of text for each second of the processor.
    rate: f64,
    /// Page faults for each frame with text.
    faults: f64,
}

/// Peers that run in this program.
const PEERS: [&str; 3] = ["whimbrel", "smoltcp", "loop"];

impl Case {
    /// All, in the order of the table.
    fn all() -> impl Iterator<Item = Self> {
        let rows = [1, 100].into_iter().flat_map(|flows| Link::ALL.map(|link| (flows, link)));
        let rows = rows.flat_map(|(flows, link)| Buffer::ALL.map(|buffer| (flows, link, buffer)));
        rows.flat_map(|(flows, link, buffer)| {
            VARIANTS.map(|(copies, stamps)| Self { flows, link, buffer, copies, stamps })
        })
    }

    /// The words that a process is called with.
    fn words(self) -> [String; 5] {
        let Self { flows, link, buffer, copies, stamps } = self;
        let copies = if copies == Copies::None { "lent" } else { "copied" };
        let stamps = if stamps == Stamps::On { "stamps" } else { "plain" };
        [&flows.to_string(), link.name(), buffer.name(), copies, stamps].map(str::to_owned)
    }

    fn read(words: &[String]) -> Result<Self, Failure> {
        let wanted = Self::all().find(|case| case.words() == words);
        wanted.ok_or_else(|| format!("{words:?}: not a case of bulk").into())
    }

    /// Bytes of text until nothing is new: twice what all buffers hold.
    fn warm_up(self) -> u64 {
        (2 * u64::from(self.flows) * self.buffer.begins_with() as u64).max(WARM_UP)
    }

    /// The case that says the same of this peer, so that it need not be measured twice.
    fn of(self, peer: &str) -> Self {
        match peer {
            // By reference it has no buffer, and nothing that is of one flow.
            "loop" if self.copies == Copies::None => {
                Self { flows: 1, buffer: Buffer::Small, stamps: Stamps::On, ..self }
            }
            "loop" => Self { stamps: Stamps::On, ..self },
            "smoltcp" if self.buffer == Buffer::Auto => Self { buffer: Buffer::Large, ..self },
            "lwip" | "gvisor" => outside::case_of(peer, self),
            _ => self,
        }
    }
}

impl Buffer {
    const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Auto];

    const fn name(self) -> &'static str {
        match self {
            Self::Small => "64K",
            Self::Large => "1M",
            Self::Huge => "16M",
            Self::Auto => "auto",
        }
    }

    /// Bytes, if they are said.
    const fn bytes(self) -> Option<usize> {
        match self {
            Self::Small => Some(64 << 10),
            Self::Large => Some(1 << 20),
            Self::Huge => Some(16 << 20),
            Self::Auto => None,
        }
    }

    /// Bytes of a new connection's: of one that sizes itself, Whimbrel's default.
    const fn begins_with(self) -> usize {
        match self.bytes() {
            Some(bytes) => bytes,
            None => 256 << 10,
        }
    }
}

/// The columns of a row.
const VARIANTS: [(Copies, Stamps); 4] = [
    (Copies::None, Stamps::On),
    (Copies::None, Stamps::Off),
    (Copies::Both, Stamps::On),
    (Copies::Both, Stamps::Off),
];

/// Every case on every peer, round by round.
pub(crate) fn compare(quick: bool, rounds: Option<u32>) -> Result<Comparison, Failure> {
    let rounds = rounds.unwrap_or(if quick { 2 } else { 7 });
    let measure = Duration::from_millis(if quick { 30 } else { 200 });
    let mut rates: BTreeMap<(Case, &'static str), Vec<Measured>> = BTreeMap::new();
    let outside = Outside::all();
    let begun = Instant::now();
    // What is compared is measured one after the other.
    let mut cases: Vec<_> = Case::all().collect();
    cases.sort_by_key(|it| (it.link, it.copies, it.stamps, it.buffer, it.flows));
    for round in 1..=rounds {
        eprintln!("{:>5} s, round {round} of {rounds}", begun.elapsed().as_secs());
        for case in &cases {
            for peer in PEERS {
                let cell = rates.entry((case.of(peer), peer)).or_default();
                if cell.len() < round as usize {
                    cell.push(call(peer, case.of(peer), measure)?);
                }
            }
            for peer in &outside {
                let same = case.of(peer.name);
                let cell = rates.entry((same, peer.name)).or_default();
                if cell.len() < round as usize {
                    cell.push(answer(peer.command(same, measure), peer.name, same)?);
                }
            }
        }
    }
    Ok(Comparison { rounds, measure, outside, rates })
}

/// Calls this program for one measurement.
fn call(peer: &str, case: Case, measure: Duration) -> Result<Measured, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bulk-peer", peer]).args(case.words()).arg(measure.as_millis().to_string());
    answer(command, peer, case)
}

/// Output of a measuring program.
fn answer(mut command: Command, peer: &str, case: Case) -> Result<Measured, Failure> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{peer}, {:?}: {said}", case.words()).into());
    }
    let said = String::from_utf8(output.stdout)?;
    let (rate, faults) = said.trim().split_once(' ').ok_or_else(|| format!("{said}: no answer"))?;
    Ok(Measured { rate: rate.parse()?, faults: faults.parse()? })
}

/// Page faults for each frame with text, of Whimbrel in a process of its own.
pub(crate) fn faults(case: Case) -> Result<f64, Failure> {
    Ok(call("whimbrel", case, Duration::from_millis(100))?.faults)
}

/// One measurement, in this process.
pub(crate) fn peer(words: &[String]) -> Result<(), Failure> {
    let [peer, rest @ .., millis] = words else {
        return Err("bulk-peer PEER FLOWS LINK BUFFER lent|copied stamps|plain MILLISECONDS".into());
    };
    let (case, measure) = (Case::read(rest)?, Duration::from_millis(millis.parse()?));
    let mut pair: Box<dyn Pair> = match peer.as_str() {
        "whimbrel" => Box::new(whimbrel::Whimbrel::new(case)?),
        "smoltcp" => Box::new(smoltcp::Smoltcp::new(case)?),
        "loop" => Box::new(plain::Plain::new(case)),
        _ => return Err(format!("{peer}: no peer of bulk").into()),
    };
    pair.carry(CHECKED, Check::Every)?;
    // Windows open, and memory that stays is there.
    pair.carry(case.warm_up(), Check::None)?;
    let (carried, frames) = (pair.carried(), pair.frames());
    let (begun, faults) = (cpu_time(), minor_faults()?);
    let spent = loop {
        pair.carry(AT_ONCE, Check::None)?;
        let spent = cpu_time() - begun;
        if spent >= measure {
            break spent;
        }
    };
    let faults = minor_faults()? - faults;
    let bits = (pair.carried() - carried) as f64 * 8.0;
    let rate = bits / spent.as_secs_f64() / 1e9;
    println!("{rate} {}", faults as f64 / (pair.frames() - frames) as f64);
    Ok(())
}

/// Bytes of text that are compared, before anything is measured.
const CHECKED: u64 = 4 << 20;
/// Bytes of text that follow at least, before anything is measured.
const WARM_UP: u64 = 16 << 20;
/// Bytes of text between two looks at the clock.
const AT_ONCE: u64 = 4 << 20;
