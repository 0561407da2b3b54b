//! The opening picture: what failed and what does not, of each case on a card.

use super::bars::{Bar, bars};
use super::figure::figure;
use super::hue::Hue;
use super::markup::escaped;
use super::node::Node;
use super::timeline::{Strip, most, timeline};

/// A card for each case.
pub(crate) fn cards(cases: &[Node<'_>]) -> String {
    let cards: String = cases.iter().map(card).collect();
    format!("<div class=\"cards\">\n{cards}</div>\n")
}

/// The rows of a case that are compared: where it fails, and the default, as far as they were run.
pub(crate) fn compared<'d>(case: &Node<'d>) -> Vec<(Hue, Node<'d>)> {
    let glance = case.at("glance");
    let row = |key: &str| {
        let place = glance.at(key).number()?;
        Some(case.at("rows").at(place as usize)).filter(|row| row.at("error").is_nothing())
    };
    let old = row("old").map(|row| (Hue::Old, row));
    old.into_iter().chain(row("default").map(|row| (Hue::Own, row))).collect()
}

fn card(case: &Node<'_>) -> String {
    let (glance, name) = (case.at("glance"), case.at("name").text());
    let rows = compared(case);
    let sides: Vec<_> =
        rows.iter().map(|(hue, row)| side(*hue, row, glance.at("figure").text())).collect();
    let pair = sides.join("<span class=\"to\" aria-hidden=\"true\">→</span>\n");
    format!(
        "<article class=\"card\">\n<h3>{}</h3>\n<div class=\"pair\">{pair}</div>\n<p class=\"what\">{}</p>\n{}\
         <p class=\"more\"><a href=\"#{}\">Why, and what cures it</a> <span class=\"soft\">({})</span></p>\n</article>\n",
        escaped(glance.at("title").text()),
        escaped(glance.at("what").text()),
        picture(case, &rows),
        escaped(name),
        escaped(name),
    )
}

fn side(hue: Hue, row: &Node<'_>, name: &str) -> String {
    let value = row.at("figures").at(name);
    let unit = value.at("unit").text();
    format!(
        "<div><div class=\"big {}-ink\"><span aria-hidden=\"true\">{}</span> {}</div><div class=\"who\">{}</div></div>\n",
        hue.class(),
        hue.mark(),
        figure(&value.at("value"), unit),
        escaped(row.at("profile").text())
    )
}

/// Both over time, or as bars.
fn picture<'d>(case: &Node<'d>, rows: &[(Hue, Node<'d>)]) -> String {
    let title = case.at("glance").at("title").text();
    match case.at("picture").at("series").text() {
        "" => {
            let name = case.at("glance").at("figure").text();
            let bar = |(hue, row): &(Hue, Node<'d>)| Bar {
                name: row.at("profile").text().into(),
                hue: *hue,
                value: row.at("figures").at(name).at("value"),
            };
            let unit =
                rows.first().map_or("", |(_, row)| row.at("figures").at(name).at("unit").text());
            bars(&rows.iter().map(bar).collect::<Vec<_>>(), unit, title)
        }
        name => {
            let found = |row: &Node<'d>| row.at("series").find("name", name);
            let all = rows.iter().filter_map(|(_, row)| Some(found(row)?.at("values")));
            let most = most(all);
            let drawn = rows.iter().filter_map(|(hue, row)| {
                let series = found(row)?;
                let strip = Strip {
                    title: format!("{}: {name}", row.at("profile").text()),
                    values: series.at("values"),
                    unit: series.at("unit").text().into(),
                    step: series.at("step").number().unwrap_or(1.0),
                    most,
                };
                Some(timeline(&[strip], *hue, title))
            });
            drawn.collect()
        }
    }
}
