//! Durations in each row of a case.

use super::distribution::{Curve, distribution};
use super::drawn::DrawnRow;
use super::figure::{attributes, figure, tick};
use super::markup::prose;
use super::node::Node;
use super::page::{captioned, part, side_by_side};

/// The most informative distribution.
pub(super) fn times<'d>(case: &Node<'d>, rows: &[DrawnRow<'d>]) -> String {
    let name = case.at("distribution").text();
    let curve = |drawn: &DrawnRow<'d>| {
        let of = drawn.row.at("distributions").find("name", name)?;
        let caption = format!("{}<br>{}", drawn.caption(), in_words(&of, name));
        Some((Curve { hue: drawn.hue, of }, caption))
    };
    let curves: Vec<_> = rows.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return String::new();
    }
    let steps = case.at("steps").items();
    let all: Vec<_> = curves.iter().map(|(curve, _)| curve.clone()).collect();
    let drawing = |(curve, caption): &(Curve<'_>, String)| {
        let title = format!("Share that took longer than a time: {name}");
        captioned(&distribution(std::slice::from_ref(curve), &all, &steps, &title), caption)
    };
    let drawings: Vec<_> = curves.iter().map(drawing).collect();
    let heading = match name {
        "opening" => "Connect times",
        _ => "Response times",
    };
    part(heading, &(format!("{READ}{}", named(&steps)) + &side_by_side(&drawings)))
}

/// Number of events, the slowest, and those still waiting.
fn in_words(of: &Node<'_>, name: &str) -> String {
    let done = if name == "opening" { "opened" } else { "were answered" };
    let count = of.at("count");
    let mut text = format!("{} {done}", figure(&count, "count"));
    if let Some(slowest) = of.at("classes").items().last() {
        text += &format!(", the slowest after {}", figure(&slowest.at("0"), "s"));
    }
    let waiting = of.at("still_waiting");
    if waiting.number().is_some_and(|count| count > 0.0) {
        let [waiting, longest] = [figure(&waiting, "count"), figure(&of.at("longest_wait"), "s")];
        text +=
            &format!("; {waiting} still waited at the end of the run, the longest for {longest}");
    }
    text
}

/// The times that stand out.
fn named(steps: &[Node<'_>]) -> String {
    let step = |step: &Node<'_>| {
        let at = step.at("at");
        let time = tick("s", at.number().unwrap_or_default());
        format!("<data{}>{time}</data>, {}", attributes(&at), prose(step.at("name").text()))
    };
    match steps {
        [] => String::new(),
        steps => format!(
            "<p>The dotted lines: {}.</p>\n",
            steps.iter().map(step).collect::<Vec<_>>().join("; ")
        ),
    }
}

const READ: &str = "<p>The height of the line at each time is the share that took longer. Both \
                    axes are logarithmic, so one in ten thousand is as visible as one in \
                    two.</p>\n";
