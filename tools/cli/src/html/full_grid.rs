//! The page of `sim grid --full`: a map of each figure for each loss and algorithm, rates across, round
//! trips and queues down.

use super::figure::{attributes, figure};
use super::markup::{Anchor, Drawing, escaped};
use super::node::Node;
use super::page::{captioned, page as whole, section, side_by_side};
use super::table::{Cell, table};
use super::timeline::WIDTH;

/// A figure of all cells.
struct Measure {
    id: &'static str,
    heading: &'static str,
    text: &'static str,
    /// Keys that lead to it in a cell.
    keys: &'static [&'static str],
    unit: &'static str,
    /// Values at which the next colour begins, from the best to the worst.
    bounds: [f64; 4],
}

/// The page of `whimbrel.full-grid/1`.
pub(crate) fn page(root: &Node<'_>) -> String {
    let cells = root.at("lines").items();
    let lead = format!(
        "<p class=\"lead\">{} cells. {LEAD}</p>\n",
        figure(&root.at("summary").at("cells"), "count")
    );
    let mut sections: Vec<_> = MEASURES
        .iter()
        .map(|measure| section(measure.id, measure.heading, &measure.maps(&cells)))
        .collect();
    sections.push(section("all", "Every cell", &all(&cells)));
    whole(TITLE, &lead, &sections, root.at("tool").text(), root.at("command").text())
}

impl Measure {
    /// A map for each loss and algorithm: those of one loss are side by side.
    fn maps(&self, cells: &[Node<'_>]) -> String {
        let [losses, algorithms] = [2, 4].map(|place| parts(cells, place));
        let of = |loss: &&str| {
            let of = |algorithm: &&str| self.map(cells, loss, algorithm);
            algorithms.iter().filter_map(of).collect::<Vec<_>>()
        };
        let maps: Vec<_> = losses.iter().flat_map(of).collect();
        format!("<p>{}</p>\n{}", escaped(self.text), side_by_side(&maps))
    }

    fn map(&self, cells: &[Node<'_>], loss: &str, algorithm: &str) -> Option<String> {
        let is_here = |cell: &&Node<'_>| {
            let parts: Vec<_> = name(cell).split('/').collect();
            parts.get(2) == Some(&loss) && parts.get(4) == Some(&algorithm)
        };
        let cells: Vec<_> = cells.iter().filter(is_here).cloned().collect();
        if cells.is_empty() {
            return None;
        }
        let [rates, trips, queues] = [0, 1, 3].map(|place| parts(&cells, place));
        let rows: Vec<_> =
            trips.iter().flat_map(|trip| queues.iter().map(move |queue| (*trip, *queue))).collect();
        let size = [WIDTH, HEAD + rows.len() as f64 * HIGH + 4.0];
        let title = format!("{}: {algorithm}, loss {loss}", self.heading);
        let mut drawing = Drawing::new("chart heat", size, title);
        let wide = (WIDTH - LEFT) / rates.len() as f64;
        for (column, rate) in rates.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * wide;
            drawing.text("name", [x, HEAD - 7.0], Anchor::Middle, &format!("{rate}b/s"));
        }
        for (row, (trip, queue)) in rows.iter().enumerate() {
            let y = HEAD + row as f64 * HIGH;
            if queues.first() == Some(queue) {
                drawing.text("name", [0.0, y + BASE], Anchor::Start, trip);
            }
            drawing.text("tick", [LEFT - 6.0, y + BASE], Anchor::End, queue);
            for (column, rate) in rates.iter().enumerate() {
                let wanted = format!("{rate}/{trip}/{loss}/{queue}/{algorithm}");
                let found = cells.iter().find(|cell| name(cell) == wanted);
                self.cell(&mut drawing, found, [LEFT + column as f64 * wide, y], wide);
            }
        }
        let caption = format!("<b>{}</b>, loss {}", escaped(algorithm), escaped(loss));
        Some(captioned(&drawing.finish(), &caption))
    }

