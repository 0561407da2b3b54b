//! Output of the lab for people: the cases, their stories, and a table of each with a picture of each
//! row.

use std::fmt::Write;

use whimbrel_lab::{
    Advice, CASES, Case, Column, Evidence, Figure, Measured, Miss, Parameter, Picture, Series,
    Setup, Unit, Verdict,
};

use super::{Row, ablation};
use crate::quantity::thousands;
use crate::wrap::{WIDTH, wrap};

/// Every case in a line.
pub(super) fn list() -> String {
    let width = CASES.iter().map(|case| case.name.len()).max().unwrap_or(0) + 2;
    let line = |case: &&Case| wrap(&format!("{:<width$}{}\n", case.name, case.about), width);
    CASES.iter().map(line).collect()
}

/// The story of a case, and what of it can be varied.
pub(super) fn story(case: &Case) -> String {
    let mut text = wrap(&format!("{}: {}\n\n", case.name, case.about), 2);
    for (head, line) in advice(&case.advice) {
        text += &wrap(&format!("{head} {line}\n"), 2);
    }
    text.push('\n');
    for paragraph in case.story.split("\n\n") {
        text += &wrap(&format!("{}\n", paragraph.replace('\n', " ")), 0);
        text.push('\n');
    }
    text += "Parameters, in addition to the tunables of the stack (-S help):\n";
    let width = case.parameters.iter().map(|it| it.name.len()).max().unwrap_or(0) + 4;
    for Parameter { name, about, unit, default, .. } in case.parameters {
        let default = unit.type_of(*default);
        let line = format!("{:<width$}{about} [default: {default}]\n", format!("  {name}"));
        text += &wrap(&line, width);
    }
    text
}

/// Advice for users who have the problem: one line for each heading.
pub(super) fn advice(advice: &Advice) -> [(&'static str, String); 4] {
    let Advice { symptom, today, price, whimbrel } = *advice;
    let lines = [
        ("Symptoms:", symptom),
        ("Workaround:", today),
        ("Trade-off:", price),
        ("In Whimbrel:", whimbrel),
    ];
    lines.map(|(head, text)| (head, text.replace('\n', " ")))
}

/// The result of a case.
pub(super) fn of_case(rows: &[Row<'_>], verbose: bool) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let case = first.setup.case;
    let mut text = wrap(&format!("{}: {}\n\n", case.name, case.about), 2);
    let scale = Scale::of(case, rows);
    text += format!("{}  {}", heads(case), scale.head(case, rows)).trim_end();
    text.push('\n');
    for (number, row) in rows.iter().enumerate() {
        if ablation::is_trial(row.setup)
            && !ablation::is_trial(rows[number.saturating_sub(1)].setup)
        {
            text +=
                &format!("\n{}\n", trial_line("at the default instead", figure_of(row), "verdict"));
        }
        text += &of_row(row, &scale);
    }
    text.push('\n');
    text += &notes(rows);
    for row in rows.iter().filter(|row| verbose || !row.is_right()) {
        text += &evidence(row);
    }
    text + &conclusion(rows) + "\n"
}

/// A row of the table: profile and verdict, and below them the figures and their picture.
fn of_row(row: &Row<'_>, scale: &Scale) -> String {
    let (label, verdict) = (label(row.setup), word(&row.verdict));
    if let (true, Ok(measured)) = (ablation::is_trial(row.setup), &row.measured) {
        let is_figure = |it: &&Figure| it.name == figure_of(row);
        let figure = measured.figures.iter().find(is_figure);
        let figure = figure.map_or_else(|| "-".into(), |it| show(it.unit, it.value));
        return trial_line(&label, &figure, verdict) + "\n";
    }
    let (label, verdict) = (wrap(&label, 4), verdict);
    // The verdict stands at the right of the label's last line, or below it.
    let last = label.lines().last().unwrap_or_default().chars().count();
    let gap = match last + 2 + verdict.len() <= WIDTH {
        true => " ".repeat(WIDTH - last - verdict.len()),
        false => format!("\n{}", " ".repeat(WIDTH - verdict.len())),
    };
    let mut text = format!("{label}{gap}{verdict}").trim_end().to_owned() + "\n";
    match &row.measured {
        Err(why) => text += &wrap(&format!("    {why}\n"), 4),
        Ok(measured) => {
            let mut figures = String::new();
            for Column { figure, head, .. } in row.setup.case.columns {
                let width = column(head);
                let found = measured.figures.iter().find(|it| it.name == *figure);
                let cell = found.map_or_else(|| "-".into(), |it| show(it.unit, it.value));
                let _ = write!(figures, "{cell:>width$}");
            }
            let picture = scale.draw(row.setup.case, measured).unwrap_or_default();
            text += format!("{figures}  {picture}").trim_end();
            text.push('\n');
        }
    }
    text
}

/// A value that is switched, in a line.
fn trial_line(label: &str, figure: &str, verdict: &str) -> String {
    format!("  {label:<50}{figure:>12}  {verdict}")
}

/// The figure that decides the verdict.
fn figure_of<'r>(row: &Row<'r>) -> &'r str {
    row.setup.bounds.first().map_or("", |bound| bound.figure)
}

