//! Series over time, one below the other on one axis.

use std::fmt::Write;

use super::figure::{attributes, tick};
use super::hue::SeriesColor;
use super::markup::{Anchor, Drawing, escaped};
use super::node::Node;
use super::scale::{Scale, round_up};

/// A series of a timeline.
#[derive(Clone, Debug)]
pub(crate) struct TimelineSeries<'d> {
    /// Title for people.
    pub(crate) title: String,
    /// The values, at equal distances of time.
    pub(crate) values: Node<'d>,
    /// Unit, as in documents.
    pub(crate) unit: String,
    /// Seconds between two of them.
    pub(crate) step: f64,
    /// Largest value of the axis, given so that strips side by side share it.
    pub(crate) most: f64,
    /// Limit of the values, if drawn.
    pub(crate) limit: Option<Limit<'d>>,
}

/// A limit in a drawing.
#[derive(Clone, Debug)]
pub(crate) struct Limit<'d> {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: Node<'d>,
}

/// Strips of one run, whose parts begin at these marks.
pub(crate) fn timeline(
    strips: &[TimelineSeries<'_>],
    marks: &[Node<'_>],
    hue: SeriesColor,
    title: &str,
) -> String {
    let lasts = |strip: &TimelineSeries<'_>| strip.step * strip.values.items().len() as f64;
    let seconds = strips.iter().map(lasts).fold(0.0, f64::max);
    let foot = if marks.is_empty() { FOOT } else { FOOT + NAMES };
    let height = strips.len() as f64 * EACH + foot;
    let mut drawing = Drawing::new("chart timeline", [WIDTH, height], title);
    let time = Scale::linear([0.0, seconds], [LEFT, RIGHT]);
    for (place, strip) in strips.iter().enumerate() {
        let top = place as f64 * EACH + HEAD;
        let values = Scale::linear([0.0, strip.most], [top + PLOT, top]);
        drawing.text("name", [LEFT, top - 5.0], Anchor::Start, &strip.title);
        let has_some = strip.values.numbers().iter().any(|value| *value > 0.0);
        let most = match has_some {
            true => format!("max {}", tick(&strip.unit, strip.most)),
            false => "none".to_owned(),
        };
        drawing.text("tick", [RIGHT, top - 5.0], Anchor::End, &most);
        drawing.line("grid", [LEFT, top], [RIGHT, top]);
        steps(&mut drawing, strip, hue, [&time, &values]);
        drawing.line("axis", [LEFT, top + PLOT], [RIGHT, top + PLOT]);
        if let Some(limit) = &strip.limit {
            bound(&mut drawing, limit, &values);
        }
    }
    times(&mut drawing, &time, height - foot + 8.0);
    parts(&mut drawing, marks, &time, height - 5.0);
    drawing.finish()
}

/// A line at what cannot be exceeded, and on the ground what that is.
fn bound(drawing: &mut Drawing, limit: &Limit<'_>, values: &Scale) {
    let y = values.place(limit.value.number().unwrap_or_default());
    drawing.line("limit", [LEFT, y], [RIGHT, y]);
    let told = tick("count", limit.value.number().unwrap_or_default());
    let text =
        format!("{}: <tspan{}>{told}</tspan>", escaped(&limit.name), attributes(&limit.value));
    drawing.marked("bound", Anchor::End.at([RIGHT - 4.0, values.place(0.0) - 6.0]), "", &text);
}

/// The names of the parts, each below the middle of its time.
fn parts(drawing: &mut Drawing, marks: &[Node<'_>], time: &Scale, y: f64) {
    let begins: Vec<_> = marks.iter().filter_map(|mark| mark.at("at").number()).collect();
    for (place, mark) in marks.iter().enumerate() {
        let end = begins.get(place + 1).copied().unwrap_or(time.values[1]);
        let begin = begins.get(place).copied().unwrap_or_default();
        let middle = time.place(f64::midpoint(begin, end));
        drawing.text("tick", [middle, y], Anchor::Middle, mark.at("name").text());
    }
}

/// The greatest value of these series, rounded up.
pub(crate) fn most<'d>(series: impl IntoIterator<Item = Node<'d>>) -> f64 {
    let values = series.into_iter().flat_map(|it| it.numbers());
    round_up(values.fold(0.0, f64::max))
}

/// A line of steps, and the area below it.
pub(crate) fn steps(
    drawing: &mut Drawing,
    strip: &TimelineSeries<'_>,
    hue: SeriesColor,
    [time, values]: [&Scale; 2],
) {
    let numbers = strip.values.numbers();
    let base = values.place(0.0);
    let mut path = format!("M{:.1} {base:.1}", time.place(0.0));
    for (place, value) in numbers.iter().enumerate() {
        let until = time.place(strip.step * (place + 1) as f64);
        let _ = write!(path, "V{:.2}H{until:.1}", values.place(*value));
    }
    let area = format!("{path}V{base:.1}Z");
    drawing.path(&format!("area {}", hue.class()), "", &area);
    let attributes = format!(
        " data-json=\"{}\"{} data-step=\"{}\" data-unit=\"{}\"",
        escaped(strip.values.pointer()),
        values.attributes(),
        strip.step,
        escaped(&strip.unit)
    );
    drawing.path(&format!("line {}", hue.class()), &attributes, &path);
}

/// The time axis, below its drawing.
pub(crate) fn times(drawing: &mut Drawing, time: &Scale, top: f64) {
    let [_, seconds] = time.values;
    let fits = |step: &&f64| seconds / **step <= MOST_TICKS;
    let step = STEPS.iter().find(fits).copied().unwrap_or(seconds.max(1.0));
    let mut at = 0.0;
    while at <= seconds * 1.000_1 {
        let x = time.place(at);
        drawing.line("axis", [x, top - 8.0], [x, top - 4.0]);
        let anchor = match x {
            x if x < LEFT + 8.0 => Anchor::Start,
            x if x > RIGHT - 14.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        drawing.text("tick", [x, top + 8.0], anchor, &tick("s", at));
        at += step;
    }
}

/// Drawings are as wide as a telephone, and stand side by side where there is room.
pub(crate) const WIDTH: f64 = 340.0;
pub(crate) const LEFT: f64 = 2.0;
pub(crate) const RIGHT: f64 = 338.0;
/// Of a strip: its title, its drawing, and both with a gap.
const HEAD: f64 = 20.0;
const PLOT: f64 = 48.0;
const EACH: f64 = 80.0;
/// The axis of time.
const FOOT: f64 = 22.0;
/// The names of parts, below it.
const NAMES: f64 = 15.0;
const MOST_TICKS: f64 = 5.0;
/// Seconds between two ticks.
const STEPS: [f64; 20] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1_200.0, 3_600.0, 7_200.0, 86_400.0,
];
