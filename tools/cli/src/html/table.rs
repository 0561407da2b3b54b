//! Tables.

use super::figure::figure;
use super::hue::SeriesColor;
use super::markup::escaped;
use super::node::Node;

/// A cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    class: &'static str,
    text: String,
}

impl Cell {
    /// Words.
    pub(crate) fn words(text: &str) -> Self {
        Self { class: "", text: escaped(text) }
    }

    /// Markup.
    pub(crate) const fn marked(text: String) -> Self {
        Self { class: "wide", text }
    }

    /// A figure of the document.
    pub(crate) fn figure(node: &Node<'_>, unit: &str) -> Self {
        Self { class: "n", text: figure(node, unit) }
    }
}

/// A table with these headings; on a telephone each row is a separate block.
pub(crate) fn table(heads: &[&str], rows: &[(Option<SeriesColor>, Vec<Cell>)]) -> String {
    let is_number = |column: usize| {
        rows.first().and_then(|(_, cells)| cells.get(column)).is_some_and(|cell| cell.class == "n")
    };
    let head = |(column, head): (usize, &&str)| {
        let class = if is_number(column) { " class=\"n\"" } else { "" };
        format!("<th{class}>{}</th>", escaped(head))
    };
    let heading: String = heads.iter().enumerate().map(head).collect();
    let row = |(hue, cells): &(Option<SeriesColor>, Vec<Cell>)| {
        let class = hue.map_or("", SeriesColor::class);
        let cell = |(column, cell): (usize, &Cell)| {
            let head = escaped(heads.get(column).copied().unwrap_or_default());
            format!("<td class=\"{}\" data-head=\"{head}\">{}</td>", cell.class, cell.text)
        };
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<tr class=\"{class}\">{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table \
         class=\"stack\">\n<thead><tr>{heading}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}
