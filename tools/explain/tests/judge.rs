//! Findings against captures whose cause is known. Rules are tuned on even seeds and judged on odd ones.
//!
//! `WHIMBREL_CAPTURES=60 WHIMBREL_SEEDS=odd` judges so many captures of each label, and prints the table that
//! docs/EXPLAIN.md has. `WHIMBREL_LABEL=LOSS` judges labels that begin so, and `WHIMBREL_KEEP=FOLDER` keeps the
//! captures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use whimbrel_explain::{Explainer, Report};
use whimbrel_link::reader::{Block, Reader};
use whimbrel_sim::labelled::{Damage, LABELS, Played, Scene, Spot, innocent, scene};

/// The report on a capture.
fn explain(file: &[u8]) -> Report {
    let (mut reader, mut explainer, mut rest) = (Reader::of_any_link(), Explainer::new(), file);
    while !rest.is_empty() {
        let Block { len, packet } = reader.block(rest).expect("captures of scenes are whole");
        if let Some(packet) = packet {
            explainer.take(&packet);
        }
        rest = &rest[len..];
    }
    explainer.finish()
}

/// `LOSS:congestion`.
fn names(report: &Report, with_info: bool) -> Vec<String> {
    let found = report.findings.iter().filter(|it| with_info || !it.is_info);
    found.map(|it| name(it.id.name(), it.kind)).collect()
}

fn name(id: &str, kind: &str) -> String {
    match id {
        "LOSS" => format!("LOSS:{kind}"),
        _ => id.to_owned(),
    }
}

/// Spots at which a label's cause shows.
fn decisive(label: &str, scene: &Scene) -> &'static [Spot] {
    match label {
        // At the end that gets the forged reset.
        "RST_INJECTED" if scene.links[1].inject_rst => &[Spot::Client],
        "SYN_UNANSWERED" => &[Spot::Client],
        "ACCEPT_OVERFLOW" => &[Spot::Server, Spot::Client],
        "REORDERING" => &[Spot::Client],
        "APP_SLOW" | "ZERO_WINDOW" | "TW_SYN_REFUSED" | "SYN_REFUSED" | "PORT_EXHAUSTED"
        | "OPTIONS_MISSING" | "RST_WITH_DATA" | "CLOSE_WAIT_HELD" => {
            &[Spot::Client, Spot::Server, Spot::Between]
        }
        "NAGLE_DELACK" | "IDLE_FORGOTTEN" => &[Spot::Client],
        _ => &[Spot::Server],
    }
}

/// Results of one label.
#[derive(Default)]
struct Row {
    captures: u32,
    right: u32,
    /// Captures with the label in front of all others.
    first: u32,
    /// Findings above INFO that are not true, by name.
    wrong: BTreeMap<String, u32>,
    missed: Vec<u64>,
    /// Scenes whose label does not hold.
    unlabelled: u32,
}

/// Causes that may cost nothing.
const WITHOUT_COST: [&str; 4] =
    ["SPURIOUS_RETRANSMIT", "REORDERING", "PORT_EXHAUSTED", "BUFFERBLOAT"];

fn holds(label: &str, [with, without]: [&Played; 2]) -> bool {
    let lost = with.links.iter().map(|link| link.lost()).sum::<u64>();
    let count =
        |of: fn(&whimbrel_link::LinkCounters) -> u64| with.links.iter().map(of).sum::<u64>();
    let is_counted = match label {
        "LOSS:congestion" => count(|it| it.lost_queue) >= 3,
        "LOSS:policer" => count(|it| it.lost_policed) >= 15,
        "LOSS:by chance" => count(|it| it.lost_random) >= 10,
        "TAIL_LOSS" => count(|it| it.lost_targeted) >= 1,
        "REORDERING" => count(|it| it.reordered) >= 3,
        "PMTU_BLACKHOLE" => count(|it| it.lost_too_long) >= 3,
        "OUTAGE" | "PEER_SILENT" => count(|it| it.lost_down) >= 2,
        "IDLE_FORGOTTEN" => count(|it| it.lost_forgotten + it.resets_forged) >= 1,
        "RST_INJECTED" => count(|it| it.resets_forged) >= 1,
        "OPTIONS_MISSING" => count(|it| it.options_stripped) >= 1,
        // Text that was sent twice, though nothing was lost.
        "SPURIOUS_RETRANSMIT" => lost == 0 && repeats(with) >= 1,
        _ => true,
    };
    is_counted && (WITHOUT_COST.contains(&label) || with.is_slower_than(without))
}

