//! Cost of each part of a short connection, in instructions, compared with its recorded cost; of each
//! packet of a hostile stream, and of each piece of text ([`Case`]), compared with its limit; and of
//! each acknowledgment and time-out with much in flight (`in-flight`), compared with little; of a short
//! connection of a stack that an operator may look into (`operated`), compared with one that no operator can;
//! and of each quantum of paced flows ([`paced`]), compared with flows that are not paced.
//!
//! Callgrind runs this program once for each [`Part`] and counts while [`measured`] is on the stack.
//! Instructions do not depend on what else the machine does, nor on who built the program where, so that
//! one in a hundred more is a finding; and as many are counted at a time as there are processors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Failure;
use crate::bulk::{CASES, Counted, MOST_FAULTS, paced};
use crate::churn::Options;
use crate::datagrams::CountedDatagrams;
use crate::hostile::{PACKETS, STREAMS, Stream};
use crate::part_run::{BATCH, Part, PartRun, ROUNDS};
use crate::pieces::{BUFFERS, Case, Pieces};
use crate::{idle, misses};

/// Counts every part, and compares with the figures of [`FILE`].
pub(crate) fn compare() -> Result<(), Failure> {
    let text = std::fs::read_to_string(FILE)?;
    let known = read(&text)?;
    println!("{:<12}{:>14}{:>14}{:>10}", "part", "instructions", "were", "change");
    let (mut now, mut before, mut dearer) = (0, 0, 0);
    for ((name, part), count) in Part::ALL.iter().zip(count_parts()?) {
        let were = known.get(name).copied().ok_or_else(|| format!("{name}: not in {FILE}"))?;
        dearer += judge(name, [count, were], PART_PERCENT);
        if part.is_of_every_connection() {
            (now, before) = (now + count, before + were);
        }
    }
    dearer += judge("together", [now, before], WHOLE_PERCENT);
    dearer += judge_bare(now)?;
    dearer += misses::judge(&known)? + idle::judge()?;
    dearer += judge_datagrams()? + judge_streams()? + judge_pieces()?;
    // What follows leaves a processor idle.
    let programs = thread::spawn(|| Ok([build("in-flight")?, build("operated")?]));
    dearer += judge_bulk()? + judge_pacing()?;
    let programs: Result<_, Failure> = programs.join().expect("it does not panic");
    let [in_flight, operated] = programs?;
    dearer += judge_growths(&in_flight)? + judge_operated(&operated)?;
    if dearer > 0 { Err(format!("{dearer} became dearer than they may").into()) } else { Ok(()) }
}

/// Tells what something takes now and took before; returns 1 if that is more than so many per cent more.
fn judge(name: &str, [now, before]: [u64; 2], limit_percent: f64) -> u32 {
    let percent = (now as f64 / before as f64 - 1.0) * 100.0;
    println!("{name:<12}{now:>14}{before:>14}{percent:>+8.2} %");
    if percent > limit_percent {
        println!("{name}: at most {limit_percent} % more may be: make it cheaper, or {BLESS}");
        return 1;
    }
    if percent < -limit_percent {
        println!("{name}: so that it stays so, {BLESS}");
    }
    0
}

/// Compares a datagram there and back with its limit; returns the number that exceed it.
fn judge_datagrams() -> Result<u32, Failure> {
    let mut dearer = 0;
    println!("{:<26}{:>14}{:>14}", "datagrams", "there and back", "at most");
    let all = &CountedDatagrams::ALL;
    let counts =
        side_by_side(all, |it| Ok(collect(&["part", it.name])? / CountedDatagrams::TRIPS))?;
    for (CountedDatagrams { name, most, .. }, now) in all.iter().zip(counts) {
        println!("{name:<26}{now:>14}{most:>14}");
        dearer += u32::from(now > *most);
    }
    Ok(dearer)
}

/// Compares each packet of a hostile stream with its limit; returns the number that exceed it.
fn judge_streams() -> Result<u32, Failure> {
    let mut dearer = 0;
    println!("{:<26}{:>14}{:>14}", "stream", "a packet", "at most");
    let counts = side_by_side(STREAMS, |stream| Ok(collect(&["stream", stream.name])? / PACKETS))?;
    for (Stream { name, most, .. }, now) in STREAMS.iter().zip(counts) {
        println!("{name:<26}{now:>14}{most:>14}");
        dearer += u32::from(now > *most);
    }
    Ok(dearer)
}

