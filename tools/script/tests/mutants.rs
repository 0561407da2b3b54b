//! Tests the runner itself: expectations of passing scripts are altered by one, and the runner must
//! find that. Each number of each packet is altered: sequence numbers, acknowledgments, lengths,
//! flags, windows, urgent pointers, options and times.
//!
//! Strict mode finds all but those listed in `mutants/strict.txt`, each with its reason; an entry
//! that is found fails the test as well. Semantic mode finds all wrong numbers except those in
//! `mutants/semantic.txt`, and at least 95 % of sequence numbers and of SACK blocks.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test that reads files")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

#[path = "../../../tests/harness/files.rs"]
mod files;

use whimbrel_script::ast::{
    Ack, Action, Direction, EventTime, OptionList, PacketBody, Script, Seq, Step, TcpOption,
    TcpPacket,
};
use whimbrel_script::dialect::Dialect;
use whimbrel_script::packet::Mode;
use whimbrel_script::parse::{Defines, parse};
use whimbrel_script::run::{Settings, run};
use whimbrel_script::setup::Setup;
use whimbrel_script::shard_host::ShardHost;
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::TcpFlags;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");

/// Kind of alteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Alteration {
    Seq,
    Ack,
    Flag,
    Window,
    Sack,
    /// Only the length: the sequence number stays.
    Length,
    Urgent,
    Scale,
    /// The number in the option at this index.
    Option(usize),
    /// The edge at this index of the SACK edges after the first.
    Edge(usize),
    /// Time, later by a second or by a quarter.
    Time,
    Errno,
}

impl Alteration {
    /// Every kind; options and edges that a packet lacks are not altered.
    fn all() -> impl Iterator<Item = Self> {
        let one = [Self::Seq, Self::Ack, Self::Flag, Self::Window, Self::Sack];
        let more = [Self::Length, Self::Urgent, Self::Scale, Self::Time, Self::Errno];
        let options = (0..MOST_OPTIONS).map(Self::Option);
        let edges = (1..MOST_EDGES).map(Self::Edge);
        one.into_iter().chain(more).chain(options).chain(edges)
    }
}

/// Number of mutants of a kind, and those that passed all the same.
#[derive(Default)]
struct Count {
    made: usize,
    passed: BTreeSet<String>,
}

impl Count {
    /// Share found, in thousandths.
    fn permille(&self) -> usize {
        (self.made - self.passed.len()) * 1_000 / self.made.max(1)
    }
}

type Counts = BTreeMap<Alteration, Count>;

#[test]
fn strict_mode_finds_every_mutant_but_those_listed() {
    let counts = hunt(Mode::Strict);
    compare(&counts, |_| true, include_str!("mutants/strict.txt"));
    for (what, count) in &counts {
        let least = match what {
            Alteration::Option(4..) | Alteration::Edge(4..) => 1,
            Alteration::Urgent | Alteration::Scale => 5,
            _ => 10,
        };
        assert!(count.made >= least, "only {} of {what:?}", count.made);
    }
}

#[test]
fn semantic_mode_finds_95_percent_of_wrong_numbers() {
    let counts = hunt(Mode::Semantic);
    // Windows, their scale and PSH are policy.
    let is_number = |what: &Alteration| {
        !matches!(what, Alteration::Window | Alteration::Scale | Alteration::Flag)
    };
    compare(&counts, is_number, include_str!("mutants/semantic.txt"));
    for what in [Alteration::Seq, Alteration::Sack] {
        let found = counts[&what].permille();
        assert!(found >= 950, "{what:?}: {found} of 1,000 found");
    }
}

/// Compares the mutants of these kinds that passed with the list.
fn compare(counts: &Counts, is_meant: impl Fn(&Alteration) -> bool, list: &str) {
    let of_kind = counts.iter().filter(|(what, _)| is_meant(what));
    let passed: BTreeSet<String> = of_kind
        .flat_map(|(what, count)| {
            count.passed.iter().map(move |place| format!("{what:?} {place}").to_lowercase())
        })
        .collect();
    let entries = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed: BTreeSet<String> = entries.map(str::to_owned).collect();
    let unlisted: Vec<_> = passed.difference(&listed).collect();
    assert!(unlisted.is_empty(), "{} pass and are not listed: {unlisted:#?}", unlisted.len());
    let stale: Vec<_> = listed.difference(&passed).collect();
    assert!(stale.is_empty(), "listed, and found or not made any more: {stale:#?}");
}

/// Makes and runs all mutants of all scripts that pass.
fn hunt(mode: Mode) -> Counts {
    let scripts = files::below(Path::new(FOLDER), "pkt");
    let hunters: Vec<_> = (0..HUNTERS)
        .map(|first| {
            let mine: Vec<_> = scripts.iter().skip(first).step_by(HUNTERS).cloned().collect();
            thread::spawn(move || {
                let mut counts = Counts::new();
                let passing = mine.iter().filter(|path| hunt_one(path, mode, &mut counts)).count();
                (counts, passing)
            })
        })
        .collect();
    let (mut all, mut passing) = (Counts::new(), 0);
    for hunter in hunters {
        let (counts, passed) = hunter.join().unwrap();
        passing += passed;
        for (what, count) in counts {
            let sum = all.entry(what).or_default();
            sum.made += count.made;
            sum.passed.extend(count.passed);
        }
    }
    assert!(passing >= 200, "only {passing} scripts pass");
    all
}