/// Packets of the server with text whose number it had sent before.
fn repeats(played: &Played) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    let sent = played.taps[1].iter().filter(|frame| frame.is_sent && frame.packet.len() > 60);
    sent.filter(|frame| !seen.insert(frame.packet.slice(22..28))).count()
}

fn judge(label: &'static str, seed: u64, row: &mut Row) {
    let [with, without] = scene(label, seed).expect("the label is known");
    let [with_run, without_run] =
        [&with, &without].map(|scene| scene.play().expect("the scene is valid"));
    if !holds(label, [&with_run, &without_run]) {
        row.unlabelled += 1;
        return;
    }
    let spots = decisive(label, &with);
    let spot = spots[(seed / 2) as usize % spots.len()];
    // Half of them with flows of other hosts that are in no trouble.
    let file = match seed % 4 < 2 {
        true => with_run.capture(spot, Damage::None, seed),
        false => {
            let others = innocent(seed).play().expect("the scene is valid");
            with_run.capture_with(&others, spot, Damage::None, seed)
        }
    };
    keep(label, seed, &file);
    let mut report = explain(&file);
    let accused = report.worst().filter(|it| Played::is_other(it.ends[1].addr));
    for wrong in accused.map(|it| format!("{} of others", it.id.name())) {
        *row.wrong.entry(wrong).or_default() += 1;
    }
    report.findings.retain(|it| !Played::is_other(it.ends[1].addr));
    row.captures += 1;
    let first = report.findings.first().map(|it| name(it.id.name(), it.kind));
    row.first += u32::from(first.is_some_and(|first| first == label));
    let found = names(&report, true);
    let is_right = found.iter().any(|it| it == label);
    row.right += u32::from(is_right);
    if !is_right {
        row.missed.push(seed);
    }
    for wrong in names(&report, false).into_iter().filter(|it| !is_true(it, label, &with)) {
        *row.wrong.entry(wrong).or_default() += 1;
    }
}

/// True if a finding is the label, or true as well.
fn is_true(found: &str, label: &str, scene: &Scene) -> bool {
    let (id, _) = found.split_once(':').unwrap_or((found, ""));
    found == label || scene.also.contains(&id) || scene.also.contains(&found)
}

#[allow(clippy::disallowed_methods, reason = "a test may be asked for more")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Keeps a capture, if that is asked for.
#[allow(clippy::disallowed_methods, reason = "captures are files")]
fn keep(label: &str, seed: u64, file: &[u8]) {
    let Some(folder) = asked("WHIMBREL_KEEP") else { return };
    let name = label.replace([':', ' '], "-");
    std::fs::write(format!("{folder}/{name}-{seed}.pcapng"), file).expect("the folder exists");
}

fn seeds() -> impl Iterator<Item = u64> {
    let captures = asked("WHIMBREL_CAPTURES").and_then(|it| it.parse().ok()).unwrap_or(4);
    let first = u64::from(asked("WHIMBREL_SEEDS").is_some_and(|it| it == "odd"));
    (0..captures).map(move |it| it * 2 + first)
}

/// All labels, in a table.
#[test]
fn findings_name_the_known_cause() {
    let only = asked("WHIMBREL_LABEL");
    let labels =
        LABELS.into_iter().filter(|it| only.as_ref().is_none_or(|only| it.starts_with(only)));
    let (mut table, mut right, mut all, mut false_ones) = (String::new(), 0, 0, 0);
    let mut weak = Vec::new();
    for label in labels {
        let mut row = Row::default();
        seeds().for_each(|seed| judge(label, seed, &mut row));
        let wrong: Vec<_> =
            row.wrong.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = writeln!(
            table,
            "| {label} | {} | {} | {} | {} | {:?} | {} |",
            row.captures,
            row.right,
            row.first,
            wrong.join(", "),
            row.missed.iter().take(4).collect::<Vec<_>>(),
            row.unlabelled,
        );
        right += row.right;
        all += row.captures;
        false_ones += row.wrong.values().sum::<u32>();
        if row.right * 100 < row.captures * 85 || row.captures == 0 {
            weak.push(label);
        }
    }
    println!("| label | captures | found | first | others | missed seeds | not slower |\n{table}");
    println!("found {right} of {all}, {false_ones} others");
    assert!(weak.is_empty(), "{weak:?}\n{table}");
    assert!(right * 100 >= all * 95 && false_ones * 100 <= right * 5, "{table}");
}

