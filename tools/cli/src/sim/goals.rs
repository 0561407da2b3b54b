//! `whimbrel sim grid` and `whimbrel sim paths`: measurements with goals, in parallel on threads, and
//! their results compared with the goals or with an earlier run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, parallel, text};
use whimbrel_sim::goals::{self, Figure, Goal, Line, PathEvents};
use whimbrel_tcp::conn::Limit;

use crate::failure::{self, Failure};
use crate::options::ScreenOptions;
use crate::output;
use crate::page_file::PageOption;
use crate::progress::Progress;
use crate::quantity::{self, thousands};

/// Arguments of `sim grid` or `sim paths`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Cells to measure, by whole or partial name, for example 100M/70ms/cubic, 100M or 1G/reno
    /// [default: all].
    #[arg(value_name = "CELL")]
    pub(super) cells: Vec<String>,
    /// Cells measured at the same time [default: one per processor].
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u16>(1..=1024))]
    pub(super) jobs: Option<u16>,
    /// Compare with an earlier run's --json document: exit code 3 only if a figure that misses its goal
    /// met it then, or is now more than 1 % worse.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Print one JSON document (whimbrel.grid/1, whimbrel.full-grid/1 or whimbrel.paths/1) instead.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) page: PageOption,
    #[command(flatten)]
    pub(super) screen: ScreenOptions,
}

/// Something that is measured and has a name of parts with `/` between them.
pub(super) trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

impl Named for Line {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Several lines under one command.
pub(super) struct Board {
    schema: &'static str,
    lines: fn() -> Vec<Line>,
}

pub(super) const GRID: Board = Board { schema: "whimbrel.grid/1", lines: goals::grid };
pub(super) const PATHS: Board = Board { schema: "whimbrel.paths/1", lines: goals::paths };

/// A line and its measurement, or the error.
struct Row<'l> {
    line: &'l Line,
    measured: Result<Figure, String>,
    /// The value of an earlier run.
    before: Option<f64>,
}

/// Measures, and prints the results.
pub(super) fn run(arguments: &Arguments, board: &Board) -> Result<(), Failure> {
    let lines = chosen(&arguments.cells, (board.lines)())?;
    let before = arguments.baseline.as_deref().map(earlier).transpose()?;
    let page = arguments.page.open()?;
    let jobs = parallel::jobs(arguments.jobs);
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let progress = Progress::new(lines.len() as u64, arguments.screen, arguments.json);
    let mut rows = Vec::new();
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
    if !arguments.json {
        output::print(&heads(width))?;
    }
    parallel::in_order(
        jobs,
        &lines,
        |line| {
            let measured = line.measure(&|| !stop.is_set());
            (!stop.is_set()).then_some(measured)
        },
        |measured| {
            // They come in the order of the lines.
            let (Some(measured), Some(line)) = (measured, lines.get(rows.len())) else {
                return Ok(());
            };
            let earlier = before.as_ref().and_then(|before| before.get(&line.name));
            let row = Row { line, measured, before: earlier.and_then(|it| it["value"].as_f64()) };
            if !arguments.json {
                progress.print(&row.text(width))?;
            }
            rows.push(row);
            progress.show(rows.len() as u64, || format!("{} measured", rows.len()));
            Ok::<_, Failure>(())
        },
    )?;
    progress.finish();
    if rows.len() < lines.len() {
        return Err(failure::interrupted(rows.len() as u64, lines.len(), "measurements"));
    }
    if let Some(page) = page {
        page.write(&document(board, &rows))?;
    }
    match arguments.json {
        true => output::print(&format!("{:#}\n", document(board, &rows)))?,
        false => output::print(&summary(&rows, arguments.baseline.as_deref()))?,
    }
    if is_refused(&rows, arguments.baseline.as_deref()) { Err(Failure::Answer) } else { Ok(()) }
}

/// True if a goal is missed.
fn is_refused(rows: &[Row<'_>], baseline: Option<&Path>) -> bool {
    match baseline {
        Some(_) => rows.iter().any(Row::is_worse),
        None => !rows.iter().all(Row::is_met),
    }
}

/// The lines that `patterns` name, or all.
pub(super) fn chosen<N: Named>(patterns: &[String], lines: Vec<N>) -> Result<Vec<N>, Failure> {
    let is_named = |line: &N, pattern: &str| goals::is_named(line.name(), pattern);
    let is_unknown = |pattern: &&String| !lines.iter().any(|line| is_named(line, pattern));
    if let Some(unknown) = patterns.iter().find(is_unknown) {
        return Err(Failure::usage("CELL", nothing_named(unknown, &lines)));
    }
    let is_wanted = |line: &N| patterns.is_empty() || patterns.iter().any(|it| is_named(line, it));
    Ok(lines.into_iter().filter(is_wanted).collect())
}

/// The error for a name that matches none of `lines`, with the known ones.
fn nothing_named<N: Named>(unknown: &str, lines: &[N]) -> String {
    let parts_of = |wanted: &dyn Fn(&N) -> bool| {
        let mut parts: Vec<&str> = Vec::new();
        let named = lines.iter().filter(|line| wanted(line)).map(Named::name);
        for part in named.flat_map(|name| name.split('/')) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    };
    let all = parts_of(&|_| true);
    match unknown.split('/').find(|part| !all.contains(part)) {
        Some(part) => {
            format!("{unknown}: no cell matches {part:?}; use some of {}", all.join(", "))
        }
        None => {
            let first = unknown.split('/').next().unwrap_or_default();
            let matching = parts_of(&|line| goals::is_named(line.name(), first));
            let matching: Vec<_> = matching.into_iter().filter(|part| *part != first).collect();
            format!(
                "{unknown}: no cell matches all parts; with {first} there are {}",
                matching.join(", ")
            )
        }
    }
}

/// The lines of an earlier document, by name.
pub(super) fn earlier(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let refused = |what: &dyn std::fmt::Display| {
        let text = format!("{}: {what}; use a document of an earlier `--json`", text::path(path));
        Failure::usage("--baseline", text)
    };
    let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| refused(&error))?;
    let lines = document["lines"].as_array().ok_or_else(|| refused(&"it has no \"lines\""))?;
    let named = |line: &Value| Some((line["name"].as_str()?.to_owned(), line.clone()));
    Ok(lines.iter().filter_map(named).collect())
}

