//! The settings of each profile: first those that decide the case.

use super::drawn::DrawnRow;
use super::hue::SeriesColor;
use super::markup::{escaped, prose};
use super::node::Node;
use super::page::part;
use super::table::{Cell, table};

/// Settings of each row that differ from the default.
pub(super) fn rules(rows: &[DrawnRow<'_>]) -> String {
    let mut text = String::new();
    for drawn in rows {
        let changes = drawn.row.at("changes").items();
        let is_deciding = |change: &Node<'_>| change.at("decides").is_true();
        let (deciding, other): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_deciding);
        let (deciding, other) =
            (folded("Rules that decide this case", &deciding), folded("Other rules", &other));
        let nothing = match (drawn.hue, deciding.is_empty() && other.is_empty()) {
            (_, false) => "",
            (SeriesColor::Own, true) => ": none, these are its defaults",
            (_, true) => ": nothing",
        };
        text += &format!("<p>{}{nothing}</p>\n{deciding}{other}", drawn.caption());
    }
    part("How each differs from Whimbrel", &text)
}

/// A table of changes that can be opened.
fn folded(summary: &str, changes: &[Node<'_>]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let row = |change: &Node<'_>| {
        let code = |key: &str| format!("<code>{}</code>", escaped(change.at(key).text()));
        let cell = |key: &str| Cell::marked(code(key));
        let about = format!(
            "{} <span class=\"soft\">Source: {}</span>",
            prose(change.at("help").text()),
            escaped(change.at("source").text())
        );
        (None, vec![cell("name"), cell("value"), cell("default"), Cell::marked(about)])
    };
    let rows: Vec<_> = changes.iter().map(row).collect();
    let table = table(&["rule", "here", "Whimbrel", "what it is"], &rows);
    format!("<details><summary>{summary}</summary>\n{table}</details>\n")
}
