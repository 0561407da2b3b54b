//! How long things took, of each row of a case.

use super::distribution::{Curve, distribution};
use super::drawn::DrawnRow;
use super::figure::{attributes, figure, tick};
use super::markup::prose;
use super::node::Node;
use super::page::{beside, captioned, part};

/// The distribution that tells most.
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
        let title = format!("How many of all took longer than a time: {name}");
        captioned(&distribution(std::slice::from_ref(curve), &all, &steps, &title), caption)
    };
    let drawings: Vec<_> = curves.iter().map(drawing).collect();
    let heading = match name {
        "opening" => "How long connections took to open",
        _ => "How long responses took",
    };
    part(heading, &(format!("{READ}{}", named(&steps)) + &beside(&drawings)))
}

/// How many there were, the slowest, and who was left waiting.
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
            &format!("; {waiting} still waited when their run ended, the longest for {longest}");
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

const READ: &str = "<p>The line falls where something ends: at each time it is as high as the share of all that took longer. Both axes \
grow tenfold from mark to mark, so that one in ten thousand is seen as well as one in two.</p>\n";
