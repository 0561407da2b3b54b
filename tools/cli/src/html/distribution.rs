//! Distributions of times: the share of times above a value, both on logarithmic axes, so that one in
//! ten thousand is as visible as one in two.

use super::figure::tick;
use super::hue::SeriesColor;
use super::markup::{Anchor, Drawing, escaped, width};
use super::node::Node;
use super::scale::Scale;
use super::timeline::{LEFT, RIGHT, WIDTH};

/// One of the curves.
#[derive(Clone, Debug)]
pub(crate) struct Curve<'d> {
    pub(crate) hue: SeriesColor,
    /// Its part of a document: `classes` and `waiting`.
    pub(crate) of: Node<'d>,
}

/// The data of a curve.
struct Tail {
    /// Seconds, and the share of all that took longer.
    points: Vec<[f64; 2]>,
    /// Seconds of the longest wait at the end.
    waiting: Option<f64>,
}

/// The curves, with these steps named, on axes with room for all of `reference`.
pub(crate) fn distribution(
    curves: &[Curve<'_>],
    reference: &[Curve<'_>],
    steps: &[Node<'_>],
    title: &str,
) -> String {
    let tails: Vec<_> = reference.iter().map(|curve| Tail::of(&curve.of)).collect();
    let points = || tails.iter().flat_map(|tail| &tail.points);
    let longest =
        points().map(|[seconds, _]| *seconds).chain(tails.iter().filter_map(|it| it.waiting));
    let shortest = points().map(|[seconds, _]| *seconds).fold(f64::INFINITY, f64::min);
    let ends = [decade_below(shortest), decade_above(longest.fold(1e-6, f64::max))];
    let least = points().map(|[_, share]| *share).filter(|it| *it > 0.0).fold(0.1, f64::min);
    let time = Scale::log(ends, [X_LEFT, RIGHT]);
    let share = Scale::log([decade_below(least), 1.0], [BOTTOM, TOP]);
    let mut drawing = Drawing::new("chart distribution", [WIDTH, HEIGHT], title);
    axes(&mut drawing, shortest, [&time, &share]);
    name_steps(&mut drawing, steps, &time);
    for curve in curves {
        draw(&mut drawing, curve, &Tail::of(&curve.of), [&time, &share]);
    }
    drawing.finish()
}

impl Tail {
    fn of(node: &Node<'_>) -> Self {
        let classes: Vec<_> = node.at("classes").items().iter().map(Node::numbers).collect();
        let counted = |class: &Vec<f64>| class.get(1).copied().unwrap_or_default();
        let still = node.at("still_waiting").number().unwrap_or_default();
        let all = classes.iter().map(counted).sum::<f64>() + still;
        let mut left = all;
        let points = classes.iter().map(|class| {
            left -= counted(class);
            [class.first().copied().unwrap_or_default(), left / all.max(1.0)]
        });
        let points: Vec<_> = points.collect();
        let longest = points.last().map_or(0.0, |[seconds, _]| *seconds);
        // A wait shorter than the longest finished one adds nothing.
        let waiting = node.at("longest_wait").number().filter(|wait| *wait > longest);
        Self { points, waiting }
    }
}

fn axes(drawing: &mut Drawing, first: f64, [time, share]: [&Scale; 2]) {
    for value in share.decades() {
        let y = share.place(value);
        let one_in = match (1.0 / value).round() as u64 {
            1 => "all".to_owned(),
            many if many < 1_000_000 => format!("1 in {}", crate::quantity::thousands(many)),
            many => format!("1 in {} million", crate::quantity::thousands(many / 1_000_000)),
        };
        drawing.line("grid", [X_LEFT, y], [RIGHT, y]);
        drawing.text("tick", [X_LEFT - 5.0, y + 4.0], Anchor::End, &one_in);
    }
    drawing.line("axis", [X_LEFT, BOTTOM], [RIGHT, BOTTOM]);
    let mut taken: Vec<[f64; 2]> = Vec::new();
    // The first time at which anything ends has a label, whatever else has room for one.
    let decades = time.decades();
    let nearest = |value: &f64| (first / value).log10().abs();
    let first =
        decades.iter().copied().min_by(|one, other| nearest(one).total_cmp(&nearest(other)));
    for value in first.into_iter().chain(decades) {
        let (x, text) = (time.place(value), tick("s", value));
        drawing.line("axis", [x, BOTTOM], [x, BOTTOM + 4.0]);
        let from = (x - width(&text) / 2.0).min(RIGHT - width(&text));
        let until = from + width(&text);
        if taken.iter().all(|[begin, end]| until + 2.0 < *begin || from > *end + 2.0) {
            let anchor = if until > RIGHT - 4.0 { Anchor::End } else { Anchor::Middle };
            let x = if anchor == Anchor::End { RIGHT } else { x };
            drawing.text("tick", [x, BOTTOM + 17.0], anchor, &text);
            taken.push([from, until]);
        }
    }
    drawing.text("name", [LEFT, 12.0], Anchor::Start, "share that took longer than …");
}

/// A thin line at each step, and its time above, in as many rows as needed.
fn name_steps(drawing: &mut Drawing, steps: &[Node<'_>], time: &Scale) {
    let mut free = [f64::NEG_INFINITY; 3];
    for step in steps {
        let at = step.at("at");
        let Some(seconds) = at.number().filter(|it| *it <= time.values[1]) else { continue };
        let (x, text) = (time.place(seconds), tick("s", seconds));
        let from = (x - width(&text) / 2.0).min(RIGHT - width(&text));
        let Some(row) = free.iter().position(|free| from > *free) else { continue };
        free[row] = from + width(&text) + 3.0;
        let y = TOP - 6.0 - 12.0 * row as f64;
        drawing.line("step", [x, y + 2.0], [x, BOTTOM]);
        let attributes = super::figure::attributes(&at);
        drawing.marked("tick", Anchor::Start.at([from, y]), &attributes, &escaped(&text));
    }
}

fn draw(drawing: &mut Drawing, curve: &Curve<'_>, tail: &Tail, [time, share]: [&Scale; 2]) {
    let Some([first, _]) = tail.points.first() else { return };
    let mut path = format!("M{:.1} {TOP:.1}H{:.1}", time.place(0.0), time.place(*first));
    let mut last = [time.place(*first), TOP];
    for (place, [seconds, left]) in tail.points.iter().enumerate() {
        let next = tail.points.get(place + 1).map(|[seconds, _]| *seconds);
        let y = if *left > 0.0 { share.place(*left) } else { BOTTOM };
        let until = next.or(tail.waiting).map_or(time.place(*seconds), |next| time.place(next));
        path += &format!("V{y:.2}H{until:.1}");
        last = [until, y];
    }
    let attributes =
        format!(" data-json=\"{}\"{}", escaped(curve.of.pointer()), share.attributes());
    drawing.path(&format!("line tail {}", curve.hue.class()), &attributes, &path);
    if tail.waiting.is_some() {
        let class = format!("mark {}", curve.hue.class());
        drawing.text(&class, [last[0] - 4.0, last[1] - 6.0], Anchor::End, "still waiting ✕");
    }
}

fn decade_below(value: f64) -> f64 {
    if value.is_finite() { 10_f64.powf((value.log10() - 0.02).floor()) } else { 1e-6 }
}

fn decade_above(value: f64) -> f64 {
    10_f64.powf((value.log10() + 0.05).ceil())
}

const X_LEFT: f64 = 88.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 214.0;
const HEIGHT: f64 = 238.0;
