//! Figures as bars, with the figure at the end of each.

use super::figure::{attributes, show, tick};
use super::hue::SeriesColor;
use super::markup::{Anchor, Drawing, escaped, width};
use super::node::Node;
use super::scale::Scale;
use super::timeline::{LEFT, Limit, RIGHT, WIDTH};

/// A bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar<'d> {
    pub(crate) name: String,
    pub(crate) hue: SeriesColor,
    pub(crate) value: Node<'d>,
}

/// Bars of figures of this unit, the longest, or what none can exceed, as long as there is room.
pub(crate) fn bars(bars: &[Bar<'_>], unit: &str, limit: Option<&Limit<'_>>, title: &str) -> String {
    let value = |bar: &Bar<'_>| bar.value.number().unwrap_or_default();
    let bound = limit.and_then(|limit| limit.value.number()).unwrap_or_default();
    let most = bars.iter().map(value).fold(bound, f64::max);
    let room = bars.iter().map(|bar| width(&show(unit, value(bar)))).fold(0.0, f64::max) + 12.0;
    let scale = Scale::linear([0.0, most.max(f64::MIN_POSITIVE)], [LEFT, RIGHT - room]);
    let high = bars.len() as f64 * EACH + 4.0;
    let foot = if limit.is_some() { 16.0 } else { 0.0 };
    let mut drawing = Drawing::new("chart bars", [WIDTH, high + foot], title);
    if let Some(limit) = limit {
        let x = scale.place(bound);
        drawing.line("limit", [x, 16.0], [x, high]);
        let told = attributes(&limit.value);
        let text = format!("{}: <tspan{told}>{}</tspan>", escaped(&limit.name), tick(unit, bound));
        drawing.marked("bound", Anchor::End.at([RIGHT, high + 11.0]), "", &text);
    }
    for (place, bar) in bars.iter().enumerate() {
        let top = place as f64 * EACH;
        let until = scale.place(value(bar));
        drawing.text("name", [LEFT, top + 13.0], Anchor::Start, &bar.name);
        let attributes_of =
            format!(" data-json=\"{}\"{}", escaped(bar.value.pointer()), scale.attributes());
        let class = format!("bar {}", bar.hue.class());
        drawing.rect(&class, [LEFT, top + 19.0], [(until - LEFT).max(1.0), 15.0], &attributes_of);
        let text = escaped(&show(unit, value(bar)));
        // Before the end, where behind it the limit's line is.
        let is_at_limit = limit.is_some() && until + 7.0 + width(&text) > scale.place(bound);
        let (anchor, x) = match is_at_limit && until > scale.place(bound / 2.0) {
            true => (Anchor::End, until - 7.0),
            false => (Anchor::Start, until + 7.0),
        };
        let at = anchor.at([x, top + 31.0]);
        drawing.marked(bar.hue.class(), at, &attributes(&bar.value), &text);
    }
    drawing.finish()
}

const EACH: f64 = 44.0;
