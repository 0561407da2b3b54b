//! Which rows of a case are drawn, and whose they are.

use super::hue::SeriesColor;
use super::markup::escaped;
use super::node::Node;

/// A row that is drawn, and whose it is.
pub(crate) struct DrawnRow<'d> {
    pub(crate) hue: SeriesColor,
    pub(crate) row: Node<'d>,
}

impl DrawnRow<'_> {
    pub(crate) fn caption(&self) -> String {
        format!(
            "<span class=\"{}-ink\" aria-hidden=\"true\">{}</span> <b>{}</b> <span \
             class=\"soft\">{}</span>",
            self.hue.class(),
            self.hue.mark(),
            escaped(self.row.at("label").text()),
            whose(self.hue, &self.row)
        )
    }
}

/// A row of each profile: where it fails, the default, and what people changed.
pub(crate) fn drawn_rows<'d>(case: &Node<'d>) -> Vec<DrawnRow<'d>> {
    let chosen = compared(case);
    let mut drawn: Vec<DrawnRow<'d>> = Vec::new();
    for row in case.at("rows").items() {
        let profile = row.at("profile").text();
        let is_known = drawn.iter().any(|it| it.row.at("profile").text() == profile);
        if is_known || !row.at("error").is_nothing() {
            continue;
        }
        let own = chosen.iter().find(|(_, it)| it.at("profile").text() == profile);
        let row = own.map_or(row, |(_, it)| it.clone());
        drawn.push(DrawnRow { hue: hue(&row, case), row });
    }
    // Failing rows stand next to the default.
    drawn.sort_by_key(|it| it.hue);
    drawn
}

/// Colour of a row. That of a failure is only for rows that fail.
pub(crate) fn hue(row: &Node<'_>, case: &Node<'_>) -> SeriesColor {
    let old = case.at("glance").at("old").number();
    let failing = old.map(|place| case.at("rows").at(place as usize).at("profile").text());
    let works = matches!(row.at("role").text(), "works" | "inferred");
    match row.at("profile").text() {
        DEFAULT => SeriesColor::Own,
        profile if Some(profile) == failing && !works => SeriesColor::Old,
        _ => SeriesColor::Other,
    }
}

/// Words for a colour.
pub(crate) fn whose(hue: SeriesColor, row: &Node<'_>) -> &'static str {
    match (hue, row.at("role").text()) {
        (SeriesColor::Other, "better" | "works" | "inferred") => "people's workaround",
        _ => hue.word(),
    }
}

/// The rows of a case that are compared: where it fails, and the default, as far as they were run.
pub(crate) fn compared<'d>(case: &Node<'d>) -> Vec<(SeriesColor, Node<'d>)> {
    let glance = case.at("glance");
    let row = |key: &str| {
        let place = glance.at(key).number()?;
        Some(case.at("rows").at(place as usize)).filter(|row| row.at("error").is_nothing())
    };
    let old = row("old").map(|row| (SeriesColor::Old, row));
    old.into_iter().chain(row("default").map(|row| (SeriesColor::Own, row))).collect()
}

const DEFAULT: &str = "whimbrel";
