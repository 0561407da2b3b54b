//! Rates as a table in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::{Buffer, Case, Copies, Link, Measured, Outside, Stamps, VARIANTS};
use crate::Failure;
use crate::report::{date, machine};

/// Results of all rounds.
pub(crate) struct Comparison {
    pub(super) rounds: u32,
    pub(super) measure: Duration,
    /// The peers that are programs of their own, as far as they could be had.
    pub(super) outside: Vec<Outside>,
    /// A measurement a round, by case and peer.
    pub(super) rates: BTreeMap<(Case, &'static str), Vec<Measured>>,
}

/// The median of several measurements, and the range in which they lie.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Comparison {
    /// A row for each number of flows, link and size of buffers.
    pub(crate) fn markdown(&self, command: &str) -> Result<String, Failure> {
        let mut text = String::new();
        let (rounds, millis) = (self.rounds, self.measure.as_millis());
        writeln!(text, "{}; {}; `{command}`.", machine()?, date()?)?;
        writeln!(
            text,
            "Gigabits of text a second of the processor: medians of {rounds} rounds of {millis} ms, with \
             the least and the most; then how many times smoltcp's rate (s) and the loop's (l) that is, in \
             the same case, as the median of what each round says. The last columns are the others' own, by reference and without timestamps. Faults: \
             page faults a frame with text, the worst of the row. {}\n",
            self.notes()
        )?;
        write!(
            text,
            "| flows, link, buffers | by reference | without timestamps | copied | copied, without \
             timestamps | faults | smoltcp | loop |"
        )?;
        self.outside.iter().try_for_each(|peer| write!(text, " {} |", peer.name))?;
        writeln!(text, "\n|---|---|---|---|---|---|---|---|{}", "---|".repeat(self.outside.len()))?;
        for row in Case::all().step_by(VARIANTS.len()) {
            self.write_row(row, &mut text)?;
        }
        writeln!(text, "\n{}", self.totals())?;
        Ok(text)
    }

    fn write_row(&self, row: Case, text: &mut String) -> Result<(), Failure> {
        let cases = VARIANTS.map(|(copies, stamps)| Case { copies, stamps, ..row });
        let plain = plain_case(row);
        let link = match row.link {
            Link::Mtu(mtu) => format!("MTU {mtu}"),
            Link::Super => "super-segments".to_owned(),
        };
        write!(text, "| {}, {link}, {}", row.flows, row.buffer.name())?;
        for case in cases {
            let Spread { median, least, most } = self.spread(case, "whimbrel");
            write!(text, " | {median:.1} ({least:.1}-{most:.1})")?;
            for (peer, letter) in [("smoltcp", 's'), ("loop", 'l')] {
                let ratio = median_ratio(self.rates(case, "whimbrel"), self.rates(case, peer));
                write!(text, ", {ratio:.2} {letter}")?;
            }
        }
        let ours = cases.iter().filter_map(|case| self.rates.get(&(*case, "whimbrel")));
        let faults = ours.flatten().map(|it| it.faults).fold(0.0, f64::max);
        let [smoltcp, plain] = ["smoltcp", "loop"].map(|peer| self.spread(plain, peer).median);
        write!(text, " | {faults:.3} | {smoltcp:.1} | {plain:.1} |")?;
        for peer in &self.outside {
            let Spread { median, least, most } = self.spread(plain_case(row), peer.name);
            write!(text, " {median:.1} ({least:.1}-{most:.1}) |")?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// Differences in the work of separate programs.
    fn notes(&self) -> String {
        let notes = self.outside.iter().map(|peer| match peer.name {
            "lwip" => format!(
                "lwip {}: one stack is both hosts; a packet is copied where it crosses the wire, and handed to its \
                 reader without a copy; without timestamps; 1 MiB for auto.",
                peer.version
            ),
            _ => format!(
                "gvisor {}: on one processor, time is real; it copies what is written; with timestamps; its \
                 super-segments are of 32 KiB.",
                peer.version
            ),
        });
        notes.collect::<Vec<_>>().join(" ")
    }

    /// Totals over all variants of a row.
    fn totals(&self) -> String {
        let ours = |case| self.rates(case, "whimbrel");
        let ratio = |case: Case, peer| median_ratio(ours(case), self.rates(case, peer));
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let one = || Case::all().filter(|case| case.flows == 1);
        let narrow = |case: &Case| case.link == Link::Mtu(1_500) && case.buffer != Buffer::Auto;
        let of_smoltcp = least(&mut one().filter(narrow).map(|case| ratio(case, "smoltcp")));
        let supers = one().filter(|case| case.link == Link::Super);
        let of_loop = least(&mut supers.map(|case| ratio(case, "loop")));
        let small = one().filter(|case| case.buffer == Buffer::Small);
        let grown = |case| median_ratio(ours(Case { buffer: Buffer::Large, ..case }), ours(case));
        let grown = least(&mut small.map(grown));
        let many = |case| median_ratio(ours(Case { flows: 100, ..case }), ours(case));
        let [lent, copied] = [Copies::None, Copies::Both]
            .map(|copies| least(&mut one().filter(|case| case.copies == copies).map(many)));
        format!(
            "The least: MTU 1500, 64 KiB and 1 MiB, one flow {of_smoltcp:.2} times smoltcp; \
             super-segments, one flow, {of_loop:.2} times the loop; buffers of 1 MiB {grown:.2} times those \
             of 64 KiB; 100 flows {lent:.2} times one by reference, {copied:.2} times copied."
        )
    }

    /// Rate of each round.
    fn rates(&self, case: Case, peer: &'static str) -> impl Iterator<Item = f64> {
        let cell = self.rates.get(&(case.of(peer), peer));
        cell.into_iter().flatten().map(|it| it.rate)
    }

    fn spread(&self, case: Case, peer: &'static str) -> Spread {
        Spread::of(self.rates(case, peer))
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(values.len() / 2),
            least: at(0),
            most: at(values.len().saturating_sub(1)),
        }
    }
}

/// Median ratio of our rates to the others': a machine slowed by other guests slows both of a round.
fn median_ratio(ours: impl Iterator<Item = f64>, others: impl Iterator<Item = f64>) -> f64 {
    Spread::of(ours.zip(others).map(|(ours, other)| ours / other)).median
}

/// By reference and without timestamps.
fn plain_case(row: Case) -> Case {
    Case { stamps: Stamps::Off, ..row }
}