#[test]
fn innocent_captures_have_no_finding_above_info() {
    let (mut accused, mut count) = (Vec::new(), 0);
    let more = (0..5).flat_map(|turn| seeds().map(move |it| it + 1_000 * (turn + 1)));
    for seed in seeds().chain(more) {
        let played = innocent(seed).play().unwrap();
        for spot in [Spot::Client, Spot::Server, Spot::Between] {
            count += 1;
            let report = explain(&played.capture(spot, Damage::None, seed));
            let found = names(&report, false);
            if !found.is_empty() {
                accused.push((seed, spot, found));
            }
        }
    }
    println!("{} of {count} innocent captures accused: {accused:?}", accused.len());
    assert!(accused.len() * 100 <= count, "{accused:?}");
}

/// Labels of flows that send for a while.
const SENDING: [&str; 12] = [
    "OPTIONS_MISSING",
    "APP_SLOW",
    "RWND_LIMITED",
    "ZERO_WINDOW",
    "SENDER_LIMITED",
    "CWND_LIMITED",
    "NAGLE_DELACK",
    "BUFFERBLOAT",
    "LOSS:congestion",
    "LOSS:policer",
    "LOSS:by chance",
    "REORDERING",
];

/// Percentages of one server's time by its own count, and by a capture there: application and buffer, window,
/// network.
fn shares_of(label: &str, played: &Played, seed: u64) -> Vec<(String, [[f64; 3]; 2])> {
    let report = explain(&played.capture(Spot::Server, Damage::None, seed));
    let mut all = Vec::new();
    for flow in &report.flows {
        let talk = flow.ends[0].port;
        let place = played.ports.iter().position(|port| *port == Some(talk));
        let Some(limits) = place.and_then(|place| played.limits[place]) else { continue };
        let seconds = (flow.last - flow.first) as f64 / 1e9;
        if seconds < 0.2 {
            continue;
        }
        let [buffer, window, network] =
            [limits.buffer, limits.window, limits.network].map(|it| it.as_secs_f64());
        let own = [seconds - window - network, window, network].map(|it| it * 100.0 / seconds);
        let seen = flow.shares[1].by_limit().map(|it| it as f64 / 1e7 / seconds);
        all.push((format!("{label} {seed} port {talk}, buffer {buffer:.2} s"), [own, seen]));
    }
    all
}

/// Time shares against the sender's own, of captures at the sender.
#[test]
fn time_shares_are_those_that_the_sender_counts() {
    let mut all = Vec::new();
    for seed in seeds() {
        for label in SENDING {
            let [with, _] = scene(label, seed).expect("the label is known");
            all.extend(shares_of(label, &with.play().unwrap(), seed));
        }
        all.extend(shares_of("innocent", &innocent(seed).play().unwrap(), seed));
    }
    let off = |[own, seen]: [[f64; 3]; 2]| {
        own.iter().zip(seen).map(|(own, seen)| (own - seen).abs()).fold(0.0, f64::max)
    };
    all.sort_by(|(_, a), (_, b)| off(*b).total_cmp(&off(*a)));
    let mean = all.iter().map(|(_, it)| off(*it)).sum::<f64>() / all.len() as f64;
    let worst = &all[0];
    println!(
        "{} flows, {mean:.2} points on average, {:.1} at most: {worst:?}",
        all.len(),
        off(worst.1)
    );
    let table: Vec<_> = all.iter().take(12).map(|it| format!("{it:.1?}")).collect();
    assert!(mean <= 5.0 && off(worst.1) <= 15.0, "{mean}:\n{}", table.join("\n"));
}

#[test]
fn damage_of_captures_is_named() {
    for seed in seeds() {
        let played = innocent(seed).play().unwrap();
        let damages = [
            (Damage::Doubled, "CAPTURE_DUPLICATES"),
            (Damage::OneWay, "CAPTURE_ONE_WAY"),
            (Damage::Lossy, "CAPTURE_LOSSY"),
        ];
        for (damage, expected) in damages {
            let report = explain(&played.capture(Spot::Client, damage, seed));
            let found = names(&report, true);
            // Of few frames none may be missing.
            let is_long = report.frames > 600 || damage != Damage::Lossy;
            assert!(
                !is_long || found.iter().any(|it| it == expected),
                "{seed}: {expected}: {found:?}"
            );
            if damage == Damage::Doubled {
                let repeated: u64 = report.flows.iter().flat_map(|flow| flow.repeated).sum();
                assert_eq!(repeated, 0, "{seed}: a doubled frame is no repeat");
            }
        }
    }
}