/// Measures a piece of text in each order, by the size of the receive buffer; returns the number above
/// the limit.
fn judge_pieces() -> Result<u32, Failure> {
    let all: Vec<Case> =
        Pieces::ALL.iter().flat_map(|pieces| BUFFERS.map(|buffer| pieces.within(buffer))).collect();
    // Cases of which another says all are not counted again.
    let mut different: Vec<&Case> = Vec::new();
    let places: Vec<usize> = all
        .iter()
        .map(|case| {
            let known = different.iter().position(|known| known.is_alike(case));
            known.unwrap_or_else(|| {
                different.push(case);
                different.len() - 1
            })
        })
        .collect();
    let counts = side_by_side(&different, |case| a_piece(case))?;
    let mut dearer = 0;
    let [small, usual, large] = BUFFERS.map(|bytes| format!("{}K", bytes >> 10));
    println!("{:<20}{small:>8}{usual:>8}{large:>8}{:>10}", "pieces into", "at most");
    for (pieces, places) in Pieces::ALL.iter().zip(places.chunks(BUFFERS.len())) {
        let mut line = format!("{:<20}", pieces.to_string());
        for count in places.iter().filter_map(|place| counts.get(*place)) {
            write!(line, "{count:>8}")?;
            dearer += u32::from(*count > pieces.most);
        }
        println!("{line}{:>10}", pieces.most);
    }
    Ok(dearer)
}

/// Instructions for each piece.
fn a_piece(case: &Case) -> Result<u64, Failure> {
    Ok(collect(&["part", &case.to_string()])? / case.packets())
}

/// Measures a segment of a transfer, and its page faults, of which the steady state may have none;
/// returns the number above the limit.
fn judge_bulk() -> Result<u32, Failure> {
    let mut dearer = 0;
    println!("{:<26}{:>14}{:>14}{:>14}", "bulk", "a segment", "at most", "page faults");
    for transfer in &CASES {
        let Counted { name, most, .. } = transfer;
        let (instructions, said) = collect_of(&std::env::current_exe()?, &["part", name])?;
        let now = instructions / said.trim().parse::<u64>()?;
        let faults = transfer.faults()?;
        println!("{name:<26}{now:>14}{most:>14}{faults:>14.3}");
        dearer += u32::from(now > *most) + u32::from(faults > MOST_FAULTS);
    }
    Ok(dearer)
}

/// Compares a quantum of a paced flow with one that is not paced; returns 1 if pacing adds more than it may.
fn judge_pacing() -> Result<u32, Failure> {
    let counts = side_by_side(&paced::NAMES, |name| {
        let (instructions, said) = collect_of(&std::env::current_exe()?, &["part", name])?;
        Ok(instructions / said.trim().parse::<u64>()?)
    })?;
    let [plain, paced] = *counts.as_slice() else { return Err("a case of pacing is lost".into()) };
    let most = plain + paced::MOST_ADDED;
    println!("{:<26}{:>14}{:>14}", "pacing", "a quantum", "at most");
    let [plain_name, paced_name] = paced::NAMES;
    println!("{plain_name:<26}{plain:>14}");
    println!("{paced_name:<26}{paced:>14}{most:>14}");
    Ok(u32::from(paced > most))
}

/// Measures an acknowledgment or a time-out with much in flight against one with little; returns the
/// number above the limit.
fn judge_growths(program: &Path) -> Result<u32, Failure> {
    let mut dearer = 0;
    println!("{:<26}{:>14}{:>14}", "much in flight", "each", "at most");
    for (few, many, most_percent) in GROWTHS {
        let of = |name| Ok(collect_of(program, &[name, &EVENTS.to_string()])?.0 / EVENTS);
        let [before, after]: [Result<u64, Failure>; 2] = [of(few), of(many)];
        let (before, after) = (before?, after?);
        let most = before * most_percent / 100;
        println!("{few:<26}{before:>14}");
        println!("{many:<26}{after:>14}{most:>14}");
        dearer += u32::from(after > most);
    }
    Ok(dearer)
}

/// Measures a short connection while the server's stack can be looked into against one while it cannot, and a slice of a
/// listing; returns the number above the limit.
fn judge_operated(program: &Path) -> Result<u32, Failure> {
    let each = side_by_side(&OPERATED, |(name, _)| {
        let (instructions, said) = collect_of(program, &[name])?;
        Ok(instructions as f64 / said.trim().parse::<f64>()?)
    })?;
    let [off, ..] = each.as_slice() else { return Err("nothing was counted".into()) };
    let mut dearer = 0;
    println!("{:<12}{:>14}{:>10}{:>14}", "operated", "a connection", "more", "at most");
    for ((name, most), now) in OPERATED.iter().zip(&each) {
        // To the nearest, once they are subtracted: what was asked before leaves a fraction.
        let more = (now - off).round() as i64;
        println!("{name:<12}{now:>14.1}{more:>10}{most:>14}");
        dearer += u32::from(more > *most);
    }
    println!("{:<26}{:>14}{:>14}", "listing", "a slice", "at most");
    let each = side_by_side(&SLICES, |(name, _)| {
        let (instructions, said) = collect_of(program, &[name])?;
        Ok(instructions / said.trim().parse::<u64>()?)
    })?;
    for ((name, most), now) in SLICES.iter().zip(each) {
        println!("{name:<26}{now:>14}{most:>14}");
        dearer += u32::from(now > *most);
    }
    Ok(dearer)
}