/// Makes the mutants of one script. Returns true if the script itself passes.
fn hunt_one(path: &Path, mode: Mode, counts: &mut Counts) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let name = path.strip_prefix(FOLDER).unwrap().display();
    let dialect = Dialect::of(&text).unwrap_or_default();
    let script = parse(&text, &Defines::of(dialect)).unwrap();
    let settings = Settings { mode, dialect, ..Settings::default() };
    if !passes(&script, &settings) {
        return false;
    }
    for at in 0..script.steps.len() {
        for what in Alteration::all() {
            let mut mutant = script.clone();
            let step = &mut mutant.steps[at];
            if !alter(step, what) {
                continue;
            }
            let line = step.line;
            let count = counts.entry(what).or_default();
            count.made += 1;
            if passes(&mutant, &settings) {
                count.passed.insert(format!("{name}:{line}"));
            }
        }
    }
    true
}

fn passes(script: &Script, settings: &Settings) -> bool {
    let setup = Setup::of(script, settings.dialect).unwrap();
    let mut host = ShardHost::new(&setup.network, Tunables::default()).unwrap();
    run(script, settings, &mut host).is_passed()
}

/// Alters what a step expects. Returns true if it expects anything of the kind.
fn alter(step: &mut Step, what: Alteration) -> bool {
    match &mut step.action {
        Action::Call(call) if what == Alteration::Errno => {
            let Some(errno) = &mut call.expected.errno else { return false };
            *errno = if errno == "EPIPE" { "ECONNRESET" } else { "EPIPE" }.to_owned();
            true
        }
        Action::Packet(packet) if packet.direction == Direction::Out => match &mut packet.body {
            _ if what == Alteration::Time => delay(&mut step.when),
            PacketBody::Tcp(body) => alter_segment(body, what),
            PacketBody::Icmp(_) => false,
        },
        _ => false,
    }
}

fn delay(when: &mut EventTime) -> bool {
    // A long time has a long tolerance: an eighth.
    let more = |time: Duration| Duration::from_secs(1).max(time / 4);
    match when {
        EventTime::Any => return false,
        EventTime::Absolute(at) | EventTime::Relative(at) => *at += more(*at),
        EventTime::AbsoluteRange(from, until) | EventTime::RelativeRange(from, until) => {
            let length = *until - *from;
            *from = *until + more(*until);
            *until = *from + length;
        }
    }
    true
}

fn alter_segment(body: &mut TcpPacket, what: Alteration) -> bool {
    match what {
        Alteration::Seq => match &mut body.seq {
            Seq::Relative(number) | Seq::Absolute(number) => increase(number),
            Seq::Any => false,
        },
        Alteration::Ack => match &mut body.ack {
            Some(Ack::Relative(number) | Ack::Absolute(number)) => increase(number),
            _ => false,
        },
        Alteration::Flag => {
            let flag = if body.len > 0 { TcpFlags::PSH } else { TcpFlags::ECE };
            body.flags = TcpFlags::from_bits(body.flags.bits() ^ flag.bits());
            true
        }
        Alteration::Window => body.win.as_mut().is_some_and(alter_field),
        Alteration::Urgent => body.urg.as_mut().is_some_and(alter_field),
        Alteration::Length => increase(&mut body.len),
        Alteration::Sack => edges(body).next().is_some_and(increase),
        Alteration::Edge(index) => edges(body).nth(index).is_some_and(increase),
        Alteration::Scale => options(body).iter_mut().any(|option| match option {
            TcpOption::WindowScale(shift) => {
                *shift ^= 1;
                true
            }
            _ => false,
        }),
        Alteration::Option(index) => options(body).get_mut(index).is_some_and(alter_option),
        Alteration::Time | Alteration::Errno => false,
    }
}

fn options(body: &mut TcpPacket) -> &mut [TcpOption] {
    match &mut body.options {
        OptionList::These(options) => options,
        OptionList::Any => &mut [],
    }
}

/// Edges of the blocks that a segment is to name.
fn edges(body: &mut TcpPacket) -> impl Iterator<Item = &mut u32> {
    let blocks = options(body).iter_mut().filter_map(|option| match option {
        TcpOption::Sack(blocks) => Some(blocks),
        _ => None,
    });
    blocks.flatten().flat_map(|(left, right)| [left, right])
}

/// Alters the number in an option, if it is compared: TSval is if the script gives the length of a
/// tick.
fn alter_option(option: &mut TcpOption) -> bool {
    match option {
        TcpOption::Mss(mss) => alter_field(mss),
        TcpOption::Timestamps { ecr, .. } | TcpOption::SomeTimestamps { ecr: Some(ecr), .. } => {
            increase(ecr)
        }
        TcpOption::FastOpen(cookie) | TcpOption::FastOpenExperimental(cookie) => {
            match cookie.first_mut() {
                Some(byte) => *byte ^= 1,
                None => cookie.push(0),
            }
            true
        }
        _ => false,
    }
}

fn alter_field(field: &mut u16) -> bool {
    *field = field.checked_add(1).unwrap_or(field.wrapping_sub(1));
    true
}

fn increase(number: &mut u32) -> bool {
    *number = number.wrapping_add(1);
    true
}

const HUNTERS: usize = 2;
/// Most options of a segment, without padding.
const MOST_OPTIONS: usize = 8;
/// Edges of four blocks.
const MOST_EDGES: usize = 8;
