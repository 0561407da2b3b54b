//! The lab: documented TCP failures, reproduced on this stack with the settings of the affected
//! stack, and then with its own.
//!
//! A case is data: measurements, profiles, and bounds for each figure. A verdict only compares
//! figures with bounds. With a changed profile or value there are no bounds except those that the
//! user gives.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::time::Duration;

use whimbrel_apps::load::Finished;
use whimbrel_base::Instant;
use whimbrel_sim::path::GoOn;
use whimbrel_tcp::{Counters, Tunables};

pub use ablation::{AblatedSetting, ablate, only};
pub use cases::CASES;
pub use distribution::Distribution;
pub use evidence::{Evidence, EvidenceKind, SeenPacket};
pub use hosts::Side;
pub use packet_verdict::PacketVerdict;
pub use plan::{PlanError, Selection, plan};
pub use value::{Parameter, Unit, Values};

mod ablation;
mod cases;
mod distribution;
mod evidence;
mod hosts;
mod load;
mod packet_verdict;
mod plan;
mod value;
mod words;

/// A case, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, in a line.
    pub about: &'static str,
    /// Advice for users with this failure.
    pub advice: Advice,
    /// Symptoms, workaround and cause as reported.
    pub story: &'static str,
    /// Parameters in addition to the rules of the stack.
    pub parameters: &'static [Parameter],
    /// Measurements by default.
    pub rows: &'static [Row],
    /// Tunables that decide it, by field, in groups: it fails with an old value, and works with
    /// another.
    pub tunables: &'static [&'static [&'static str]],
    /// Rows of the ablation: short, and with bounds that say when it still fails. Empty if no value
    /// of a profile makes it fail.
    pub ablation: &'static [Row],
    /// Figures with a column in the table.
    pub columns: &'static [Column],
    /// Descriptions of other figures with bounds.
    pub terms: &'static [(&'static str, &'static str)],
    /// Picture of each row.
    pub picture: Picture,
    /// Series drawn one below the other, with a description of each.
    pub strips: &'static [TimelineSeries],
    /// Summary for a reader in a hurry.
    pub glance: CaseSummary,
    /// Most telling distribution of a row.
    pub distribution: Option<&'static str>,
    /// Remarkable times in the distribution, seconds, and their causes.
    pub steps: &'static [(f64, &'static str)],
    measure: Measure,
}

/// Summary of a case for a reader who does not know it.
#[derive(Clone, Copy, Debug)]
pub struct CaseSummary {
    /// The failure, in a few words.
    pub title: &'static str,
    /// Cause, in a sentence that begins with "because".
    pub because: &'static str,
    /// Behaviour of the default, in a sentence that begins with its name.
    pub cure: &'static str,
    /// Cause and cure, in self-contained words.
    pub why: &'static str,
    /// Figure of the summary.
    pub figure: &'static str,
    /// Unit of the figure, after a number.
    pub what: &'static str,
    /// Rows to compare: the failure, and the default.
    pub rows: [usize; 2],
    /// Rows drawn as bars, if those are others.
    pub bars: &'static [usize],
    /// Upper bound of the figure, and what sets it.
    pub limit: Option<(f64, &'static str)>,
}

/// Advice for users with this failure, a few lines each.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Symptoms by which to recognise the failure.
    pub symptom: &'static str,
    /// Change to make now.
    pub today: &'static str,
    /// Price of that change.
    pub price: &'static str,
    /// Difference with this stack.
    pub whimbrel: &'static str,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name of the figure.
    pub figure: &'static str,
    /// Heading, short enough for a terminal.
    pub head: &'static str,
    /// Description.
    pub about: &'static str,
}

/// A series that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TimelineSeries {
    /// Name of the series.
    pub series: &'static str,
    /// Title.
    pub title: &'static str,
    /// Description of the picture.
    pub says: &'static str,
    /// Figure that it cannot exceed, and its description.
    pub limit: Option<(&'static str, &'static str)>,
}