    fn cell(&self, drawing: &mut Drawing, cell: Option<&Node<'_>>, [x, y]: [f64; 2], wide: f64) {
        let value = cell.map(|cell| self.value(cell)).filter(|value| value.number().is_some());
        let class = match value.as_ref().and_then(Node::number) {
            None => "none",
            Some(value) => CLASSES[self.grade(value)],
        };
        drawing.rect(class, [x + 0.5, y + 0.5], [wide - 1.0, HIGH - 1.0], "");
        if let Some(value) = value {
            let text = self.show(value.number().unwrap_or_default());
            let point = Anchor::Middle.at([x + wide / 2.0, y + BASE]);
            drawing.marked("packet", point, &attributes(&value), &text);
        }
    }

    fn value<'d>(&self, cell: &Node<'d>) -> Node<'d> {
        self.keys.iter().fold(cell.clone(), |at, key| at.at(key))
    }

    /// Number of bounds that a value is worse than.
    fn grade(&self, value: f64) -> usize {
        let [first, .., last] = self.bounds;
        let is_worse = |bound: &&f64| if first > last { value < **bound } else { value > **bound };
        self.bounds.iter().filter(is_worse).count()
    }

    /// A figure without its unit where the text says that; a time with it.
    fn show(&self, value: f64) -> String {
        match self.unit {
            "s" => super::figure::time(value),
            _ if value >= 9.95 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}

/// The parts of all names at this place, in order.
fn parts<'d>(cells: &[Node<'d>], place: usize) -> Vec<&'d str> {
    let mut parts = Vec::new();
    for part in cells.iter().filter_map(|cell| name(cell).split('/').nth(place)) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

fn name<'d>(cell: &Node<'d>) -> &'d str {
    cell.at("name").text()
}

fn all(cells: &[Node<'_>]) -> String {
    let row = |cell: &Node<'_>| {
        let limit = cell.at("limit");
        let waits_for = match limit.at("by").text() {
            "" => String::new(),
            by => format!("{} {}", escaped(by), figure(&limit.at("percent"), "percent")),
        };
        let wait = cell.at("wait");
        let cells = vec![
            Cell::words(&format!("{} {}", name(cell), cell.at("error").text())),
            Cell::figure(&cell.at("used"), "percent"),
            Cell::figure(&wait.at("mean"), "s"),
            Cell::figure(&wait.at("p99"), "s"),
            Cell::figure(&cell.at("sent_again"), "percent"),
            Cell::figure(&cell.at("timeouts"), "count"),
            Cell::marked(waits_for),
        ];
        (None, cells)
    };
    let rows: Vec<_> = cells.iter().map(row).collect();
    let heads =
        ["cell", "used", "mean wait", "p99 of waits", "sent again", "time-outs", "waits for"];
    table(&heads, &rows)
}

const MEASURES: [Measure; 4] = [
    Measure {
        id: "used",
        heading: "Share of the rate that is used",
        text: "Acknowledged data, in percent of the rate less headers.",
        keys: &["used"],
        unit: "percent",
        bounds: [95.0, 85.0, 60.0, 30.0],
    },
    Measure {
        id: "wait",
        heading: "Mean wait in the queue",
        text: "Mean time between the arrival of a packet at the queue and its first bit on the line.",
        keys: &["wait", "mean"],
        unit: "s",
        bounds: [0.005, 0.02, 0.1, 0.5],
    },
    Measure {
        id: "p99",
        heading: "Longest waits",
        text: "Time in the queue that 99 of 100 packets did not exceed.",
        keys: &["wait", "p99"],
        unit: "s",
        bounds: [0.005, 0.02, 0.1, 0.5],
    },
    Measure {
        id: "again",
        heading: "Segments sent again",
        text: "Percentage of all segments, with those of slow start.",
        keys: &["sent_again"],
        unit: "percent",
        bounds: [0.1, 0.5, 1.5, 5.0],
    },
];
/// Colours, from the best to the worst.
const CLASSES: [&str; 5] = ["grade a", "grade b", "grade c", "grade d", "grade e"];
const TITLE: &str = "One flow over many paths";
const LEAD: &str = "Each cell is one flow between two hosts in virtual time, after slow start. In a \
                    map, rates are across; round trips, each with its queues in bandwidth-delay \
                    products (bdp), are down. A darker cell is worse.";
const LEFT: f64 = 106.0;
const HEAD: f64 = 24.0;
const HIGH: f64 = 18.0;
/// From the top of a cell to the base line of its text.
const BASE: f64 = 13.0;
