//! The page of `sim grid` and `sim paths`: each measurement as a cell, with its figure.

use super::figure::{attributes, figure};
use super::markup::{Anchor, Drawing, escaped};
use super::node::Node;
use super::page::{captioned, page as whole, section};
use super::table::{Cell, table};
use super::timeline::WIDTH;

/// The page of `whimbrel.grid/1` and of `whimbrel.paths/1`.
pub(crate) fn page(root: &Node<'_>) -> String {
    let lines = root.at("lines").items();
    let is_grid = root.at("schema").text() == "whimbrel.grid/1";
    let summary = root.at("summary");
    let met = format!(
        "<p class=\"lead\">{} of {} goals met. {}</p>\n",
        figure(&summary.at("met"), "count"),
        figure(&summary.at("goals"), "count"),
        if is_grid { GRID } else { PATHS }
    );
    let mut sections = Vec::new();
    if is_grid {
        sections.push(section("map", "Share of a path that one flow uses", &maps(&lines)));
    }
    sections.push(section("all", "Every measurement", &all(&lines)));
    let title =
        if is_grid { "Share of a path that one flow uses" } else { "Paths and their goals" };
    whole(title, &met, &sections, root.at("tool").text(), root.at("command").text())
}

/// A map for each algorithm: rates across, round trips down.
fn maps(lines: &[Node<'_>]) -> String {
    let parts = |place: usize| {
        let mut parts: Vec<&str> = Vec::new();
        for line in lines {
            let part = line.at("name").text().split('/').nth(place).unwrap_or_default();
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    };
    let [rates, trips, algorithms] = [parts(0), parts(1), parts(2)];
    let map = |algorithm: &&str| {
        let size = [WIDTH, HEAD + trips.len() as f64 * CELL + 4.0];
        let mut drawing =
            Drawing::new("chart heat", size, format!("{algorithm}: percent of each path"));
        let wide = (WIDTH - LEFT) / rates.len().max(1) as f64;
        drawing.text("tick", [LEFT - 8.0, HEAD - 8.0], Anchor::End, "round trip");
        for (column, rate) in rates.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * wide;
            drawing.text("name", [x, HEAD - 8.0], Anchor::Middle, &format!("{rate}b/s"));
        }
        for (row, trip) in trips.iter().enumerate() {
            let y = HEAD + row as f64 * CELL;
            drawing.text("name", [LEFT - 8.0, y + 19.0], Anchor::End, trip);
            for (column, rate) in rates.iter().enumerate() {
                let found = lines
                    .iter()
                    .find(|it| it.at("name").text() == format!("{rate}/{trip}/{algorithm}"));
                cell(&mut drawing, found, [LEFT + column as f64 * wide, y], wide);
            }
        }
        captioned(
            &drawing.finish(),
            &format!("<b>{}</b>, percent of the path's rate", escaped(algorithm)),
        )
    };
    let maps: Vec<_> = algorithms.iter().map(map).collect();
    super::page::side_by_side(&maps)
}

fn cell(drawing: &mut Drawing, line: Option<&Node<'_>>, [x, y]: [f64; 2], wide: f64) {
    let value = line.map(|line| line.at("value")).filter(|it| it.number().is_some());
    let is_met = line.is_some_and(|line| line.at("is_met").is_true());
    let class = match (&value, is_met) {
        (None, _) => "none",
        (Some(_), true) => "good",
        (Some(_), false) => "bad",
    };
    drawing.rect(class, [x + 1.0, y + 1.0], [wide - 2.0, CELL - 2.0], "");
    if let Some(value) = value {
        let mark = if is_met { "" } else { "✕ " };
        let text = format!("{mark}{:.1}", value.number().unwrap_or_default());
        let class = if is_met { "cell" } else { "cell old" };
        drawing.marked(
            class,
            Anchor::Middle.at([x + wide / 2.0, y + 19.0]),
            &attributes(&value),
            &text,
        );
    }
}

fn all(lines: &[Node<'_>]) -> String {
    let row = |line: &Node<'_>| {
        let is_met = line.at("is_met").is_true();
        let goal = line.at("goal").entries();
        let goal = goal.first().map(|(kind, value)| {
            let sign = match *kind {
                "at_least" => "at least",
                "at_most" => "at most",
                _ => "about",
            };
            format!("{sign} {}", figure(value, "plain"))
        });
        let unit = line.at("unit").text();
        let mark = match is_met {
            _ if goal.is_none() => "",
            true => "✓ ",
            false => "✕ ",
        };
        let name = format!("{mark}{}", line.at("name").text());
        let cells = vec![
            Cell::marked(format!(
                "{}<small>{}</small>",
                escaped(&name),
                escaped(line.at("what").text())
            )),
            Cell::figure(&line.at("value"), unit),
            Cell::marked(goal.unwrap_or_default()),
            Cell::figure(&line.at("sent_again"), "count"),
            Cell::figure(&line.at("timeouts"), "count"),
            Cell::figure(&line.at("queue_drops"), "count"),
            Cell::words(line.at("limit").at("by").text()),
        ];
        (None, cells)
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    table(
        &[
            "measurement",
            "reached",
            "goal",
            "sent again",
            "time-outs",
            "lost in the queue",
            "waits for",
        ],
        &rows,
    )
}

const GRID: &str = "Each cell is one transfer between two hosts with default settings in virtual \
                    time, after slow start: green reaches its goal, red with a cross misses it.";
const PATHS: &str = "Each path joins two hosts in virtual time.";
const LEFT: f64 = 76.0;
const HEAD: f64 = 28.0;
const CELL: f64 = 30.0;
