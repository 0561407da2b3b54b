//! The summary of a load, for people.

use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::Histogram;
use whimbrel_apps::load::{Correction, Ending, FastOpen};
use whimbrel_apps::record::{Connections, Phase, SynCounts};
use whimbrel_apps::{ConnError, Record};
use whimbrel_tcp::Counters;
use whimbrel_wire::Endpoint;

use super::figures::{Outcome, about, held, mean, of_some, remedy, seconds};
use super::oha::counts_below;
use super::plan::LoadRunPlan;
use crate::drive::{FinishedRun, StackState};
use crate::options::ClockKind;
use crate::wrap::{WIDTH, wrap};
use crate::{output, quantity, size};

/// The result as text for people.
pub(crate) fn text(plan: &LoadRunPlan, ran: &FinishedRun<Outcome>) -> String {
    let outcome = &ran.outcome;
    let mut text = headline(plan, ran);
    text += &runs(outcome);
    text += &side_by_side(&summary(plan, outcome), &stack(plan, ran));
    text.push('\n');
    text += &side_by_side(&distribution(plan, &outcome.record), &phases(&outcome.record));
    text += &histogram(&outcome.record);
    text += &statuses(&outcome.record);
    text += &wrap(&errors(outcome), 6);
    text
}

fn headline(plan: &LoadRunPlan, ran: &FinishedRun<Outcome>) -> String {
    let whom = whom(plan, Some(ran.target));
    let clock = match plan.setup.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => "  (virtual time)",
    };
    let load = &plan.load;
    let rate = load.rate.map_or(String::new(), |rate| match load.correction {
        Correction::On => {
            format!(", {rate} requests/s, latency corrected for coordinated omission")
        }
        Correction::Off => format!(", {rate} requests/s, latency as it was served"),
    });
    let text = format!(
        "whimbrel {}  {} {whom}  over {}{}{clock}\n{}, {}{rate}\n\n",
        env!("CARGO_PKG_VERSION"),
        plan.method,
        plan.setup.typed,
        output::on_shards(&plan.setup),
        quantity::of(load.connections.into(), "connection"),
        ending(load.ending),
    );
    wrap(&text, 4)
}

/// Target of the load, as far as its address is known.
pub(super) fn whom(plan: &LoadRunPlan, target: Option<Endpoint>) -> String {
    match (&plan.url, target) {
        (Some(url), _) => url.to_string(),
        (None, Some(target)) => format!("http://{target}/ in this process"),
        (None, None) => "/ of a server in this process".into(),
    }
}

/// Words for the end of connections.
pub(super) const fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::KeepAlive => "kept alive",
        Ending::Server => "one for each request, the server closes",
        Ending::Client => "one for each request, the client closes",
        Ending::Reset => "one for each request, the client resets",
    }
}

