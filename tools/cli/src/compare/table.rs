//! Two runs side by side, for people.

use std::fmt::Write;

use super::Comparison;
use super::difference::{Difference, Pair};
use super::figure::Reading;
use crate::quantity::thousands;
use crate::wrap::wrap;

/// Everything that differs, and every figure.
pub(super) fn of(comparison: &Comparison) -> String {
    let [a, b] = &comparison.names;
    let mut text = format!("{}\n  A {a}\n  B {b}\n", comparison.schema);
    for pair in &comparison.pairs {
        text += &of_pair(pair);
    }
    for (which, names) in ["A", "B"].iter().zip(&comparison.alone) {
        for name in names {
            text += &wrap(&format!("\nonly in {which}: {name}\n"), 4);
        }
    }
    let figures = || comparison.pairs.iter().flat_map(|pair| &pair.figures);
    let count = |verdict| figures().filter(|it| it.verdict() == verdict).count();
    let [differ, same, unknown] = ["differs", "same", "unknown"].map(count);
    let mut verdict =
        format!("\n{differ} figures differ by more than their spread (*), {same} do not");
    if unknown > 0 {
        verdict += &format!(
            "; {unknown} have unknown spread (?: use three intervals, or runs: --repeat 3)"
        );
    }
    text + &wrap(&(verdict + "\n"), 0)
}

fn of_pair(pair: &Pair) -> String {
    let mut text = String::from("\n");
    if !pair.name.verbatim().is_empty() {
        text += &wrap(&format!("{}\n", pair.name), 4);
    }
    for (name, values) in &pair.rules {
        let [a, b] = values
            .each_ref()
            .map(|value| value.as_ref().map_or_else(|| "default".into(), ToString::to_string));
        text += &wrap(&format!("  {name:<30} {a} | {b}\n"), 33);
    }
    let _ = writeln!(text, "{:<16}{:>26}{:>26}{:>10}", "", "A", "B", "change");
    for difference in &pair.figures {
        text += &of_figure(difference);
    }
    if let Some(apart) = pair.apart {
        let [a, b] = apart.below.map(|share| 100.0 * share);
        let is = if apart.differs() { "" } else { ", within chance" };
        text += &wrap(
            &format!(
                "shape: {:.2} % of responses lie apart{is}; within {} are {a:.2} % of A, {b:.2} % \
                 of B\n",
                100.0 * apart.share,
                show("s", apart.at),
            ),
            2,
        );
    }
    text
}

fn of_figure(difference: &Difference) -> String {
    let Difference { name, unit, a, b } = difference;
    let unit = unit.to_string();
    let [a, b] = [a, b].map(|it| side(&unit, *it));
    let change = difference.change().map_or_else(
        || "-".into(),
        |change| match change {
            0.0 => "0".into(),
            _ => format!("{:+.1} %", 100.0 * change),
        },
    );
    let mark = match difference.verdict() {
        "differs" => "*",
        "unknown" => "?",
        _ => " ",
    };
    // A time shows its unit with its value.
    let name =
        if unit.is_empty() || unit == "s" { name.to_string() } else { format!("{name} {unit}") };
    format!("{mark} {name:<14}{a:>26}{b:>26}{change:>10}\n")
}

/// A value, and its range if known and wider than the value.
fn side(unit: &str, reading: Reading) -> String {
    let value = show(unit, reading.value);
    match reading.range {
        Some((least, most)) if least < most => {
            format!("{value} ({}-{})", show(unit, least), show(unit, most))
        }
        _ => value,
    }
}

/// A number in a few digits.
fn show(unit: &str, value: f64) -> String {
    let size = value.abs();
    match unit {
        "s" if size == 0.0 => "0".into(),
        "s" if size < 1e-3 => format!("{:.0}us", value * 1e6),
        "s" if size < 1.0 => format!("{:.1}ms", value * 1e3),
        "s" => format!("{value:.3}s"),
        "bit/s" if size >= 1e6 => format!("{:.1}M", value / 1e6),
        _ if size >= 100_000.0 => format!("{:.0}k", value / 1e3),
        _ if size >= 100.0 || value.fract() == 0.0 => thousands(value.round() as u64),
        _ => format!("{value:.3}"),
    }
}
