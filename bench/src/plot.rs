//! Microseconds a connection against the number in TIME-WAIT, as SVG: both axes logarithmic, a line
//! for each peer.

use std::fmt::Write;

use crate::Failure;
use crate::case::Kind;
use crate::compare::{Comparison, ComparisonPlan};
use crate::report::grouped;

/// The drawing.
pub(crate) fn svg(plan: &ComparisonPlan, comparison: &Comparison) -> Result<String, Failure> {
    let lines = lines(plan, comparison);
    let values = || lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let most = values().fold(10.0_f64, f64::max).log10().ceil();
    let least = values().fold(1.0_f64, f64::min).log10().floor();
    let axes = Axes { least, most };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    axes.draw(&mut text)?;
    let mut labels = Vec::new();
    for (line, colour) in lines.iter().zip(COLOURS) {
        let points: Vec<_> = line.points.iter().map(|it| (axes.x(it.0), axes.y(it.1))).collect();
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let path = path.join(" ");
        writeln!(
            text,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        )?;
        for (x, y) in &points {
            writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>")?;
        }
        if let Some(&(x, y)) = points.last() {
            labels.push(Label { x, y, text: line.title, colour });
        }
    }
    for Label { x, y, text: title, colour } in apart(labels) {
        writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" font-weight=\"bold\">{title}</text>",
            x + 9.0,
            y + 4.5
        )?;
    }
    text += "</svg>\n";
    Ok(text)
}

/// A peer, and microseconds by the number in TIME-WAIT that was reached.
struct Line {
    title: &'static str,
    points: Vec<(u64, f64)>,
}

fn lines(plan: &ComparisonPlan, comparison: &Comparison) -> Vec<Line> {
    let line = |peer: &'static crate::peers::Peer| Line {
        title: peer.title,
        points: plan
            .cases
            .iter()
            .filter(|case| case.kind == Kind::Churn)
            .filter_map(|case| {
                let figures = comparison.figures(*case, peer.name)?;
                let reached = if case.scale == 0 { 0 } else { figures.scale };
                Some((reached, figures.median))
            })
            .collect(),
    };
    comparison.peers.iter().map(|ready| line(ready.peer)).collect()
}

struct Label {
    x: f64,
    y: f64,
    text: &'static str,
    colour: &'static str,
}

/// Labels whose lines end near each other are moved apart.
fn apart(mut labels: Vec<Label>) -> Vec<Label> {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    for index in 1..labels.len() {
        let above: Vec<_> = labels[..index].iter().map(|it| (it.x, it.y)).collect();
        let label = &mut labels[index];
        for (x, y) in above {
            if (label.x - x).abs() < 110.0 && label.y - y < 15.0 {
                label.y = y + 15.0;
            }
        }
    }
    labels
}

/// Decades of microseconds; those of records are given.
struct Axes {
    least: f64,
    most: f64,
}

impl Axes {
    /// None has a place of its own, left of 1,000.
    fn x(&self, waiting: u64) -> f64 {
        let decade = if waiting == 0 { 0.0 } else { (waiting as f64).log10().max(2.2) - 2.0 };
        LEFT + decade * (RIGHT - LEFT) / 5.0
    }

    fn y(&self, micros: f64) -> f64 {
        BOTTOM - (micros.log10() - self.least) * (BOTTOM - TOP) / (self.most - self.least)
    }

    fn draw(&self, text: &mut String) -> Result<(), Failure> {
        writeln!(
            text,
            "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">CPU time of a short \
             connection, both ends, us</text>"
        )?;
        for waiting in [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
            let x = self.x(waiting);
            let name = if waiting == 0 { "none".to_owned() } else { grouped(waiting) };
            writeln!(
                text,
                "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                BOTTOM + 20.0
            )?;
        }
        let middle = (LEFT + RIGHT) / 2.0;
        writeln!(
            text,
            "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">connections in TIME-WAIT at the \
             server</text>",
            BOTTOM + 42.0
        )?;
        for decade in self.least as i32..=self.most as i32 {
            let micros = 10_f64.powi(decade);
            let y = self.y(micros);
            let name = if decade < 0 { micros.to_string() } else { grouped(micros as u64) };
            writeln!(
                text,
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                LEFT - 8.0,
                y + 4.5
            )?;
        }
        Ok(())
    }
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 670.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 400.0;
/// Told apart by most eyes (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#d55e00", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#555555", "#56b4e9"];