impl Row<'_> {
    fn has_goal(&self) -> bool {
        self.line.goal != Goal::Published
    }

    /// True if the goal is reached, or if there is none and the figure was measured.
    fn is_met(&self) -> bool {
        self.measured.as_ref().is_ok_and(|figure| self.line.goal.is_met(figure.value))
    }

    /// The goal is missed, and was met before or the figure is worse; or it is not to be measured any more.
    fn is_worse(&self) -> bool {
        let goal = self.line.goal;
        self.before.is_some_and(|before| match &self.measured {
            Ok(figure) => {
                !self.is_met() && (goal.is_met(before) || goal.is_worse(figure.value, before))
            }
            Err(_) => true,
        })
    }

    fn text(&self, width: usize) -> String {
        let (goal, name) = (goal(self.line.goal), &self.line.name);
        let verdict = match (self.is_worse(), self.is_met()) {
            (true, _) => "WORSE",
            (false, true) if !self.has_goal() => "",
            (false, true) => "met",
            (false, false) => "missed",
        };
        let (value, rest) = match &self.measured {
            Err(why) => ("-".into(), why.clone()),
            Ok(Figure { value, events }) => (self.line.unit.show(*value), events_text(events)),
        };
        let before = self.before.filter(|_| self.is_worse());
        let before = before.map_or_else(String::new, |before| {
            format!("  before: {}", self.line.unit.show(before))
        });
        let text = format!("{name:<width$}{value:>11}{goal:>9} {verdict:<6}{rest}{before}");
        format!("{}\n", text.trim_end())
    }

    fn document(&self) -> Value {
        let figure = self.measured.as_ref().ok();
        let goal = match self.line.goal {
            Goal::AtLeast(least) => json!({ "at_least": least }),
            Goal::AtMost(most) => json!({ "at_most": most }),
            Goal::Near(value) => json!({ "within_a_tenth_of": value }),
            Goal::Published => Value::Null,
        };
        json!({
            "name": self.line.name,
            "what": self.line.what,
            "unit": self.line.unit.name(),
            "goal": goal,
            "value": figure.map(|figure| (figure.value * 1e4).round() / 1e4),
            "is_met": self.is_met(),
            "before": self.before,
            "sent_again": figure.map(|figure| figure.events.sent_again),
            "timeouts": figure.map(|figure| figure.events.timeouts),
            "queue_drops": figure.map(|figure| figure.events.queue_drops),
            "limit": figure.and_then(|it| it.events.limit).map(|(limit, percent)| json!({
                "by": limit_name(limit),
                "percent": (percent * 10.0).round() / 10.0,
            })),
            "error": self.measured.as_ref().err(),
        })
    }
}

fn heads(width: usize) -> String {
    let [cell, reached, goal] = ["cell", "reached", "goal"];
    let rest = format!("{:>9}{:>6}{:>8}  waits for", "repeats", "RTOs", "drops");
    format!("{cell:<width$}{reached:>11}{goal:>9} {:<6}{rest}\n", "")
}

fn events_text(events: &PathEvents) -> String {
    let PathEvents { sent_again, timeouts, queue_drops, limit, .. } = events;
    let limit = limit.map_or_else(String::new, |(limit, percent)| {
        format!("  {} {percent:.0} %", limit_name(limit))
    });
    let [sent_again, timeouts, queue_drops] =
        [sent_again, timeouts, queue_drops].map(|it| thousands(*it));
    format!("{sent_again:>9}{timeouts:>6}{queue_drops:>8}{limit}")
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::AtLeast(least) => format!(">= {least}"),
        Goal::AtMost(most) => format!("<= {most}"),
        Goal::Near(value) => format!("~ {value}"),
        Goal::Published => "-".into(),
    }
}

/// As `bulk` calls it.
pub(super) const fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "app",
        Limit::Network => "cwnd",
        Limit::Window => "rwnd",
        Limit::Buffer => "sndbuf",
    }
}

fn summary(rows: &[Row<'_>], baseline: Option<&Path>) -> String {
    let [met, goals] = counts(rows);
    let mut text = format!("{met} of {goals} goals met\n");
    if baseline.is_some() {
        let worse = rows.iter().filter(|row| row.is_worse()).count();
        let new = rows.iter().filter(|row| row.before.is_none() && row.measured.is_ok()).count();
        let _ = writeln!(text, "{worse} worse than before, {new} new");
    }
    text
}

/// Numbers of goals that are met, and of all.
fn counts(rows: &[Row<'_>]) -> [usize; 2] {
    let goals = rows.iter().filter(|row| row.has_goal());
    [goals.clone().filter(|row| row.is_met()).count(), goals.count()]
}

fn document(board: &Board, rows: &[Row<'_>]) -> Value {
    let [met, goals] = counts(rows);
    json!({
        "schema": board.schema,
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "summary": {
            "lines": rows.len(),
            "goals": goals,
            "met": met,
            "worse": rows.iter().filter(|row| row.is_worse()).count(),
        },
        "lines": rows.iter().map(Row::document).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