fn heads(case: &Case) -> String {
    let head = |it: &Column| format!("{head:>width$}", head = it.head, width = column(it.head));
    case.columns.iter().map(head).collect()
}

/// The width of a column with that heading.
fn column(head: &str) -> usize {
    head.chars().count().max(LEAST) + 2
}

/// The profile, and its changed settings.
pub(super) fn label(setup: &Setup) -> String {
    if let Some(label) = ablation::label(setup) {
        return label;
    }
    let changed = setup.settings.iter().map(|(key, value)| format!(" {key}={value}"));
    let seed = if setup.seed == 1 { String::new() } else { format!(" seed {}", setup.seed) };
    format!("{}{}{seed}", setup.profile, changed.collect::<String>())
}

/// A figure for people.
fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Count | Unit::PerSecond | Unit::Bytes => thousands(value.round() as u64),
        Unit::Time if value == 0.0 => "-".into(),
        Unit::Time if value < 1e-6 => format!("{:.0} ns", value * 1e9),
        Unit::Time if value < 0.001 => format!("{:.0} us", value * 1e6),
        Unit::Time if value < 1.0 => format!("{:.1} ms", value * 1e3),
        Unit::Time if value < 10.0 => format!("{value:.3} s"),
        Unit::Time => format!("{value:.1} s"),
        Unit::Percent if value == 0.0 => "0".into(),
        Unit::Percent if value < 1.0 => format!("{value:.3} %"),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Megabits => format!("{value:.1}"),
        Unit::Choice(_) => unit.type_of(value),
    }
}

const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::AsInferred => "as inferred",
        Verdict::Cured => "cured",
        Verdict::StillFails => "still fails",
        Verdict::FailsNoMore => "FAILS NO MORE",
        Verdict::AsExpected => "as expected",
        Verdict::Wrong(_) => "WRONG",
        Verdict::NotMeasured { .. } => "not measured",
        Verdict::Open => "",
    }
}

/// The common scale of a case's pictures.
struct Scale {
    most: f64,
}

impl Scale {
    /// The greatest value of all rows is the highest of every picture.
    fn of(case: &Case, rows: &[Row<'_>]) -> Self {
        let measured = rows.iter().filter_map(|row| row.measured.as_ref().ok());
        let most = measured.flat_map(|it| match case.picture {
            Picture::Bar(figure) => it.figure(figure).into_iter().collect::<Vec<_>>(),
            Picture::Line(name) => line_of(it, name).map(squeeze).unwrap_or_default(),
        });
        Self { most: most.fold(0.0, f64::max) }
    }

    /// Heading of the pictures.
    fn head(&self, case: &Case, rows: &[Row<'_>]) -> String {
        let name = match case.picture {
            Picture::Line(name) => name,
            Picture::Bar(name) => {
                let column = case.columns.iter().find(|column| column.figure == name);
                return column.map_or_else(String::new, |column| column.head.to_owned());
            }
        };
        let measured = rows.iter().filter_map(|row| row.measured.as_ref().ok());
        let lengths = measured.filter_map(|it| line_of(it, name));
        let seconds = lengths.map(|it| it.step.as_secs_f64() * it.values.len() as f64);
        // Measurements in real time have no figures for each second.
        let longest = seconds.reduce(f64::max);
        longest.map_or_else(String::new, |seconds| format!("{name} over {seconds:.0} s"))
    }

    fn draw(&self, case: &Case, measured: &Measured) -> Option<String> {
        match case.picture {
            Picture::Bar(name) => {
                let value = measured.figure(name).filter(|value| *value > 0.0)?;
                let eighths = (value / self.most * (LINE * 8) as f64).round() as usize;
                let part = if eighths.is_multiple_of(8) { "" } else { PARTS[eighths % 8] };
                Some("█".repeat(eighths / 8) + part)
            }
            Picture::Line(name) => {
                let series = line_of(measured, name)?;
                Some(squeeze(series).iter().map(|value| self.height(*value)).collect())
            }
        }
    }

    fn height(&self, value: f64) -> char {
        match value > 0.0 {
            true => {
                let step = (value / self.most * 8.0).ceil() as usize;
                HEIGHTS.chars().nth(step.clamp(1, 8) - 1).unwrap_or(' ')
            }
            false => '·',
        }
    }
}

fn line_of<'m>(measured: &'m Measured, name: &str) -> Option<&'m Series> {
    measured.series.iter().find(|series| series.name == name)
}

