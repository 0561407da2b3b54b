//! A comparison as a table in Markdown, and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::Failure;
use crate::case::{Case, FEW_AT_A_TIME, Kind};
use crate::compare::{Cell, Comparison, ComparisonPlan, Subject};

/// The figures of one cell.
pub(crate) struct Figures {
    /// The middle one.
    pub(crate) median: f64,
    least: f64,
    most: f64,
    /// The smallest scale that was reached.
    pub(crate) scale: u64,
    short: bool,
}

impl Comparison {
    /// The figures of a peer in a case.
    pub(crate) fn figures(&self, case: Case, peer: &'static str) -> Option<Figures> {
        let Cell::Measured(rounds) = self.cells.get(&(case, peer))? else { return None };
        let mut values: Vec<_> = rounds.iter().map(|it| it.value).collect();
        values.sort_by(f64::total_cmp);
        Some(Figures {
            median: *values.get(values.len() / 2)?,
            least: *values.first()?,
            most: *values.last()?,
            scale: rounds.iter().map(|it| it.scale).min()?,
            short: rounds.iter().any(|it| it.is_short_of(case)),
        })
    }

    /// A table with a column for each peer and a row for each case, and what it leaves unsaid.
    pub(crate) fn markdown(&self, plan: &ComparisonPlan, command: &str) -> Result<String, Failure> {
        let mut text = String::new();
        writeln!(text, "{}; {}; `{command}`.", machine()?, date()?)?;
        text += &self.rules(plan);
        let titles: Vec<_> = self.peers.iter().map(|it| it.peer.title).collect();
        writeln!(text, "| | {} |", titles.join(" | "))?;
        writeln!(text, "|---|{}", "---|".repeat(titles.len()))?;
        for case in &plan.cases {
            let cells: Vec<_> =
                self.peers.iter().map(|it| self.cell(*case, it.peer.name)).collect();
            writeln!(text, "| {} | {} |", describe(*case), cells.join(" | "))?;
        }
        text.push('\n');
        for ready in &self.peers {
            let (title, version) = (ready.peer.title, &ready.version);
            let note = match plan.subject {
                Subject::Churn => format!(": {}", ready.peer.note),
                // What its connections do differently says nothing of datagrams.
                Subject::Datagrams => String::new(),
            };
            writeln!(text, "- **{title}** {version}{note}.{}", self.reasons(ready.peer.name))?;
        }
        for (name, reason) in &self.missing {
            writeln!(text, "- skipped {name}: {reason}.")?;
        }
        Ok(text)
    }

    /// Number of rounds, and limits.
    fn rules(&self, plan: &ComparisonPlan) -> String {
        let ComparisonPlan { limits, rounds, subject, .. } = plan;
        let first = self.peers.first().map_or("none", |it| it.peer.title);
        let figures = format!("medians, with the least and the most, and ratios to {first}");
        match subject {
            Subject::Churn => format!(
                "Rounds: {rounds}, but one of what takes longer than 20 s; {figures}. Filling ends after \
                 {} s of CPU time or {} GiB: then the figure is that of the scale reached, which it \
                 names.\n\n",
                limits.fill.as_secs_f64(),
                limits.memory >> 30,
            ),
            Subject::Datagrams => format!(
                "Rounds: {rounds} of {} ms of CPU time; {figures}.\n\n",
                limits.measure.as_millis()
            ),
        }
    }

    fn cell(&self, case: Case, peer: &'static str) -> String {
        let Some(figures) = self.figures(case, peer) else { return "-".to_owned() };
        let Figures { median, least, most, scale, short } = figures;
        let mut text =
            format!("{} ({}-{})", short_number(median), short_number(least), short_number(most));
        let first = self.peers.first().map(|it| it.peer.name).filter(|name| *name != peer);
        if let Some(ours) = first.and_then(|name| self.figures(case, name)) {
            text += &format!(", {}x", short_number(median / ours.median));
        }
        if short {
            text += &format!(", at {}", grouped(scale));
        }
        text
    }

