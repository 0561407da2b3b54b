//! The opening picture: a card for each case, with the failing and the working figure.

use super::bars::{Bar, bars};
use super::drawn::{compared, hue as hue_of};
use super::figure::figure;
use super::hue::SeriesColor;
use super::markup::{escaped, prose};
use super::node::Node;
use super::timeline::{Limit, TimelineSeries, most, timeline};

/// A card for each case.
pub(crate) fn cards(cases: &[Node<'_>]) -> String {
    // The title of a single case is that of the page.
    let heading = |case: &Node<'_>| match cases.len() {
        1 => String::new(),
        _ => format!("<h3>{}</h3>\n", escaped(case.at("glance").at("title").text())),
    };
    let cards: String = cases.iter().map(|case| card(case, &heading(case))).collect();
    format!("<div class=\"cards\">\n{cards}</div>\n")
}

fn card(case: &Node<'_>, heading: &str) -> String {
    let (glance, name) = (case.at("glance"), case.at("name").text());
    let rows = compared(case);
    let sides: Vec<_> =
        rows.iter().map(|(hue, row)| side(*hue, row, glance.at("figure").text())).collect();
    let pair = sides.join("<span class=\"to\" aria-hidden=\"true\">→</span>\n");
    format!(
        "<article class=\"card\">\n{heading}<div class=\"pair\">{pair}</div>\n<p \
         class=\"what\">{}</p>\n\
         <p class=\"because\">{}</p>\n<p class=\"because\">{}</p>\n{}\
         <p class=\"more\"><a href=\"#{}\">Cause and cure</a> <span \
         class=\"soft\">({})</span></p>\n</article>\n",
        escaped(glance.at("what").text()),
        prose(glance.at("because").text()),
        prose(glance.at("cure").text()),
        picture(case, &rows),
        escaped(name),
        escaped(name),
    )
}

fn side(hue: SeriesColor, row: &Node<'_>, name: &str) -> String {
    let value = row.at("figures").at(name);
    let unit = value.at("unit").text();
    format!(
        "<div><div class=\"big {}-ink\"><span aria-hidden=\"true\">{}</span> {}</div><div \
         class=\"who\">rules of {}</div></div>\n",
        hue.class(),
        hue.mark(),
        figure(&value.at("value"), unit),
        escaped(row.at("profile").text())
    )
}

/// Both over time, or as bars.
fn picture<'d>(case: &Node<'d>, rows: &[(SeriesColor, Node<'d>)]) -> String {
    let title = case.at("glance").at("title").text();
    match case.at("picture").at("series").text() {
        "" => as_bars(case, rows, title),
        name => {
            let found = |row: &Node<'d>| row.at("series").find("name", name);
            let all = rows.iter().filter_map(|(_, row)| Some(found(row)?.at("values")));
            let most = most(all);
            let drawn = rows.iter().filter_map(|(hue, row)| {
                let series = found(row)?;
                let strip = TimelineSeries {
                    title: format!("{}: {name}", row.at("profile").text()),
                    values: series.at("values"),
                    unit: series.at("unit").text().into(),
                    step: series.at("step").number().unwrap_or(1.0),
                    most,
                    limit: None,
                };
                Some(timeline(&[strip], &row.at("marks").items(), *hue, title))
            });
            drawn.collect()
        }
    }
}

/// The figure of both as bars, or of those rows that the case would have drawn.
fn as_bars<'d>(case: &Node<'d>, rows: &[(SeriesColor, Node<'d>)], title: &str) -> String {
    let glance = case.at("glance");
    let name = glance.at("figure").text();
    let drawn: Vec<_> = glance.at("bars").numbers();
    let value = |row: &Node<'d>| row.at("figures").at(name).at("value");
    let bar = |name: &str, hue: SeriesColor, row: &Node<'d>| Bar {
        name: name.into(),
        hue,
        value: value(row),
    };
    let own = drawn.iter().map(|place| case.at("rows").at(*place as usize));
    let own: Vec<_> =
        own.map(|row| bar(row.at("label").text(), hue_of(&row, case), &row)).collect();
    let all: Vec<_> = match own.len() > rows.len() {
        true => own,
        false => rows.iter().map(|(hue, row)| bar(row.at("profile").text(), *hue, row)).collect(),
    };
    let unit = rows.first().map_or("", |(_, row)| row.at("figures").at(name).at("unit").text());
    let limit = glance.at("limit");
    let bound = Limit { name: limit.at("name").text().into(), value: limit.at("value") };
    bars(&all, unit, (!limit.is_nothing()).then_some(&bound), title)
}