/// Means of a series, one for each column of a picture.
fn squeeze(series: &Series) -> Vec<f64> {
    let values = &series.values;
    let columns = values.len().min(LINE);
    let part = |column: usize| {
        let of = &values[column * values.len() / columns..(column + 1) * values.len() / columns];
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    (0..columns).map(part).collect()
}

/// Notes to the figures.
fn notes(rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !ablation::is_trial(row.setup)) {
        let notes = row.measured.as_ref().map_or(&[][..], |measured| &measured.notes);
        for note in notes {
            text += &wrap(&format!("  {}: {note}\n", label(row.setup)), 4);
        }
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The faults of a row, and the packets of a connection that show them.
fn evidence(row: &Row<'_>) -> String {
    let label = label(row.setup);
    let mut text = String::new();
    if let Verdict::Wrong(misses) = &row.verdict {
        for miss in misses {
            text += &wrap(&format!("  {label}: {}\n", miss_text(row, miss)), 4);
        }
    }
    if let Ok(Measured { evidence: Some(evidence), .. }) = &row.measured {
        let about = evidence.shows.about();
        text += &wrap(&format!("  {label}: {about}, from port {}:\n", evidence.port), 4);
        text += &packets(evidence);
    }
    text.push('\n');
    text
}

fn packets(evidence: &Evidence) -> String {
    let line = |packet: &_| wrap(&format!("    {packet}\n"), 34);
    evidence.packets.iter().map(line).collect()
}

fn miss_text(row: &Row<'_>, miss: &Miss) -> String {
    let figures = row.measured.as_ref().map_or(&[][..], |measured| &measured.figures);
    let unit = figures.iter().find(|it| it.name == miss.bound.figure).map(|it| it.unit);
    let exact = |value: f64| match unit {
        Some(Unit::Count | Unit::PerSecond) if value >= 1_000.0 => thousands(value.round() as u64),
        Some(Unit::Percent) => format!("{value} %"),
        Some(Unit::Time) => format!("{value} s"),
        _ => format!("{value}"),
    };
    let is = miss.value.map_or_else(|| "was not measured".into(), |it| format!("is {}", exact(it)));
    let [least, most] = [miss.bound.least, miss.bound.most];
    let has_to_be = match most {
        _ if least == most => exact(least),
        f64::INFINITY => format!("at least {}", exact(least)),
        _ if least == f64::NEG_INFINITY => format!("at most {}", exact(most)),
        _ => format!("{} to {}", exact(least), exact(most)),
    };
    format!("{} {is}, but must be {has_to_be}", miss.bound.figure)
}

/// The common conclusion of all rows.
fn conclusion(rows: &[Row<'_>]) -> String {
    let count =
        |verdict: fn(&Verdict) -> bool| rows.iter().filter(|row| verdict(&row.verdict)).count();
    let wrong = rows.iter().filter(|row| !row.is_right()).count();
    let busy = rows.iter().find_map(|row| match row.verdict {
        Verdict::NotMeasured { spread, most } => Some((spread, most)),
        _ => None,
    });
    if let Some((spread, most)) = busy.filter(|_| wrong == 0) {
        let text = format!(
            "verdict: not measured: this machine was busy (rounds differ by {spread:.0} %, at most {most} % \
             is allowed); run it again when it is idle\n"
        );
        return wrap(&text, 4);
    }
    let reproduced = count(|it| *it == Verdict::Reproduced);
    let cured = count(|it| *it == Verdict::Cured);
    if let Some(found) = ablation::conclusion(rows, label).filter(|_| wrong == 0) {
        return wrap(&found, 0);
    }
    match (wrong, reproduced, cured) {
        (0, 0, 0) if count(|it| *it == Verdict::AsExpected) > 0 => "verdict: as expected\n".into(),
        (0, 0, 0) if count(|it| *it == Verdict::AsInferred) > 0 => {
            "verdict: as inferred from the cause; not reported\n".into()
        }
        (0, 0, 0) => "verdict: none, for settings without a reported result\n".into(),
        (0, _, 0) => "verdict: reproduced\n".into(),
        (0, 0, _) => "verdict: cured by default\n".into(),
        (0, _, _) => "verdict: reproduced, and cured by default\n".into(),
        _ => format!("verdict: WRONG, {wrong} of {}\n", rows.len()),
    }
}

/// The least width of a column.
const LEAST: usize = 7;
/// The width of a picture.
const LINE: usize = 22;
const HEIGHTS: &str = "▁▂▃▄▅▆▇█";
/// Eighths of a column of a bar.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
