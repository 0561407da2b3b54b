//! Figures for people, each with the place in the document that it is from.

use super::markup::escaped;
use super::node::Node;
use crate::quantity::thousands;

/// A figure in a page: rounded text for people, and in attributes its exact value and its place in the
/// document.
pub(crate) fn figure(node: &Node<'_>, unit: &str) -> String {
    match node.number() {
        Some(value) => {
            format!("<data{}>{}</data>", attributes(node), escaped(&show(unit, value)))
        }
        None => "–".into(),
    }
}

/// Attributes of it in a drawing.
pub(crate) fn attributes(node: &Node<'_>) -> String {
    let value = node.number().unwrap_or_default();
    format!(" data-json=\"{}\" value=\"{value}\"", escaped(node.pointer()))
}

/// A number of this unit, as documents call it, for people.
pub(crate) fn show(unit: &str, value: f64) -> String {
    match unit {
        "s" => time(value),
        "percent" if value == 0.0 => "0 %".into(),
        "percent" if value < 0.1 => format!("{value:.3} %"),
        "percent" if value < 10.0 => format!("{value:.2} %"),
        "percent" => format!("{value:.1} %"),
        "Mbit/s" => format!("{value:.1}"),
        "octets" => bytes(value),
        "bit/s" => rate(value),
        _ if value.fract() != 0.0 && value.abs() < 100.0 => format!("{value:.2}"),
        _ if value < 0.0 => format!("−{}", thousands(value.abs().round() as u64)),
        _ => thousands(value.round() as u64),
    }
}

/// Seconds.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".into(),
        it if it < 1e-6 => format!("{:.0} ns", it * 1e9),
        it if it < 0.001 => format!("{:.0} µs", it * 1e6),
        it if it < 1.0 => format!("{:.1} ms", it * 1e3),
        it if it < 10.0 => format!("{it:.3} s"),
        it => format!("{it:.1} s"),
    }
}

fn bytes(value: f64) -> String {
    match value {
        it if it < 1024.0 => format!("{it:.0} B"),
        it if it < 1_048_576.0 => format!("{:.0} KiB", it / 1024.0),
        it if it < 1_073_741_824.0 => format!("{:.2} MiB", it / 1_048_576.0),
        it => format!("{:.2} GiB", it / 1_073_741_824.0),
    }
}

fn rate(value: f64) -> String {
    match value {
        it if it < 1e3 => format!("{it:.0} b/s"),
        it if it < 1e6 => format!("{:.1} kb/s", it / 1e3),
        it if it < 1e9 => format!("{:.1} Mb/s", it / 1e6),
        it => format!("{:.2} Gb/s", it / 1e9),
    }
}

/// A tick of an axis: short, and without a unit where one would repeat.
pub(crate) fn tick(unit: &str, value: f64) -> String {
    let plain = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match unit {
        _ if value == 0.0 => "0".into(),
        "s" if value < 0.000_9 => format!("{} µs", plain(value * 1e6)),
        "s" if value < 0.9 => format!("{} ms", plain(value * 1e3)),
        "s" => format!("{} s", plain(value)),
        "percent" => format!("{} %", plain(value)),
        "octets" if value >= 1_048_576.0 => format!("{} MiB", plain(value / 1_048_576.0)),
        "octets" if value >= 1024.0 => format!("{} KiB", plain(value / 1024.0)),
        "bit/s" => rate(value),
        _ if value >= 1_000.0 => thousands(value.round() as u64),
        _ => plain(value),
    }
}

#[cfg(test)]
mod tests;
