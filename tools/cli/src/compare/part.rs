//! The compared parts of a document: its options, its figures with their spread, and its distributions
//! of times.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde_json::Value;
use whimbrel_base::Foreign;

use super::figure::{Figure, Reading, figure};
use super::shape;

/// The commands whose documents can be compared.
pub(super) const KINDS: [&str; 7] = ["load", "crr", "bulk", "lab", "grid", "full-grid", "paths"];

/// Names and values of rules.
pub(super) type Rules = BTreeMap<Foreign<String>, Foreign<String>>;

/// A run, or a row of a document that has several.
#[derive(Debug)]
pub(super) struct Part {
    /// Empty if it is the only one.
    pub(super) name: Foreign<String>,
    /// Options and tunables: names and values.
    pub(super) rules: Rules,
    pub(super) figures: Vec<Figure>,
    /// Response times, nanoseconds.
    pub(super) times: Option<Histogram<u64>>,
}

/// The compared parts of a document; `None` for an unknown schema.
pub(super) fn parts(schema: &str, document: &Value) -> Option<Vec<Part>> {
    let (kind, version) = schema.strip_prefix("whimbrel.")?.split_once('/')?;
    match (kind, version) {
        ("load" | "crr", "1") => Some(vec![load(document)]),
        ("bulk", "1") => Some(vec![bulk(document)]),
        ("lab", "1") => Some(lab(document)),
        ("grid" | "paths", "1") => Some(lines(document)),
        ("full-grid", "1") => Some(cells(document)),
        _ => None,
    }
}

fn load(document: &Value) -> Part {
    let summary = &document["summary"];
    let runs = numbers(&document["runs"], "/rate/mean");
    let intervals = numbers(&document["intervals"], "/rate");
    let mut rate = Reading::of_samples(if runs.len() > 1 { &runs } else { &intervals });
    if runs.len() == 1 {
        rate.value = summary["rate"]["mean"].as_f64().unwrap_or(rate.value);
    }
    let mut figures = vec![figure("rate", "/s", rate)];
    let share = |name| summary[name].as_f64().unwrap_or(0.0);
    let (answered, failed) = (share("succeeded"), share("answered") + share("failed"));
    if failed > 0.0 {
        let errors = (failed - answered) / failed;
        figures.push(figure("errors", "%", percent(errors, failed)));
    }
    let times = document["histogram_corrected"].as_str().and_then(shape::decode);
    figures.extend(times.iter().flat_map(shape::quantiles));
    Part { name: Foreign::default(), rules: rules(document), figures, times }
}

/// A share of `of` samples, with an error of two standard deviations.
fn percent(share: f64, of: f64) -> Reading {
    let off = 200.0 * (share * (1.0 - share) / of).sqrt();
    let value = 100.0 * share;
    Reading { value, range: Some(((value - off).max(0.0), (value + off).min(100.0))) }
}

fn bulk(document: &Value) -> Part {
    let summary = &document["summary"];
    let mut rates: BTreeMap<usize, f64> = BTreeMap::new();
    let streams = document["streams"].as_array().into_iter().flatten();
    for intervals in streams.filter_map(|stream| stream["intervals"].as_array()) {
        // The last one is shorter.
        let whole = intervals.len().saturating_sub(1).max(1);
        for (at, interval) in intervals.iter().take(whole).enumerate() {
            let of = |name| interval[name].as_f64().unwrap_or(0.0);
            let bytes = of("sent") + of("received");
            *rates.entry(at).or_default() += bytes * 8.0 / of("seconds").max(1e-9);
        }
    }
    let of = |name: &str| summary[name].as_f64().unwrap_or(0.0);
    let samples: Vec<_> = rates.into_values().collect();
    let rate = of("sent_rate") + of("received_rate");
    let rate = Reading { value: rate, ..Reading::of_samples(&samples) };
    let plain = |name: &str, unit| figure(name, unit, Reading { value: of(name), range: None });
    let figures =
        vec![figure("rate", "bit/s", rate), plain("duration", "s"), plain("retransmits", "")];
    Part { name: Foreign::default(), rules: rules(document), figures, times: None }
}

/// A part for each row; rows that differ only by their seeds are one, whose figures are samples.
fn lab(document: &Value) -> Vec<Part> {
    let mut rows: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    let mut order = Vec::new();
    for case in document["cases"].as_array().into_iter().flatten() {
        for row in case["rows"].as_array().into_iter().flatten() {
            let name = row_name(case["name"].as_str().unwrap_or_default(), row);
            let same = rows.entry(name.clone()).or_default();
            if same.is_empty() {
                order.push(name);
            }
            same.push(row);
        }
    }
    let part = |name: String| rows.get(&name).map(|same| of_row(name, same));
    order.into_iter().filter_map(part).collect()
}

fn row_name(case: &str, row: &Value) -> String {
    let mut name = format!("{case} {}", row["profile"].as_str().unwrap_or_default());
    for (key, value) in row["settings"].as_object().into_iter().flatten() {
        name += &format!(" {key}={}", plain(value));
    }
    if let Some(back) = row["ablation"]["back"]["name"].as_str() {
        name += &format!(" without {back}");
    } else if row["ablation"].is_object() {
        name += " alone";
    }
    name
}

