//! `whimbrel sim grid --full`: cells without goals, which take hours together. Each measured cell is
//! appended to a file, and a later run continues.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use whimbrel_base::Foreign;
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, parallel, text};
use whimbrel_sim::goals::{FullCell, FullFigure};

use super::goals::{Arguments, Named, chosen, earlier, limit_name};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::quantity;
use results::Results;

mod results;

/// A cell with its name.
struct Cell {
    name: String,
    cell: FullCell,
}

/// A measured cell, as documents have it.
struct Row {
    name: String,
    document: Value,
    before: Option<Value>,
}

/// Measures, and prints the results.
pub(super) fn run(arguments: &Arguments, results: Option<&Path>) -> Result<(), Failure> {
    let all = FullCell::all().into_iter().map(|cell| Cell { name: cell.name(), cell });
    let cells = chosen(&arguments.cells, all.collect())?;
    let before = arguments.baseline.as_deref().map(earlier).transpose()?;
    let results = Results::open(results)?;
    let page = arguments.page.open()?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let mut pace = Pace::new(cells.iter().filter(|it| results.find(&it.name).is_none()));
    let progress = Progress::new(pace.all as u64, arguments.screen, arguments.json);
    if !arguments.json {
        output::print(&heads())?;
    }
    let mut rows = Vec::new();
    parallel::in_order(
        parallel::jobs(arguments.jobs),
        &cells,
        |cell| match results.find(&cell.name) {
            Some(known) => Some(Ok((cell.name.clone(), known.clone(), 0.0))),
            None => {
                let measured = cell.cell.measure(&|| !stop.is_set());
                let document = cell.document(&measured);
                let is_whole = !stop.is_set();
                is_whole.then(|| {
                    results.append(&document)?;
                    Ok::<_, Failure>((cell.name.clone(), document, cell.cell.packets()))
                })
            }
        },
        |measured| {
            let Some(measured) = measured else { return Ok(()) };
            let (name, document, packets) = measured?;
            let before = before.as_ref().and_then(|before| before.get(&name)).cloned();
            let row = Row { name, document, before };
            if !arguments.json {
                progress.print(&row.text())?;
            }
            rows.push(row);
            pace.done += packets;
            let count = [rows.len(), cells.len()].map(|it| quantity::thousands(it as u64));
            progress.show(pace.done as u64, || {
                format!("{} of {} cells{}", count[0], count[1], pace.left())
            });
            Ok::<_, Failure>(())
        },
    )?;
    progress.finish();
    let document = document(&rows);
    if let Some(page) = page {
        page.write(&document)?;
    }
    match arguments.json {
        true => output::print(&format!("{document:#}\n"))?,
        false => output::print(&summary(&rows, before.as_ref()))?,
    }
    match rows.len() {
        some if some < cells.len() => Err(interrupted(some, cells.len(), results.path())),
        _ if rows.iter().any(Row::is_worse) => Err(Failure::Answer),
        _ => Ok(()),
    }
}

impl Named for Cell {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Cell {
    fn document(&self, measured: &Result<FullFigure, String>) -> Value {
        let figure = measured.as_ref().ok();
        let rounded = |value: f64, parts: f64| (value * parts).round() / parts;
        let seconds = |time: Duration| rounded(time.as_secs_f64(), 1e7);
        let percent = |value: f64| rounded(value, 1e4);
        json!({
            "name": self.name,
            "rate": self.cell.cell.rate,
            "rtt": self.cell.cell.rtt.as_secs_f64(),
            "loss": f64::from(self.cell.loss.millionths()) / 1e4,
            "queue": f64::from(self.cell.queue) / 1e3,
            "algorithm": self.cell.cell.algorithm,
            "used": figure.map(|it| percent(it.used)),
            "wait": figure.map(|it| json!({
                "mean": seconds(it.wait_mean),
                "p99": seconds(it.wait_p99),
            })),
            "sent_again": figure.map(|it| percent(it.sent_again)),
            "timeouts": figure.map(|it| it.timeouts),
            "limit": figure.and_then(|it| it.limit).map(|(limit, share)| json!({
                "by": limit_name(limit),
                "percent": rounded(share, 10.0),
            })),
            "error": measured.as_ref().err(),
        })
    }
}

impl Row {
    /// True if a figure is worse than before by more than a change of the stack moves it by chance, or is
    /// not measured any more.
    fn is_worse(&self) -> bool {
        let Some(before) = &self.before else { return false };
        let figures = |pointer: &str| {
            let figure = |document: &Value| document.pointer(pointer).and_then(Value::as_f64);
            figure(before).map(|before| (before, figure(&self.document)))
        };
        let is_lossy = self.document["loss"].as_f64() > Some(0.0);
        let share = if is_lossy { LOSSY_TOLERANCE } else { TOLERANCE };
        let is_less =
            |(before, now): (f64, Option<f64>)| now.is_none_or(|now| now < before * (1.0 - share));
        let is_more = |least: f64| {
            move |(before, now): (f64, Option<f64>)| {
                now.is_none_or(|now| now > before * (1.0 + MORE) + least)
            }
        };
        figures("/used").is_some_and(is_less)
            || figures("/wait/mean").is_some_and(is_more(MORE_WAIT))
            || figures("/sent_again").is_some_and(is_more(MORE_AGAIN))
    }