/// Picture of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picture {
    /// The series of this name, over time.
    Line(&'static str),
    /// The figure of this name, as a bar.
    Bar(&'static str),
}

/// Way to measure a row.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// In virtual time.
    Virtual(fn(&Setup, GoOn<'_>) -> Result<Measured, String>),
    /// On real threads, by a caller that has some. Rounds whose rates differ by more than `most_spread`,
    /// percent of their median, measured a busy machine.
    OnThreads { most_spread: f64 },
}

/// Measurement: a profile, changes of it or of the case, and the expected result.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The profile under test.
    pub profile: &'static str,
    /// Names of parameters of the case or of tunables, with values, as typed.
    pub settings: &'static [(&'static str, &'static str)],
    /// Failure or cure.
    pub role: Role,
    /// Bounds of its figures.
    pub bounds: &'static [Bound],
}

/// Purpose of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Shows the reported failure.
    Report,
    /// Shows that the reported workaround improved it.
    Better,
    /// Shows that the reported workaround cured it, or that it had not begun.
    Works,
    /// Shows what follows from the cause, without a measurement in the report.
    Inferred,
    /// Shows that this stack's own rules do not fail.
    Cure,
    /// Shows if it still fails with other values than the profile's.
    Trial,
    /// The user gives the expected figure.
    Expectation,
}

/// Bounds of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// Name of the figure.
    pub figure: &'static str,
    /// Lower bound.
    pub least: f64,
    /// Upper bound.
    pub most: f64,
}

/// One measurement, ready to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its case.
    pub case: &'static Case,
    /// The profile under test.
    pub profile: &'static str,
    /// Changes, as typed.
    pub settings: Vec<(String, String)>,
    /// Resulting rules.
    pub rules: Tunables,
    /// Parameters of the case's applications and of the path.
    pub values: Values,
    /// Seed of keys and chance.
    pub seed: u64,
    /// Failure or cure, if that is known.
    pub role: Option<Role>,
    /// Bounds of its figures, if known.
    pub bounds: Vec<Bound>,
    /// Profile value set back to the default, if there is one.
    pub back: Option<AblatedSetting>,
    /// Profile values that alone are not at the default, of [`only`].
    pub kept: Vec<AblatedSetting>,
}

/// Results of a measurement.
#[derive(Clone, Default, Debug)]
pub struct Measured {
    /// All figures for bounds and tables.
    pub figures: Vec<Figure>,
    /// Additional notes, in sentences.
    pub notes: Vec<String>,
    /// Series over virtual time.
    pub series: Vec<Series>,
    /// Distributions of durations.
    pub distributions: Vec<Distribution>,
    /// Runs of a load, in order.
    pub runs: Vec<Finished>,
    /// State of both hosts each second.
    pub moments: Vec<Moment>,
    /// Counters of the stacks: the client's and the server's, or the sender's.
    pub counters: Vec<Counters>,
    /// Start and name of each part.
    pub marks: Vec<(Duration, String)>,
    /// Evidence of the failure.
    pub evidence: Option<Evidence>,
}

/// A measured figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Name in documents, and in bounds.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// The value.
    pub value: f64,
}

/// Values at equal distances of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Name with the unit, as in `req/s`.
    pub name: &'static str,
    /// Unit of a value.
    pub unit: Unit,
    /// Interval between values.
    pub step: Duration,
    /// Values, the first one of the first step.
    pub values: Vec<f64>,
}

/// State of both hosts of a load at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Time.
    pub at: Instant,
    /// Requests answered so far.
    pub answered: u64,
    /// Records in TIME-WAIT of the client and of the server.
    pub time_wait: [u64; 2],
    /// Ports of the client in use, with those in TIME-WAIT.
    pub ports_in_use: u64,
    /// SYNs that the client has retransmitted so far.
    pub syns_repeated: u64,
    /// Segments that either has retransmitted so far, with SYNs.
    pub repeated: u64,
}

/// Verdict on a row's figures.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It failed as reported.
    Reproduced,
    /// It does what follows from the cause; no report measured it.
    AsInferred,
    /// It does not fail.
    Cured,
    /// It still fails with other values than the profile's.
    StillFails,
    /// It does not fail any more with other values than the profile's.
    FailsNoMore,
    /// Within the bounds that the user gave.
    AsExpected,
    /// Figures are out of their bounds.
    Wrong(Vec<Miss>),
    /// The machine was busy: rounds differ by so many percent, more than the case allows.
    NotMeasured {
        /// The difference.
        spread: f64,
        /// The largest that the case allows.
        most: f64,
    },
    /// Without bounds.
    Open,
}