/// A line for each of several runs; what follows is then of the last.
pub(crate) fn runs(outcome: &Outcome) -> String {
    if outcome.earlier.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("  run    requests     req/s  success       p50       p99       max\n");
    for (number, run) in outcome.earlier.iter().chain([outcome]).enumerate() {
        let at = |quantile| {
            let nanos = |latency: &Histogram<u64>| latency.value_at_quantile(quantile);
            let nanos = of_some(&run.record.corrected, nanos).map(Duration::from_nanos);
            nanos.map_or_else(|| "-".into(), quantity::show)
        };
        let _ = writeln!(
            text,
            "{:>5} {:>11} {:>9.0} {:>7.2}% {:>9} {:>9} {:>9}",
            number + 1,
            quantity::thousands(run.record.answered()),
            run.record.rate(),
            100.0 * run.success_rate(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    text + "\nThe last run:\n"
}

fn summary(plan: &LoadRunPlan, outcome: &Outcome) -> Vec<String> {
    let record = &outcome.record;
    let latency = &record.corrected;
    let elapsed = record.elapsed();
    let answered = record.answered();
    let rate = record.rate();
    let per_second = |count: u64| whimbrel_apps::record::per_second(count, elapsed) as u64;
    let mut lines = vec![
        "Summary:".into(),
        format!("  Success rate:  {:.2}%", 100.0 * outcome.success_rate()),
        format!("  Total:         {:.4} secs", elapsed.as_secs_f64()),
    ];
    lines.extend(hindrances(record));
    lines.extend(steered(plan, record));
    let time = |seconds: f64| match latency.is_empty() {
        false => format!("{seconds:.6} secs"),
        true => "-".into(),
    };
    lines.extend([
        format!("  Slowest:       {}", time(seconds(latency.max()))),
        format!("  Fastest:       {}", time(seconds(latency.min()))),
        format!("  Average:       {}", time(latency.mean() / 1e9)),
        format!("  Requests/sec:  {rate:.2}"),
    ]);
    if let Some(spread) = record.intervals.spread(elapsed).filter(|spread| spread.intervals > 1) {
        let (min, max) = (spread.min as u64, spread.max as u64);
        let (intervals, variation) = (spread.intervals, 100.0 * spread.variation());
        lines.push(format!(
            "    least        {} of {intervals} intervals",
            quantity::thousands(min)
        ));
        lines.push(format!("    greatest     {} (cv {variation:.1}%)", quantity::thousands(max)));
        let empty = record.intervals.rates(elapsed).iter().filter(|rate| **rate == 0.0).count();
        if empty > 0 {
            lines.push(format!("    none         in {empty} of {intervals} intervals"));
        }
    }
    lines.push(format!("  Requests:      {}", quantity::thousands(answered)));
    lines.push(format!("  Total data:    {}", size::display(record.body)));
    lines.push(format!(
        "  Size/request:  {}",
        size::display(record.body.checked_div(answered).unwrap_or(0))
    ));
    lines.push(format!("  Size/sec:      {}", size::display(per_second(record.body))));
    if plan.load.rate.is_some() && outcome.left.never_begun > 0 {
        lines.push(format!(
            "  Never begun:   {} (due, all were busy)",
            quantity::thousands(outcome.left.never_begun)
        ));
    }
    lines
}

/// Lines that say what held connections up, and whether the generator itself was late.
pub(crate) fn hindrances(record: &Record) -> Vec<String> {
    let held = held(record)
        .into_iter()
        .map(|(share, cause)| format!("  Held up:       {:.1}%, {cause}", 100.0 * share));
    let late = (record.held.late > 0).then(|| {
        let all = (record.answered() + record.failed()).max(record.held.late).max(1);
        let share = 100.0 * record.held.late as f64 / all as f64;
        let latest = quantity::show(record.held.latest);
        format!("  Sent late:     {share:.1}%, by up to {latest}")
    });
    held.chain(late).collect()
}

/// Changes during the run.
fn steered(plan: &LoadRunPlan, record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    if !record.paused.is_zero() {
        lines
            .push(format!("  Paused:        {:.4} secs, not counted", record.paused.as_secs_f64()));
    }
    let Connections { least, most, last } = record.connections;
    if record.connections.have_changed() || last != plan.load.connections {
        lines.push(format!("  Connections:   {last} at the end, of {least} to {most}"));
    }
    lines
}

fn stack(plan: &LoadRunPlan, ran: &FinishedRun<Outcome>) -> Vec<String> {
    let record = &ran.outcome.record;
    let line = |name: &str, value: u64| format!("  {name:<22}{:>12}", quantity::thousands(value));
    let Some(client) = &ran.client else {
        return vec![
            "Kernel's sockets:".into(),
            line("connections opened", record.opened),
            line("closed uncleanly", record.unclean + record.unclosed),
            line("waited for a port", record.starved),
        ];
    };
    let StackState { counters, census, ports: (first, last), states: _ } = client;
    let range = u64::from(last - first) + 1;
    // A stack outlives its runs.
    let runs = if ran.outcome.earlier.is_empty() { "" } else { ", all runs" };
    let mut lines = vec![
        format!("Stack (client side{runs}):"),
        line("connections opened", counters.active_opens),
        line("failed to open", failed_to_open(counters, &ran.outcome)),
        line("TIME-WAIT now", census.time_wait as u64),
        line("no free port", counters.ports_exhausted),
        line("SYN retransmits", counters.syn_retrans),
        line("segments out", counters.out_segs),
        line("segments in", counters.in_segs),
        line("retransmitted", counters.retrans_segs),
        line("resets sent", counters.out_rsts),
    ];
    if plan.load.fast_open == FastOpen::On {
        lines.push(line("opened fast", counters.fast_open_active));
    }
    if plan.load.ending != Ending::KeepAlive {
        lines.push(line("ports to draw from", range));
    }
    if let Some(server) = &ran.server {
        lines.push(format!("Stack (server side{runs}):"));
        lines.push(line("TIME-WAIT now", server.census.time_wait as u64));
        lines.push(line("TIME-WAIT reused", server.counters.time_wait_recycled));
        lines.push(line("accept queue full", server.counters.listen_overflows));
    }
    if plan.setup.shards > 1 {
        lines.push("Shards:".into());
        lines.push(line("frames passed on", ran.steering.forwarded));
        lines.push(line("and dropped there", ran.steering.dropped));
    }
    if let Some(lost) = ran.links.map(|links| links.iter().map(|link| link.lost()).sum::<u64>()) {
        lines.push(line("frames lost in transit", lost));
    }
    lines
}

/// Attempts that failed, without those that the end of a run cut short: the stack counts both.
fn failed_to_open(counters: &Counters, outcome: &Outcome) -> u64 {
    let runs = outcome.earlier.iter().chain([outcome]);
    counters.attempt_fails.saturating_sub(runs.map(|run| run.left.opening).sum())
}

fn distribution(plan: &LoadRunPlan, record: &Record) -> Vec<String> {
    let corrected = plan.load.rate.is_some() && plan.load.correction == Correction::On;
    let mut lines = vec![if corrected {
        "Response time distribution (service | corrected):".into()
    } else {
        "Response time distribution:".into()
    }];
    for (name, quantile) in PERCENTS {
        let at = |histogram: &Histogram<u64>| {
            let time = of_some(histogram, |times| seconds(times.value_at_quantile(quantile)));
            time.map_or_else(|| "-".into(), |time| format!("{time:.6}"))
        };
        let service = at(&record.service);
        lines.push(if corrected {
            format!("  {name} in {service} | {} secs", at(&record.corrected))
        } else {
            format!("  {name} in {service} secs")
        });
    }
    lines
}

/// The phases of exchanges, for people.
pub(crate) fn phases(record: &Record) -> Vec<String> {
    let mut lines = vec!["Phases        avg /      p50 /      p99 /      max:".into()];
    for phase in Phase::ALL {
        let histogram = record.phase(phase);
        if histogram.is_empty() {
            continue;
        }
        let show = |nanos| quantity::show(Duration::from_nanos(nanos));
        let at = |quantile| show(histogram.value_at_quantile(quantile));
        lines.push(format!(
            "  {:<8}{:>8}   {:>8}   {:>8}   {:>8}",
            phase.name(),
            show(mean(histogram)),
            at(0.5),
            at(0.99),
            show(histogram.max())
        ));
    }
    lines
}

fn histogram(record: &Record) -> String {
    let latency = &record.corrected;
    if latency.is_empty() {
        return String::new();
    }
    let bars = growing_bars(latency, BARS);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut text = String::from("\nResponse time histogram:\n");
    for (end, count) in bars {
        let length = usize::try_from(count * BAR / most).unwrap_or(0);
        let bar = "■".repeat(length);
        let count = format!("[{count}]");
        let _ = writeln!(text, "  {:.6} {count:<9} |{bar}", seconds(end));
    }
    text
}

/// Bars whose ends grow by one factor: the crowd and the stragglers both show.
pub(super) fn growing_bars(latency: &Histogram<u64>, bars: u32) -> Vec<(u64, u64)> {
    let (min, max) = (latency.min().max(1) as f64, latency.max().max(1) as f64);
    let end = |bar: u32| match bar {
        _ if bar == bars => latency.max(),
        _ => (min * (max / min).powf(f64::from(bar) / f64::from(bars))) as u64,
    };
    let ends: Vec<u64> = (1..=bars).map(end).collect();
    counts_below(latency, &ends)
}

fn statuses(record: &Record) -> String {
    let mut text = String::from("\nStatus code distribution:\n");
    for (status, count) in &record.statuses {
        let _ = writeln!(text, "  [{status}] {count} responses");
    }
    text
}

/// Failures, and unfinished work.
pub(crate) fn errors(outcome: &Outcome) -> String {
    let record = &outcome.record;
    let mut text = String::from("\nError distribution:");
    if record.conn_errors.is_empty() {
        text += " (none)";
    }
    text.push('\n');
    for (conn_error, count) in &record.conn_errors {
        let about = match conn_error {
            // Reported below, with the number of waits.
            ConnError::PortsExhausted => String::new(),
            _ => about(record, *conn_error),
        };
        let _ = writeln!(text, "  [{count}] {conn_error}{about}: {}", remedy(record, *conn_error));
    }
    for (at, why) in &record.unreached {
        let _ = writeln!(text, "  {at}: {why}, so the next address of the name was tried");
    }
    if record.repeated > 0 {
        let _ = writeln!(
            text,
            "  {} resent on a new connection: the server had closed the old one, or sent data \
             there without a request",
            quantity::of(record.repeated, "request")
        );
    }
    if let Some(shortage) = record.shortage.filter(|_| record.starved > 0) {
        let _ = write!(
            text,
            "  {} waited for a free port ({} in total, {shortage})",
            quantity::thousands(record.starved),
            quantity::show(record.held.ports)
        );
        // What to do stands above already, where some of them gave up.
        let _ = match record.conn_errors.contains_key(&ConnError::PortsExhausted) {
            true => writeln!(text),
            false => writeln!(text, ": {}", shortage.remedy()),
        };
    }
    if record.unclosed > 0 {
        let _ = writeln!(
            text,
            "  {} not closed by the server within --timeout: use --close client, or let the \
             server close first (serve --close server)",
            quantity::of(record.unclosed, "connection")
        );
    }
    if record.unclean > 0 {
        let failed = quantity::of(record.unclean, "connection");
        let _ = writeln!(text, "  {failed} failed after the response");
    }
    if let Some(syns) = record.syns.filter(|syns| syns.late() > 0) {
        let _ = writeln!(
            text,
            "  {} opened at a later SYN than the first ({})",
            quantity::of(syns.late(), "connection"),
            later_syns(syns)
        );
    }
    if outcome.left.opening > 0 {
        let _ = writeln!(
            text,
            "  {} not open at the end, the oldest after {}",
            quantity::of(outcome.left.opening, "connection"),
            quantity::show(outcome.left.opening_for.oldest())
        );
    }
    if outcome.left.in_flight > 0 {
        let _ = writeln!(text, "  {} on the way at the end", outcome.left.in_flight);
    }
    text
}

/// As in `2nd: 14, 3rd: 1`.
fn later_syns(syns: SynCounts) -> String {
    let later = syns.iter().skip(1).filter(|(_, count)| *count > 0);
    let later = later.map(|(syn, count)| {
        let ending = match syn {
            2 => "nd",
            3 => "rd",
            _ => "th",
        };
        format!("{syn}{ending}: {}", quantity::thousands(count))
    });
    later.collect::<Vec<_>>().join(", ")
}

/// Two columns side by side, or where they are too wide for that one below the other.
fn side_by_side(left: &[String], right: &[String]) -> String {
    let widest = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max();
    let (least, most) = (widest(left).unwrap_or(0), widest(right).unwrap_or(0));
    if least + 2 + most > WIDTH {
        let lines = left.iter().cloned().chain([String::new()]).chain(right.iter().cloned());
        return wrap(&(lines.collect::<Vec<_>>().join("\n") + "\n"), 6);
    }
    let width = least.max(COLUMN.min(WIDTH - most - 2)) + 2;
    let mut text = String::new();
    for row in 0..left.len().max(right.len()) {
        let at = |column: &[String]| column.get(row).cloned().unwrap_or_default();
        let _ = writeln!(text, "{}", format!("{:<width$}{}", at(left), at(right)).trim_end());
    }
    text
}

const PERCENTS: [(&str, f64); 8] = [
    ("10.00%", 0.10),
    ("25.00%", 0.25),
    ("50.00%", 0.50),
    ("75.00%", 0.75),
    ("90.00%", 0.90),
    ("99.00%", 0.99),
    ("99.90%", 0.999),
    ("99.99%", 0.9999),
];
/// Bars of the histogram.
const BARS: u32 = 11;
/// The longest bar of the histogram, characters.
const BAR: u64 = 32;
/// The least width of the left column.
const COLUMN: usize = 50;