    fn text(&self) -> String {
        let text = line(&self.name, &self.document);
        match self.before.as_ref().filter(|_| self.is_worse()) {
            Some(before) => format!("{text}WORSE than {}", line(&self.name, before)),
            None => text,
        }
    }
}

/// Estimate of the time that is left.
struct Pace {
    began: Instant,
    /// Packets of all cells that are to be measured, and of those that were.
    all: f64,
    done: f64,
}

impl Pace {
    fn new<'c>(cells: impl Iterator<Item = &'c Cell>) -> Self {
        let all = cells.map(|it| it.cell.packets()).sum();
        Self { began: Instant::now(), all, done: 0.0 }
    }

    fn left(&self) -> String {
        let left = self.began.elapsed().as_secs_f64() * (self.all - self.done) / self.done;
        match (left / 60.0).ceil() {
            // Nothing was measured yet.
            minutes if !minutes.is_finite() => String::new(),
            minutes if minutes < 120.0 => format!(", about {minutes:.0} min left"),
            minutes => format!(", about {:.1} h left", minutes / 60.0),
        }
    }
}

fn heads() -> String {
    format!("{:<32}{:>8}{:>9}{:>9}{:>9}  waits for\n", "cell", "used", "wait", "p99", "repeats")
}

/// A cell's document as a line.
fn line(name: &str, document: &Value) -> String {
    if let Some(error) = foreign(&document["error"]) {
        return format!("{name:<32}{:>8} {error}\n", "-");
    }
    let percent = |value: &Value, places| match value.as_f64() {
        Some(value) => format!("{value:.places$} %"),
        None => "-".into(),
    };
    let time = |value: &Value| match value.as_f64().map(Duration::try_from_secs_f64) {
        Some(Ok(time)) => quantity::show(time),
        _ => "-".into(),
    };
    let limit = &document["limit"];
    let by = foreign(&limit["by"]).unwrap_or_default();
    let (mean, p99) = (time(&document["wait"]["mean"]), time(&document["wait"]["p99"]));
    format!(
        "{name:<32}{:>8}{mean:>9}{p99:>9}{:>9}  {by} {}\n",
        percent(&document["used"], 1),
        percent(&document["sent_again"], 2),
        percent(&limit["percent"], 0),
    )
}

/// Text of a document, which may be another program's.
fn foreign(value: &Value) -> Option<Foreign<String>> {
    value.as_str().map(|text| Foreign::new(text.to_owned()))
}

fn summary(rows: &[Row], before: Option<&BTreeMap<String, Value>>) -> String {
    let text = format!("{}\n", quantity::of(rows.len() as u64, "cell"));
    if before.is_none() {
        return text;
    }
    let worse = rows.iter().filter(|row| row.is_worse()).count();
    let new = rows.iter().filter(|row| row.before.is_none()).count();
    format!("{text}{worse} worse than before, {new} new\n")
}

fn document(rows: &[Row]) -> Value {
    json!({
        "schema": "whimbrel.full-grid/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "summary": {
            "cells": rows.len(),
            "worse": rows.iter().filter(|row| row.is_worse()).count(),
        },
        "lines": rows.iter().map(|row| row.document.clone()).collect::<Vec<_>>(),
    })
}

fn interrupted(some: usize, all: usize, results: Option<&Path>) -> Failure {
    let [some, all] = [some, all].map(|count| quantity::thousands(count as u64));
    let remedy = match results {
        Some(path) => format!("the same command continues from {}", text::path(path)),
        None => "use --results FILE to continue an interrupted run".into(),
    };
    Failure::run(format!("interrupted: {some} of {all} cells were measured; {remedy}"))
}

/// Share of the rate that a cell may lose: every change of the stack moves losses a little.
const TOLERANCE: f64 = 0.02;
/// That of a path with losses by chance, where one more or less counts.
const LOSSY_TOLERANCE: f64 = 0.1;
/// Share by which waits and repeats may grow.
const MORE: f64 = 0.1;
/// Seconds by which a mean wait may also grow.
const MORE_WAIT: f64 = 0.001;
/// Percentage of segments by which repeats may also grow.
const MORE_AGAIN: f64 = 0.2;

#[cfg(test)]
mod tests;