    /// Why cells of a peer are empty.
    fn reasons(&self, peer: &'static str) -> String {
        let without = self.cells.iter().filter(|((_, name), _)| *name == peer);
        let reasons: BTreeSet<_> = without
            .filter_map(|((case, _), cell)| match cell {
                Cell::Without(reason) => Some(format!(" No `{}`: {reason}.", case.kind.name())),
                Cell::Measured(_) => None,
            })
            .collect();
        reasons.into_iter().collect()
    }

    /// Every measurement.
    pub(crate) fn json(&self, command: &str) -> Result<String, Failure> {
        let mut cells = Vec::new();
        for ((case, peer), cell) in &self.cells {
            let head = format!(
                "\"case\":{:?},\"scale\":{},\"peer\":{peer:?}",
                case.kind.name(),
                case.scale
            );
            cells.push(match cell {
                Cell::Without(reason) => format!("{{{head},\"without\":{reason:?}}}"),
                Cell::Measured(rounds) => {
                    let values: Vec<_> = rounds.iter().map(|it| it.value.to_string()).collect();
                    let reached: Vec<_> = rounds.iter().map(|it| it.scale.to_string()).collect();
                    let (values, reached) = (values.join(","), reached.join(","));
                    let unit = case.kind.unit();
                    format!("{{{head},\"unit\":\"{unit}\",\"values\":[{values}],\"reached\":[{reached}]}}")
                }
            });
        }
        cells.sort();
        let versions = self.peers.iter().map(|it| format!("{:?}:{:?}", it.peer.name, it.version));
        let versions: Vec<_> = versions.collect();
        let missing = self.missing.iter().map(|(name, reason)| format!("{name:?}:{reason:?}"));
        let missing: Vec<_> = missing.collect();
        Ok(format!(
            "{{\"machine\":{:?},\"date\":{:?},\"command\":{command:?},\n\"versions\":{{{}}},\n\
             \"skipped\":{{{}}},\n\"cells\":[\n{}\n]}}\n",
            machine()?,
            date()?,
            versions.join(","),
            missing.join(","),
            cells.join(",\n"),
        ))
    }
}

/// `page` with what stands between the markers of `name` replaced.
pub(crate) fn replace(page: &str, name: &str, text: &str) -> Result<String, Failure> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let missing = || format!("the page has no markers {} and {end}", begin.trim_end());
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}{text}{end}{after}"))
}

fn describe(case: Case) -> String {
    let scale = grouped(case.scale.into());
    match case.kind {
        Kind::Churn => format!("us a connection, {scale} in TIME-WAIT"),
        Kind::Few => format!("us a connection, {FEW_AT_A_TIME} at a time"),
        Kind::Ports => format!("us a port, {scale} % taken"),
        Kind::TimeWait => format!("bytes in TIME-WAIT, of {scale}"),
        Kind::Syn => format!("bytes half-open, of {scale}"),
        Kind::Idle => format!("bytes idle, one end, of {scale}"),
        Kind::Packet => format!("us a packet alone, {scale} idle"),
        Kind::Burst => format!("us a packet of 256, {scale} idle"),
        Kind::Datagrams => format!("us there and back, {scale} at a time"),
    }
}

/// Three digits at least.
fn short_number(value: f64) -> String {
    match value {
        _ if value >= 1_000.0 => grouped(value.round() as u64),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// By thousands.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Processor, cores, kernel and compiler.
pub(crate) fn machine() -> Result<String, Failure> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
    let models: Vec<_> = cpus.lines().filter(|line| line.starts_with("model name")).collect();
    let model = models.first().and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or("unknown");
    let rustc = std::process::Command::new("rustc").arg("--version").output()?;
    let rustc = String::from_utf8(rustc.stdout)?;
    let rustc = rustc.split(" (").next().unwrap_or_default().trim_end();
    Ok(format!(
        "{model}, {} cores, load {load}, Linux {}, {rustc}",
        models.len(),
        kernel.trim_end()
    ))
}

/// The date of today, in UTC, as documents have it: 23 November 2026.
pub(crate) fn date() -> Result<String, Failure> {
    let date = std::process::Command::new("date")
        .args(["-u", "+%-d %B %Y"])
        .env("LC_ALL", "C")
        .output()?;
    Ok(String::from_utf8(date.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
