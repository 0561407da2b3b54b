//! Window, cwnd and queue of a transfer over time, on one axis of ratios: 16 KiB and 16 MiB both are seen.

use std::fmt::Write;

use super::figure::tick;
use super::markup::{Anchor, Drawing, escaped};
use super::node::Node;
use super::scale::Scale;
use super::timeline::{RIGHT, WIDTH, times};

/// Series of bytes of one run; the axis is given, so that several share it.
pub(crate) fn curves(series: &[Node<'_>], ends: [f64; 2], title: &str) -> String {
    let mut drawing = Drawing::new("chart curves", [WIDTH, HEIGHT], title);
    let seconds = |it: &Node<'_>| {
        it.at("step").number().unwrap_or_default() * it.at("values").items().len() as f64
    };
    let lasts = series.iter().map(seconds).fold(0.0, f64::max);
    let (time, bytes) =
        (Scale::linear([0.0, lasts], [X_LEFT, X_RIGHT]), Scale::log(ends, [BOTTOM, TOP]));
    let mut value = 1024.0;
    while value <= ends[1] {
        if value >= ends[0] {
            let y = bytes.place(value);
            drawing.line("grid", [X_LEFT, y], [X_RIGHT, y]);
            drawing.text("tick", [X_LEFT - 5.0, y + 4.0], Anchor::End, &tick("octets", value));
        }
        value *= 8.0;
    }
    drawing.line("axis", [X_LEFT, BOTTOM], [X_RIGHT, BOTTOM]);
    let mut labels: Vec<(f64, usize)> = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let numbers = one.at("values").numbers();
        let step = one.at("step").number().unwrap_or_default();
        let mut path = String::new();
        for (number, value) in numbers.iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let (x, y) = (time.place(step * number as f64), bytes.place(*value));
            let _ = write!(path, "{letter}{x:.1} {y:.2}");
        }
        let class = CLASSES[place % CLASSES.len()];
        let pointer = escaped(one.at("values").pointer());
        let attributes = format!(" data-json=\"{pointer}\"{}", bytes.attributes());
        drawing.path(&format!("curve {class}"), &attributes, &path);
        // Position before the end, where all curves fall.
        let late = numbers.get(numbers.len() * 9 / 10).copied().unwrap_or_default();
        labels.push((bytes.place(late), place));
    }
    name(&mut drawing, series, labels);
    times(&mut drawing, &time, BOTTOM + 9.0);
    drawing.finish()
}

/// The names, at the ends of the lines as far as they do not stand in each other's way.
fn name(drawing: &mut Drawing, series: &[Node<'_>], mut labels: Vec<(f64, usize)>) {
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = TOP - 8.0;
    let count = labels.len();
    for (number, (y, place)) in labels.into_iter().enumerate() {
        let below = (count - 1 - number) as f64 * 14.0;
        let y = (y + 4.0).max(free + 14.0).min(BOTTOM - below);
        free = y;
        let text = series.get(place).map_or("", |it| it.at("name").text());
        drawing.text(CLASSES[place % CLASSES.len()], [X_RIGHT + 5.0, y], Anchor::Start, text);
    }
}

const CLASSES: [&str; 4] = ["a", "b", "c", "d"];
const X_LEFT: f64 = 54.0;
const X_RIGHT: f64 = RIGHT - 52.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 200.0;
const HEIGHT: f64 = 222.0;
