//! Output of `serve`: its start, each second, its end.

use std::time::Duration;

use serde_json::Value;
use whimbrel_apps::Statistics;
use whimbrel_base::Instant;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_stack::shard::{Census, Memory, SocketState, StateCounts};
use whimbrel_wire::{Address, Endpoint};

use super::access_log::LogLines;
use super::plan::ServePlan;
use super::totals::{StackTotals, Totals};
use super::{Served, json};
use crate::drive::FinishedRun;
use crate::failure::Failure;
use crate::options::Detail;
use crate::quantity::{of, thousands};
use crate::report::{Form, csv_heading, csv_row};
use crate::wrap::wrap;
use crate::{output, size, streams};

pub(crate) use crate::report::Reporter;

/// The reporter, and its last report.
#[derive(Debug)]
pub(crate) struct ServeReporter {
    reporter: Reporter,
    /// When the next line is due, if lines are printed.
    next_line: Option<Instant>,
    lines: u64,
    last: Sample,
}

/// Figures that grow; a line shows by how much.
#[derive(Clone, Copy, Default, Debug)]
struct Sample {
    at: Instant,
    accepted: u64,
    requests: u64,
    retransmitted: u64,
    resets: u64,
    drops: u64,
}

impl ServeReporter {
    /// Begins with nothing reported.
    pub(crate) fn new(reporter: Reporter) -> Self {
        let lines = match reporter.form() {
            Form::Text if reporter.is_quiet() => false,
            Form::Text => reporter.is_on_terminal() || reporter.detail() > Detail::Plain,
            Form::Stream | Form::Csv => true,
            Form::Document(_) => false,
        };
        let next_line = lines.then_some(Instant::ZERO + SECOND);
        Self { reporter, next_line, lines: 0, last: Sample::default() }
    }

    /// Reports that the stack is up on `wire`, with its addresses.
    pub(crate) fn begin(&mut self, plan: &ServePlan, wire: &str) {
        let text = wrap(&opening(plan, wire), INDENT);
        match self.reporter.form() {
            _ if self.reporter.is_quiet() => {}
            Form::Text => self.reporter.say(&text),
            // Documents for programs begin with measurements.
            Form::Document(_) | Form::Stream | Form::Csv => {
                streams::tell(&text);
            }
        }
        if self.reporter.form() == Form::Csv {
            self.reporter.say(&csv_heading(&json::COLUMNS));
        }
    }

    /// Prints something extra: text for people, or a line with a document each for programs.
    pub(crate) fn tell(&mut self, news: &str) {
        let documents = news.lines().filter_map(|line| serde_json::from_str(line).ok());
        match self.reporter.form() {
            Form::Text if self.reporter.is_quiet() => {}
            Form::Text => self.reporter.say(news),
            Form::Document(_) => {
                documents.for_each(|it: Value| self.reporter.say(&format!("{it:#}\n")));
            }
            Form::Stream => documents.for_each(|it: Value| {
                let line = serde_json::json!({ "event": "test", "data": it });
                self.reporter.say(&format!("{line}\n"));
            }),
            Form::Csv => {}
        }
    }

    /// When [`ServeReporter::tick`] has something to print.
    pub(crate) fn next_line(&self) -> Option<Instant> {
        self.next_line
    }

    /// Reports a second, if it is over.
    pub(crate) fn tick(&mut self, now: Instant, totals: impl FnOnce() -> Totals) {
        if self.next_line.is_none_or(|due| now < due) {
            return;
        }
        let totals = totals();
        self.next_line = Some(now + SECOND);
        let sample = Sample::take(now, &totals);
        let last = std::mem::replace(&mut self.last, sample);
        match self.reporter.form() {
            Form::Stream => self.reporter.interval(|| sample.document(&last, &totals)),
            Form::Csv => {
                self.reporter.say(&csv_row(&json::COLUMNS, &sample.document(&last, &totals)));
            }
            Form::Text | Form::Document(_) => {
                if self.lines.is_multiple_of(HEADING_EVERY) {
                    self.reporter.say(HEADING);
                }
                self.reporter.say(&wrap(&sample.line(&last, &totals), INDENT));
                self.lines += 1;
            }
        }
    }