/// A figure that is out of its bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Miss {
    /// The bound.
    pub bound: Bound,
    /// The value; `None` if it was not measured.
    pub value: Option<f64>,
}

impl Case {
    /// The case of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        CASES.into_iter().find(|case| case.name == name)
    }

    /// True if the tunable of this field decides the case.
    pub fn turns_on(&self, field: &str) -> bool {
        self.tunables.iter().any(|group| group.contains(&field))
    }

    /// Figures of its table and of its rows' bounds, each once.
    pub fn figures(&self) -> BTreeSet<&'static str> {
        let bounds = self.rows.iter().flat_map(|row| row.bounds).map(|bound| bound.figure);
        self.columns.iter().map(|column| column.figure).chain(bounds).collect()
    }
}

impl Setup {
    /// True if it is measured on real threads, in real time, which is not done here.
    pub const fn is_on_threads(&self) -> bool {
        matches!(self.case.measure, Measure::OnThreads { .. })
    }

    /// Runs the measurement while `go_on` is true. An error gives the reason of a failure.
    pub fn measure(&self, go_on: GoOn<'_>) -> Result<Measured, String> {
        match self.case.measure {
            Measure::Virtual(measure) => measure(self, go_on),
            Measure::OnThreads { .. } => Err("it is measured on real threads".into()),
        }
    }

    /// Sets a parameter of the case.
    pub fn set(&mut self, parameter: &str, value: f64) {
        self.values.set(parameter, value);
    }

    /// Replaces the case's bound of a figure. Returns `None` if the case has no such figure.
    pub fn expect(&mut self, figure: &str, least: f64, most: f64) -> Option<()> {
        let figure = *self.case.figures().get(figure)?;
        if self.role != Some(Role::Expectation) {
            (self.role, self.bounds) = (Some(Role::Expectation), Vec::new());
        }
        self.bounds.push(Bound { figure, least, most });
        Some(())
    }

    /// Compares the figures with their bounds.
    pub fn judge(&self, measured: &Measured) -> Verdict {
        let spread = measured.figure("spread");
        if let (Measure::OnThreads { most_spread: most }, Some(spread)) =
            (&self.case.measure, spread)
            && spread > *most
        {
            return Verdict::NotMeasured { spread, most: *most };
        }
        let Some(role) = self.role else { return Verdict::Open };
        let miss = |bound: &Bound| {
            let value = measured.figure(bound.figure);
            let holds = value.is_some_and(|value| (bound.least..=bound.most).contains(&value));
            (!holds).then_some(Miss { bound: *bound, value })
        };
        let misses: Vec<_> = self.bounds.iter().filter_map(miss).collect();
        match role {
            Role::Trial if misses.is_empty() => Verdict::StillFails,
            Role::Trial => Verdict::FailsNoMore,
            _ if !misses.is_empty() => Verdict::Wrong(misses),
            Role::Report | Role::Better | Role::Works => Verdict::Reproduced,
            Role::Inferred => Verdict::AsInferred,
            Role::Cure => Verdict::Cured,
            Role::Expectation => Verdict::AsExpected,
        }
    }
}

impl Measured {
    /// Value of the figure of this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// Adds a figure.
    pub fn add(&mut self, name: &'static str, unit: Unit, value: f64) {
        self.figures.push(Figure { name, unit, value });
    }
}

/// Column of a figure.
const fn column(figure: &'static str, head: &'static str, about: &'static str) -> Column {
    Column { figure, head, about }
}

/// Series without a bound.
const fn strip(series: &'static str, title: &'static str, says: &'static str) -> TimelineSeries {
    TimelineSeries { series, title, says, limit: None }
}

/// Lower bound of a figure.
pub const fn at_least(figure: &'static str, least: f64) -> Bound {
    Bound { figure, least, most: f64::INFINITY }
}

/// Lower and upper bound of a figure.
pub const fn within(figure: &'static str, least: f64, most: f64) -> Bound {
    Bound { figure, least, most }
}

/// Exact value.
const fn exactly(figure: &'static str, value: f64) -> Bound {
    Bound { figure, least: value, most: value }
}

#[cfg(test)]
mod tests;