fn of_row(name: String, same: &[&Value]) -> Part {
    let first = same.first().copied().unwrap_or(&Value::Null);
    // Rounds, or a separate clock, mean real time.
    let is_real = first["figures"].get("least_rate").is_some();
    let is_real = is_real || first["settings"].get("clock").is_some();
    let mut figures = Vec::new();
    for (key, one) in first["figures"].as_object().into_iter().flatten() {
        let of = |row: &&Value| row["figures"][key]["value"].as_f64();
        let samples: Vec<f64> = same.iter().filter_map(of).collect();
        let value = match (samples.as_slice(), is_real) {
            ([value], false) => Reading::exact(*value),
            _ => Reading::of_samples(&samples),
        };
        let unit = match one["unit"].as_str().unwrap_or_default() {
            "count" => "",
            "per_second" => "/s",
            "octets" => "bytes",
            "percent" => "%",
            other => other,
        };
        figures.push(figure(key, unit, value));
    }
    let of = |name: &str| first["figures"][name]["value"].as_f64();
    if let (Some(least), Some(most), [_]) = (of("least_rate"), of("most_rate"), same)
        && let Some(rate) = figures.iter_mut().find(|it| it.name.verbatim() == "rate")
    {
        rate.value.range = Some((least, most));
    }
    let mut rules = BTreeMap::from([rule("profile", &first["profile"])]);
    flatten("", &first["rules"], &mut rules);
    flatten("", &first["values"], &mut rules);
    Part { name: Foreign::new(name), rules, figures, times: None }
}

/// A part for each line of `sim grid` or `sim paths`.
fn lines(document: &Value) -> Vec<Part> {
    let lines = document["lines"].as_array().into_iter().flatten();
    let part = |line: &Value| Part {
        name: Foreign::new(plain(&line["name"])),
        rules: BTreeMap::from([rule("what", &line["what"])]),
        figures: ["value", "sent_again", "timeouts", "queue_drops"]
            .into_iter()
            .filter_map(|name| {
                let unit = if name == "value" { plain(&line["unit"]) } else { String::new() };
                Some(figure(name, &unit, Reading::exact(line[name].as_f64()?)))
            })
            .collect(),
        times: None,
    };
    lines.map(part).collect()
}

/// A part for each cell of `sim grid --full`.
fn cells(document: &Value) -> Vec<Part> {
    let cells = document["lines"].as_array().into_iter().flatten();
    let part = |cell: &Value| Part {
        name: Foreign::new(plain(&cell["name"])),
        rules: BTreeMap::new(),
        figures: CELL_FIGURES
            .into_iter()
            .filter_map(|(name, pointer, unit)| {
                Some(figure(name, unit, Reading::exact(cell.pointer(pointer)?.as_f64()?)))
            })
            .collect(),
        times: None,
    };
    cells.map(part).collect()
}

/// Options, and the machine.
fn rules(document: &Value) -> Rules {
    let mut rules = BTreeMap::new();
    flatten("", &document["config"], &mut rules);
    for (key, of) in [("profile", "/rules/profile"), ("server profile", "/rules/server/profile")] {
        if let Some(profile) = document.pointer(of) {
            rules.extend([rule(key, profile)]);
        }
    }
    flatten("", &document["rules"]["tunables"], &mut rules);
    flatten("server ", &document["rules"]["server"]["tunables"], &mut rules);
    for name in ["cpu", "kernel", "wire", "shards"] {
        rules.extend([rule(name, &document["env"][name])]);
    }
    rules.extend([rule("tool", &document["tool"])]);
    rules
}

/// Every plain value below, by its names.
fn flatten(before: &str, value: &Value, into: &mut Rules) {
    for (key, value) in value.as_object().into_iter().flatten() {
        match value.get("value") {
            // A tunable, with where it is from.
            Some(value) => into.extend([rule(&format!("{before}{key}"), value)]),
            None if value.is_object() => flatten(&format!("{before}{key}."), value, into),
            None => into.extend([rule(&format!("{before}{key}"), value)]),
        }
    }
}

fn rule(name: &str, value: &Value) -> (Foreign<String>, Foreign<String>) {
    (Foreign::new(name.into()), Foreign::new(plain(value)))
}

/// A value as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

fn numbers(array: &Value, pointer: &str) -> Vec<f64> {
    let all = array.as_array().into_iter().flatten();
    all.filter_map(|it| it.pointer(pointer).and_then(Value::as_f64)).collect()
}

/// Figures of a cell: name, place and unit.
const CELL_FIGURES: [(&str, &str, &str); 5] = [
    ("used", "/used", "%"),
    ("mean wait", "/wait/mean", "s"),
    ("p99 of waits", "/wait/p99", "s"),
    ("sent again", "/sent_again", "%"),
    ("timeouts", "/timeouts", ""),
];