    /// Reports the counts, and the rest.
    pub(crate) fn conclude(plan: &ServePlan, mut ran: FinishedRun<Served>) -> Result<(), Failure> {
        let Some(mut report) = ran.outcome.report.take() else { return Ok(()) };
        let figures = |name: &str| json::figure(&ran, name);
        let text = match report.reporter.form() {
            Form::Document(_) | Form::Stream => {
                report.reporter.document(json::document(plan, &ran), &figures)
            }
            Form::Csv => String::new(),
            Form::Text => summary(plan, &ran) + &output::counters(&ran, report.reporter.detail()),
        };
        report.reporter.finish(&text)?;
        report.reporter.judge(&figures)?;
        plan.setup.judge_outcomes()
    }
}

/// Counts, and unfinished work; of several shards, also packets that came in by the wrong queue.
fn summary(plan: &ServePlan, ran: &FinishedRun<Served>) -> String {
    let Served { totals, replayed, .. } = &ran.outcome;
    let mut text = served(&totals.statistics);
    if let Some(log) = &plan.log {
        text += &self::log(log.finish());
    }
    if plan.setup.shards > 1 {
        let SteeringCounters { forwarded, dropped, .. } = ran.steering;
        text += &format!(
            "steering   {} frames passed on between shards, {} dropped there\n",
            thousands(forwarded),
            thousands(dropped)
        );
    }
    if let Some(stack) = &totals.stack {
        let left = left_over(&stack.census);
        text += &segments(stack);
        text += &format!(
            "left over: {} ({} in TIME-WAIT)\n",
            if left.is_empty() { "none" } else { &left },
            stack.census.time_wait,
        );
    }
    if let Some(replayed) = replayed {
        text += &format!("replayed   {replayed}\n");
    }
    wrap(&text, INDENT)
}

/// The lines with the counts of the server, for people.
pub(super) fn served(statistics: &Statistics) -> String {
    let Statistics {
        accepted, requests, refused, failed, silent, slow_heads, received, sent, ..
    } = *statistics;
    let late =
        if slow_heads > 0 { format!(", {slow_heads} with a slow head") } else { String::new() };
    format!(
        "served     {}, {} ({refused} refused); {} failed, {silent} silent{late}\n\
         bytes      {} received, {} sent\n",
        of(accepted, "connection"),
        of(requests, "request"),
        of(failed, "connection"),
        size::display(received),
        size::display(sent),
    )
}

/// Segments on the wire.
pub(super) fn segments(stack: &StackTotals) -> String {
    let StackTotals { in_segs, out_segs, retransmitted, resets, drops, .. } = stack;
    format!(
        "segments   {in_segs} in, {out_segs} out, {retransmitted} retransmitted, {resets} resets \
         sent, {drops} dropped\n"
    )
}

/// Number of written and lost lines of the access log.
pub(super) fn log(LogLines { written, lost }: LogLines) -> String {
    format!("log        {}, {} lost\n", of(written, "line"), thousands(lost))
}