/// Counts every part, and writes the figures into [`FILE`].
pub(crate) fn bless() -> Result<(), Failure> {
    let mut text = format!("# {HEAD} To {BLESS}\n");
    for ((name, _), count) in Part::ALL.iter().zip(count_parts()?) {
        writeln!(text, "{name} = {count}")?;
    }
    misses::record(&mut text)?;
    std::fs::write(FILE, &text)?;
    print!("{text}");
    Ok(())
}

/// Does the rounds in which `part` is measured: what Callgrind looks at.
pub(crate) fn run(name: &str, options: Option<&str>) -> Result<(), Failure> {
    if let Some(case) = Case::named(name) {
        return case.run();
    }
    if let Some(transfer) = Counted::named(name) {
        return transfer.run();
    }
    if let Some(datagrams) = CountedDatagrams::named(name) {
        return datagrams.run();
    }
    if let Some(done) = paced::run(name) {
        return done;
    }
    if let Some(done) = misses::run(name).or_else(|| idle::run(name)) {
        return done;
    }
    let known = Part::ALL.into_iter().find(|(known, _)| *known == name);
    let (_, part) = known.ok_or_else(|| format!("{name}: not a part"))?;
    let options = match options {
        None => Options::Default,
        Some(BARE) => Options::Off,
        Some(other) => return Err(format!("{other}: no options").into()),
    };
    PartRun::new(part, options)?.run()
}

/// Instructions per connection, of each part.
fn count_parts() -> Result<Vec<u64>, Failure> {
    side_by_side(&Part::ALL, |(name, part)| part.instructions(&["part", name]))
}

/// Compares a short connection without timestamps and SACK with one that has them; returns 1 if it takes as much.
fn judge_bare(with: u64) -> Result<u32, Failure> {
    let parts = Part::ALL.iter().filter(|(_, part)| part.is_of_every_connection());
    let parts: Vec<_> = parts.collect();
    let counts = side_by_side(&parts, |(name, part)| part.instructions(&["part", name, BARE]))?;
    let bare: u64 = counts.iter().sum();
    println!("{:<12}{bare:>14}{with:>14}", "bare");
    let is_dearer = bare >= with;
    if is_dearer {
        println!("bare: without timestamps and SACK it takes less than with them");
    }
    Ok(is_dearer.into())
}

impl Part {
    /// Instructions of it per connection, where it is measured by a run with these words.
    fn instructions(self, words: &[&str]) -> Result<u64, Failure> {
        Ok(collect(words)? / (ROUNDS * self.batches_a_round() * BATCH))
    }
}

/// Results of `count` for each of `items`, as many in parallel as there are processors.
pub(crate) fn side_by_side<T: Sync, C: Send>(
    items: &[T],
    count: impl Fn(&T) -> Result<C, Failure> + Sync,
) -> Result<Vec<C>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let places = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let taken = places.map_while(|place| Some((place, items.get(place)?)));
        taken.map(|(place, item)| Ok((place, count(item)?))).collect::<Result<Vec<_>, Failure>>()
    };
    let workers = thread::available_parallelism()?.get();
    let done = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ended = started.into_iter().map(|worker| worker.join().expect("it does not panic"));
        ended.collect::<Result<Vec<_>, Failure>>()
    })?;
    let by_place: BTreeMap<usize, C> = done.into_iter().flatten().collect();
    Ok(by_place.into_values().collect())
}

/// Builds another program of this package. Returns where it is.
pub(crate) fn build(name: &str) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let built = Command::new(cargo)
        .args(["build", "--release", "--locked", "--quiet", "--bin", name])
        .args(["--manifest-path", manifest])
        .status()
        .map_err(|why| format!("cargo: {why}"))?;
    let program = std::env::current_exe()?.with_file_name(name);
    if built.success() { Ok(program) } else { Err(format!("{name} was not built").into()) }
}

