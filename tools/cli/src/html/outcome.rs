//! The result of a case: each row with its figures and its verdict, and the conditions of verdicts.

use super::drawn::{hue, whose};
use super::figure::figure;
use super::hue::SeriesColor;
use super::markup::{escaped, prose};
use super::node::Node;
use super::page::part;
use super::table::{Cell, table};

/// Every row, with its figures and its verdict.
pub(super) fn figures(case: &Node<'_>) -> String {
    let columns = case.at("columns").items();
    let mut heads = vec!["rules"];
    heads.extend(columns.iter().map(|column| column.at("about").text()));
    heads.push("verdict");
    let on_card = ["old", "default"].map(|key| case.at("glance").at(key).number());
    let row = |(place, row): (usize, &Node<'_>)| {
        let hue = hue(row, case);
        let card = if on_card.contains(&Some(place as f64)) { ", on the card" } else { "" };
        let label = format!("{} {}{card}", hue.mark(), row.at("label").text());
        let mut cells = vec![Cell::words(&label)];
        cells.extend(columns.iter().map(|column| {
            let value = row.at("figures").at(column.at("figure").text());
            Cell::figure(&value.at("value"), value.at("unit").text())
        }));
        cells.push(Cell::words(verdict(row)));
        (Some(hue), cells)
    };
    let all = case.at("rows").items();
    let rows: Vec<_> = all.iter().enumerate().map(row).collect();
    let notes: String = all.iter().map(notes).collect();
    part("Results", &(key(case, &all) + &table(&heads, &rows) + &notes + &bounds(case)))
}

/// Legend of the rows' colours.
fn key(case: &Node<'_>, rows: &[Node<'_>]) -> String {
    let item = |own: SeriesColor| {
        let row = rows.iter().find(|row| hue(row, case) == own)?;
        let whose = if own == SeriesColor::Own { "Whimbrel" } else { whose(own, row) };
        Some(format!("<li class=\"{}-ink\">{} {whose}</li>", own.class(), own.mark()))
    };
    let items =
        [SeriesColor::Old, SeriesColor::Own, SeriesColor::Other].into_iter().filter_map(item);
    format!("<ul class=\"key\">{}</ul>\n", items.collect::<String>())
}

/// The verdict: fails or not, and if that is the reported result.
fn verdict(row: &Node<'_>) -> &'static str {
    match (row.at("verdict").text(), row.at("role").text()) {
        ("reproduced", "report") => "fails, as reported",
        ("reproduced", "better") => "better, as reported",
        ("reproduced", _) => "works, as reported",
        ("cured", _) => "does not fail",
        ("as inferred", _) => "as inferred, not reported",
        ("as expected", _) => "as expected",
        ("wrong", _) => "not as expected",
        ("not measured", _) => "not measured: this machine was busy",
        _ => "–",
    }
}

fn notes(row: &Node<'_>) -> String {
    let label = escaped(row.at("label").text());
    let errors = [row.at("error")].into_iter().filter(|it| !it.is_nothing());
    let notes = row.at("notes").items().into_iter().chain(errors);
    notes
        .map(|note| format!("<p class=\"soft\"><b>{label}</b>: {}</p>\n", prose(note.text())))
        .collect()
}

/// Between which values the figures of each row have to be for its verdict.
fn bounds(case: &Node<'_>) -> String {
    let of_row = |row: &Node<'_>| {
        let bounds = row.at("bounds").items();
        let bounds: Vec<_> = bounds.iter().map(|bound| bound_in_words(case, row, bound)).collect();
        let label = escaped(row.at("label").text());
        (!bounds.is_empty()).then(|| format!("<li><b>{label}</b>: {}</li>\n", bounds.join("; ")))
    };
    let all: String = case.at("rows").items().iter().filter_map(of_row).collect();
    match all.as_str() {
        "" => all,
        all => format!(
            "<details><summary>Conditions of the verdicts</summary>\n<ul>\n{all}</ul></details>\n"
        ),
    }
}

/// A bound, in words.
fn bound_in_words(case: &Node<'_>, row: &Node<'_>, bound: &Node<'_>) -> String {
    let name = bound.at("figure").text();
    let (about, unit) = (case.at("terms").at(name), row.at("figures").at(name).at("unit"));
    let about = if about.text().is_empty() { name } else { about.text() };
    let [least, most] = ["least", "most"].map(|key| bound.at(key));
    let show = |end: &Node<'_>| figure(end, unit.text());
    let between = match (least.number(), most.number()) {
        (Some(one), Some(other)) if one == other => show(&least),
        (Some(_), None) => format!("at least {}", show(&least)),
        (None, _) => format!("at most {}", show(&most)),
        (Some(_), Some(_)) => format!("{} to {}", show(&least), show(&most)),
    };
    format!("{} {between}", escaped(about))
}