/// Memory of a stack in addition to TIME-WAIT; empty if none.
pub(crate) fn left_over(census: &Census) -> String {
    let kinds = census.remaining();
    kinds.map(|(count, kind)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

impl Sample {
    fn take(at: Instant, totals: &Totals) -> Self {
        let StackTotals { retransmitted, resets, drops, .. } = totals.stack.unwrap_or_default();
        let Statistics { accepted, requests, .. } = totals.statistics;
        Self { at, accepted, requests, retransmitted, resets, drops }
    }

    fn line(&self, last: &Self, totals: &Totals) -> String {
        let seconds = self.at.since(last.at).as_secs_f64().max(0.001);
        let rate = |count: u64| count as f64 / seconds;
        format!(
            "{:>6.0}s {:>8.0} {:>8.0} {:>8} {:>6} {:>6}  {:<9} {:>4} {}\n",
            self.at.since(Instant::ZERO).as_secs_f64(),
            rate(self.accepted - last.accepted),
            rate(self.requests - last.requests),
            self.retransmitted - last.retransmitted,
            self.resets - last.resets,
            self.drops - last.drops,
            totals.stack.map_or_else(
                || "-".into(),
                |stack| {
                    let (waiting, most) = stack.accept_queue;
                    format!("{waiting}/{most}")
                }
            ),
            totals.stack.map_or_else(|| "-".into(), |stack| fill(&stack.memory)),
            states(totals),
        )
    }

    /// The interval for programs.
    fn document(&self, last: &Self, totals: &Totals) -> Value {
        let stack = totals.stack;
        serde_json::json!({
            "start": last.at.since(Instant::ZERO).as_secs_f64(),
            "end": self.at.since(Instant::ZERO).as_secs_f64(),
            "accepted": self.accepted - last.accepted,
            "requests": self.requests - last.requests,
            "open": totals.statistics.open,
            "retransmits": stack.map(|_| self.retransmitted - last.retransmitted),
            "resets": stack.map(|_| self.resets - last.resets),
            "drops": stack.map(|_| self.drops - last.drops),
            "accept_queue": stack.map(|stack| stack.accept_queue.0),
            "half_open": stack.map(|stack| stack.census.syn_entries),
            "time_wait": stack.map(|stack| stack.census.time_wait),
            "memory": stack.map(|stack| stack.memory.held),
        })
    }
}

/// Share of the memory limit in use: `12%`.
fn fill(memory: &Memory) -> String {
    format!("{}%", memory.held * 100 / memory.budget.max(1))
}

/// The states that sockets are in, and how many: `established 48, time-wait 61,100`.
pub(super) fn states(totals: &Totals) -> String {
    let Some(StackTotals { census, states, .. }) = totals.stack else {
        return format!("{} open", thousands(totals.statistics.open as u64));
    };
    let connections =
        states.iter().filter(|(state, count)| *count > 0 && *state != SocketState::Listen);
    let mut all: Vec<_> = connections
        .map(|(state, count)| {
            format!("{} {}", state.to_string().to_lowercase(), thousands(count as u64))
        })
        .collect();
    // Too many to be walked.
    if states == StateCounts::default() {
        all.push(format!("connections {}", thousands(census.connections as u64)));
        all.push(format!("time-wait {}", thousands(census.time_wait as u64)));
    }
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn opening(plan: &ServePlan, wire: &str) -> String {
    let mut text = format!("whimbrel {}  stack up on {wire}\n", env!("CARGO_PKG_VERSION"));
    for at in &plan.listen {
        text += &format!("listening  {at}   backlog {}{}\n", plan.backlog, cookies(plan));
    }
    for at in plan.listen.iter().filter_map(|at| reachable(plan, *at)) {
        let whence = match plan.setup.wire.is_reached_from_here() {
            true => "",
            false => "   (from another machine)",
        };
        text += &format!("try        {}{whence}\n", plan.content.example(at));
    }
    text
}

/// When SYNs are answered by cookies; the kernel has its own rule.
fn cookies(plan: &ServePlan) -> String {
    let name = "net.ipv4.tcp_syncookies";
    let rule = plan.setup.rules.tunables.value_of(name).filter(|_| !plan.setup.wire.is_kernel());
    let group = if plan.group.is_some() { " of a group" } else { "" };
    rule.map_or_else(String::new, |rule| format!("   syncookies {rule}{group}"))
}

/// Address at which a client on this machine reaches the listener at `at`, if known.
fn reachable(plan: &ServePlan, at: Endpoint) -> Option<Endpoint> {
    let wire = &plan.setup.wire;
    match at.addr.is_unspecified() {
        _ if wire.is_capture() => None,
        false => Some(at),
        true if wire.is_kernel() && at.addr.is_v4() => {
            Some(Endpoint::new(Address::from_v4_bytes([127, 0, 0, 1]), at.port))
        }
        true => None,
    }
}

/// Indent of the text in a line of a summary.
pub(super) const INDENT: usize = 11;
const SECOND: Duration = Duration::from_secs(1);
/// Lines between two headings: a screen.
const HEADING_EVERY: u64 = 20;
/// `retrans`, `rst` and `drops` are the interval's; `mem` is the used part of `mem.budget`.
const HEADING: &str =
    "   time   conn/s    req/s  retrans    rst  drops  accept-q   mem connections\n";