/// Instructions of this program, called with `words`, while [`measured`] is on the stack.
fn collect(words: &[&str]) -> Result<u64, Failure> {
    Ok(collect_of(&std::env::current_exe()?, words)?.0)
}

/// Instructions of another program, whose function has the same name, and its output.
fn collect_of(program: &Path, words: &[&str]) -> Result<(u64, String), Failure> {
    let (events, output) = simulate(program, words, &[])?;
    Ok((events.first().copied().unwrap_or(0), output))
}

/// Misses of a first-level cache, simulated.
pub(crate) struct Misses {
    /// When instructions were fetched.
    pub(crate) instructions: u64,
    /// When data was read or written.
    pub(crate) data: u64,
}

/// Cache misses of this program, called with `words`, while [`measured`] is on the stack.
pub(crate) fn collect_misses(words: &[&str]) -> Result<Misses, Failure> {
    let (events, _) = simulate(&std::env::current_exe()?, words, &CACHES)?;
    // Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
    match events.as_slice() {
        [_, _, _, instructions, read, written, ..] => {
            Ok(Misses { instructions: *instructions, data: read + written })
        }
        _ => Err(format!("{words:?}: valgrind simulated no cache").into()),
    }
}

/// Events of a program that Callgrind counted with these options, instructions first, and its output.
fn simulate(
    program: &Path,
    words: &[&str],
    options: &[&str],
) -> Result<(Vec<u64>, String), Failure> {
    let valgrind = Command::new("valgrind")
        // Otherwise a thread that polls keeps the one that it waits for from running, for minutes.
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--fair-sched=try"])
        .arg("--toggle-collect=whimbrel_bench::counts::measured*")
        .arg("--toggle-collect=in_flight::measured*")
        .arg("--toggle-collect=operated::measured*")
        .args(options)
        .arg(program)
        .args(words)
        .output()
        .map_err(|why| format!("valgrind: {why}; install the package of that name"))?;
    let said = String::from_utf8_lossy(&valgrind.stderr);
    let collected = said.lines().find_map(|line| Some(line.split_once("Collected : ")?.1));
    let events = collected.unwrap_or_default().split_whitespace().map(str::parse);
    let events = events.collect::<Result<Vec<u64>, _>>()?;
    if valgrind.status.success() && events.first().is_some_and(|count| *count > 0) {
        return Ok((events, String::from_utf8(valgrind.stdout)?));
    }
    Err(format!("{words:?}: valgrind counted nothing:\n{said}").into())
}

/// While this is on the stack, instructions count.
#[inline(never)]
pub(crate) fn measured(work: &mut dyn FnMut()) {
    work();
    // Or the call above would be a jump, which ends the function that is looked for.
    std::hint::black_box(());
}

fn read(text: &str) -> Result<BTreeMap<&str, u64>, Failure> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line.split_once(" = ").ok_or_else(|| format!("{FILE}: {line}"))?;
            Ok((name, count.parse()?))
        })
        .collect()
}

/// A first-level cache of 32 KiB and 8 ways for each of both, whatever this machine's is.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
/// The first comment of [`FILE`], before the command that writes it.
const HEAD: &str = "Instructions per connection, by part, and misses of L1.";
/// Names a run without timestamps and SACK.
const BARE: &str = "bare";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.toml");
const BLESS: &str =
    "bless it by: cargo run --release --manifest-path bench/Cargo.toml -- counts --bless";
/// Allowed growth of a whole short connection, per cent.
const WHOLE_PERCENT: f64 = 1.0;
/// Allowed growth of one part, to which work may have moved from another.
const PART_PERCENT: f64 = 2.0;

/// Cases of `operated`, the first of which is without any, and the instructions that each may take more than that one.
const OPERATED: [(&str, i64); 4] =
    [("off", 0), ("control", 0), ("metrics", 150), ("pcap-ended", 0)];

/// Cases of `operated`, and the most instructions of a slice. A slice may take 100 us: this holds on a processor with 1.1
/// instructions a nanosecond, whatever uses the memory. `long::million` of the tests times slices among a million
/// connections, which takes longer while others use the memory, and bounds them at 1 ms.
const SLICES: [(&str, u64); 2] = [("slice-brief", 57_000), ("slice-full", 112_000)];

/// Cases of `in-flight`: little in flight, and much, and hundredths of what the first takes that the second
/// may take.
const GROWTHS: [(&str, &str, u64); 3] = [
    ("ack-of-100", "ack-of-100000", 120),
    ("sack-30-in-100", "sack-1000-in-100000", 200),
    ("timeout-of-100", "timeout-of-100000", 200),
];
/// Number of each event.
const EVENTS: u64 = 8;
