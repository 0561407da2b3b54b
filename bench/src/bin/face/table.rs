//! Figures as a table in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::Failure;
use crate::measure::{Figures, Work};

/// All figures, of peers by their place.
pub(crate) struct Table {
    peers: Vec<&'static str>,
    figures: BTreeMap<(Work, usize), Vec<Figures>>,
}

/// A row: what it says of figures, and in which direction it is better.
type Reading = fn(&Figures, usize) -> f64;

impl Table {
    /// Of these peers, the first of which ratios are to.
    pub(crate) fn new(peers: Vec<&'static str>) -> Self {
        Self { peers, figures: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, work: Work, peer: usize, figures: Figures) {
        self.figures.entry((work, peer)).or_default().push(figures);
    }

    /// A column for each peer, a row for each figure.
    pub(crate) fn markdown(
        &self,
        command: &str,
        rounds: usize,
        length: Duration,
    ) -> Result<String, Failure> {
        let mut text = format!(
            "{}; `{command}`. Medians of {rounds} rounds of {} s in turns, the least and the most, and \
             ratios to the first column.\n\n",
            machine()?,
            length.as_secs_f64(),
        );
        writeln!(text, "| | {} |", self.peers.join(" | "))?;
        writeln!(text, "|---|{}", "---|".repeat(self.peers.len()))?;
        for (_, work) in Work::ALL {
            for (title, reading) in rows(work) {
                let cells: Vec<_> =
                    (0..self.peers.len()).map(|peer| self.cell(work, peer, reading)).collect();
                writeln!(text, "| {title} | {} |", cells.join(" | "))?;
            }
        }
        Ok(text)
    }

    fn cell(&self, work: Work, peer: usize, reading: Reading) -> String {
        let Some([least, median, most]) = self.spread(work, peer, reading) else {
            return "-".to_owned();
        };
        let mut text = format!("{} ({}-{})", short(median), short(least), short(most));
        if peer > 0
            && let Some([_, first, _]) = self.spread(work, 0, reading)
        {
            text += &format!(", {}x", short(median / first));
        }
        text
    }

    fn spread(&self, work: Work, peer: usize, reading: Reading) -> Option<[f64; 3]> {
        let figures = self.figures.get(&(work, peer))?;
        let mut values: Vec<_> = figures.iter().map(|it| reading(it, work.at_once())).collect();
        values.sort_by(f64::total_cmp);
        Some([*values.first()?, *values.get(values.len() / 2)?, *values.last()?])
    }
}

fn rows(work: Work) -> Vec<(String, Reading)> {
    let of_each = |name: &str, each: &str| -> Vec<(String, Reading)> {
        vec![
            (format!("{name}, us"), Figures::micros),
            (format!("us of processors {each}"), |it, _| it.cpu_micros()),
            (format!("context switches {each}"), |it, _| it.switches()),
        ]
    };
    match work {
        Work::Echo(count) => of_each(&format!("echo, {count} at a time"), "an echo"),
        Work::Short(count) => {
            of_each(&format!("short connection, {count} at a time"), "a connection")
        }
        Work::Stream => vec![
            ("one stream, Gb/s".to_owned(), |it, _| it.gigabits()),
            ("s of processors a GB".to_owned(), |it, _| it.cpu_micros() * 1e3),
            ("context switches a MB".to_owned(), |it, _| it.switches() * 1e6),
        ],
    }
}

/// `page` with another table between its marks.
pub(crate) fn replace(page: &str, table: &str) -> Result<String, Failure> {
    let (begin, end) = ("<!-- face: begin -->\n", "<!-- face: end -->");
    let around = page.split_once(begin).zip(page.split_once(end));
    let ((before, _), (_, after)) = around.ok_or("the page has no marks of face")?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// A value with three significant figures, for a cell of the table.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn machine() -> Result<String, Failure> {
    let processors = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = processors.lines().find_map(|line| line.strip_prefix("model name\t: "));
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let count = std::thread::available_parallelism()?;
    Ok(format!("{}, {count} processors, load {load}", model.unwrap_or("an unknown processor")))
}
