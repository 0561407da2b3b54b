//! The lab: cases of TCP failing people, reproduced from their mechanism on this stack with the rules of
//! the stack that it happened to, and the same with this stack's own rules.
//!
//! A case is data: what is measured under which profiles, and within which bounds each figure has to be.
//! A verdict compares figures with bounds and does nothing else; where somebody changes a profile or a
//! value, there are no bounds but those that are asked for, and figures speak for themselves.
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
    /// As it is typed.
    pub name: &'static str,
    /// What is run, in a line.
    pub about: &'static str,
    /// What whoever has it today needs to know.
    pub advice: Advice,
    /// What people saw, what they did, and what was really wrong.
    pub story: &'static str,
    /// What can be varied beside the rules of the stack.
    pub parameters: &'static [Parameter],
    /// What is measured if nobody asks for anything else.
    pub rows: &'static [Row],
    /// The tunables that decide it, by field, in groups: with an old value it fails, with another it does not.
    pub tunables: &'static [&'static [&'static str]],
    /// What its values are switched back in, one after the other: short, and with bounds that say when it
    /// still fails. Empty where no value of a profile makes it.
    pub ablation: &'static [Row],
    /// The figures that a table has a column for.
    pub columns: &'static [Column],
    /// What other figures are that bounds are about.
    pub terms: &'static [(&'static str, &'static str)],
    /// What is drawn of each row.
    pub picture: Picture,
    /// The series that are drawn one below the other, and what is to be seen in each.
    pub strips: &'static [TimelineSeries],
    /// What somebody sees of it who has a minute.
    pub glance: CaseSummary,
    /// The distribution that tells most, of those that rows have.
    pub distribution: Option<&'static str>,
    /// Times that stand out in how long things took, seconds, and what they are.
    pub steps: &'static [(f64, &'static str)],
    measure: Measure,
}

/// What somebody sees of a case who has a minute, and never heard of it.
#[derive(Clone, Copy, Debug)]
pub struct CaseSummary {
    /// What went wrong, in a few words.
    pub title: &'static str,
    /// Why, in a sentence that begins with "because".
    pub because: &'static str,
    /// What the default does instead, in a sentence that begins with its name.
    pub cure: &'static str,
    /// Why, and what cures it, in words that need no other.
    pub why: &'static str,
    /// The figure that says it.
    pub figure: &'static str,
    /// What that is, behind a number.
    pub what: &'static str,
    /// The rows that it is compared of: where it fails, and the default.
    pub rows: [usize; 2],
    /// The rows that are drawn as bars, if those are others.
    pub bars: &'static [usize],
    /// What the figure could be at most, and what sets that bound.
    pub limit: Option<(f64, &'static str)>,
}

/// What somebody needs who has a case today, a few lines each.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// How to see that it is this.
    pub symptom: &'static str,
    /// What to change now.
    pub today: &'static str,
    /// What that costs.
    pub price: &'static str,
    /// What is otherwise with this stack.
    pub whimbrel: &'static str,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The figure's name.
    pub figure: &'static str,
    /// Its heading, in as few letters as a terminal has room for.
    pub head: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// A series that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TimelineSeries {
    /// The name of the series.
    pub series: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What is to be seen in it.
    pub says: &'static str,
    /// The figure that it cannot exceed, and what that is.
    pub limit: Option<(&'static str, &'static str)>,
}

/// What is drawn of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picture {
    /// The series of this name, over time.
    Line(&'static str),
    /// The figure of this name, as a bar.
    Bar(&'static str),
}

/// How a row is measured.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// In virtual time.
    Virtual(fn(&Setup, GoOn<'_>) -> Result<Measured, String>),
    /// On real threads, by whoever has some.
    OnThreads,
}

/// What is measured: a profile, what is changed of it or of the case, and what is to come of it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The profile under test.
    pub profile: &'static str,
    /// Names of parameters of the case, or of tunables, and values, as they are typed.
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether it is to fail as it did, or to be cured.
    pub role: Role,
    /// Within which its figures are.
    pub bounds: &'static [Bound],
}

/// What a row is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It shows what people saw.
    Report,
    /// It shows that it was less with what they changed.
    Better,
    /// It shows that it was over with what they changed, or had not begun.
    Works,
    /// It shows that this stack's own rules do not have it.
    Cure,
    /// It shows whether it still fails with other values than the profile's.
    Trial,
    /// Somebody says what is to come of it.
    Expectation,
}

/// Between which values a figure has to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// The figure's name.
    pub figure: &'static str,
    /// The least that it may be.
    pub least: f64,
    /// The most that it may be.
    pub most: f64,
}

/// One measurement, ready to be made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The case that it is of.
    pub case: &'static Case,
    /// The profile under test.
    pub profile: &'static str,
    /// What is changed, as it was typed.
    pub settings: Vec<(String, String)>,
    /// The rules that come of both.
    pub rules: Tunables,
    /// What is asked of the case's applications and of the path.
    pub values: Values,
    /// What keys and chance come from.
    pub seed: u64,
    /// Whether it is to fail or to be cured, where that is known.
    pub role: Option<Role>,
    /// Within which its figures are, where that is known.
    pub bounds: Vec<Bound>,
    /// The value of the profile that is back at the default, if one is.
    pub back: Option<AblatedSetting>,
    /// The values of the profile that alone are not at the default, of [`only`].
    pub kept: Vec<AblatedSetting>,
}

/// What was measured.
#[derive(Clone, Default, Debug)]
pub struct Measured {
    /// Everything that bounds and tables can be about.
    pub figures: Vec<Figure>,
    /// What there is to say beside, in sentences.
    pub notes: Vec<String>,
    /// How it went over virtual time.
    pub series: Vec<Series>,
    /// How long things took.
    pub distributions: Vec<Distribution>,
    /// The runs of a load, one after the other.
    pub runs: Vec<Finished>,
    /// A look at both hosts each second.
    pub moments: Vec<Moment>,
    /// What the stacks counted: the client's and the server's, or the sender's.
    pub counters: Vec<Counters>,
    /// When each part of it began, and what it is called.
    pub marks: Vec<(Duration, String)>,
    /// A connection that shows it.
    pub evidence: Option<Evidence>,
}

/// Something measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Its name in documents, and in bounds.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The value.
    pub value: f64,
}

/// Values at equal distances of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What they count, as in `req/s`.
    pub name: &'static str,
    /// What a value counts.
    pub unit: Unit,
    /// How far they are apart.
    pub step: Duration,
    /// The values, the first one of the first step.
    pub values: Vec<f64>,
}

/// Both hosts of a load at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When that is.
    pub at: Instant,
    /// Requests that the server has answered so far.
    pub answered: u64,
    /// Records in TIME-WAIT of the client and of the server.
    pub time_wait: [u64; 2],
    /// Ports that the client uses, those of TIME-WAIT included.
    pub ports_in_use: u64,
    /// SYNs that the client has sent again so far.
    pub syns_repeated: u64,
    /// Segments that either has sent again so far, SYNs included.
    pub repeated: u64,
}

/// What a row's figures say.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It failed as it did for those who reported it.
    Reproduced,
    /// It does not fail.
    Cured,
    /// With other values than the profile's it fails all the same.
    StillFails,
    /// With other values than the profile's it does not fail.
    FailsNoMore,
    /// It came out as somebody said.
    AsExpected,
    /// Figures are not where they have to be.
    Wrong(Vec<Miss>),
    /// Nobody said beforehand what they have to be.
    Open,
}

/// A figure that is out of its bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Miss {
    /// Where it has to be.
    pub bound: Bound,
    /// What it is; `None` if it was not measured.
    pub value: Option<f64>,
}

impl Case {
    /// The case of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        CASES.into_iter().find(|case| case.name == name)
    }

    /// True if the tunable of this field decides it.
    pub fn turns_on(&self, field: &str) -> bool {
        self.tunables.iter().any(|group| group.contains(&field))
    }

    /// The figures that its table and the bounds of its rows are about, each once.
    pub fn figures(&self) -> BTreeSet<&'static str> {
        let bounds = self.rows.iter().flat_map(|row| row.bounds).map(|bound| bound.figure);
        self.columns.iter().map(|column| column.figure).chain(bounds).collect()
    }
}

impl Setup {
    /// True if it is measured on real threads, in real time: not here.
    pub const fn is_on_threads(&self) -> bool {
        matches!(self.case.measure, Measure::OnThreads)
    }

    /// Measures, as long as `go_on` says so. An error says why that cannot be done.
    pub fn measure(&self, go_on: GoOn<'_>) -> Result<Measured, String> {
        match self.case.measure {
            Measure::Virtual(measure) => measure(self, go_on),
            Measure::OnThreads => Err("it is measured on real threads".into()),
        }
    }

    /// Sets a parameter of the case, whatever was asked for.
    pub fn set(&mut self, parameter: &str, value: f64) {
        self.values.set(parameter, value);
    }

    /// What is to come of it, instead of what the case says. `None` if the case has no such figure.
    pub fn expect(&mut self, figure: &str, least: f64, most: f64) -> Option<()> {
        let figure = *self.case.figures().get(figure)?;
        if self.role != Some(Role::Expectation) {
            (self.role, self.bounds) = (Some(Role::Expectation), Vec::new());
        }
        self.bounds.push(Bound { figure, least, most });
        Some(())
    }

    /// What the figures say.
    pub fn judge(&self, measured: &Measured) -> Verdict {
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
            Role::Cure => Verdict::Cured,
            Role::Expectation => Verdict::AsExpected,
        }
    }
}

impl Measured {
    /// The value of the figure of this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// A figure more.
    pub fn add(&mut self, name: &'static str, unit: Unit, value: f64) {
        self.figures.push(Figure { name, unit, value });
    }
}

/// A column of this figure.
const fn column(figure: &'static str, head: &'static str, about: &'static str) -> Column {
    Column { figure, head, about }
}

/// A series that has no bound.
const fn strip(series: &'static str, title: &'static str, says: &'static str) -> TimelineSeries {
    TimelineSeries { series, title, says, limit: None }
}

/// At least so much.
const fn at_least(figure: &'static str, least: f64) -> Bound {
    Bound { figure, least, most: f64::INFINITY }
}

/// From so much to so much.
const fn within(figure: &'static str, least: f64, most: f64) -> Bound {
    Bound { figure, least, most }
}

/// Exactly that.
const fn exactly(figure: &'static str, value: f64) -> Bound {
    Bound { figure, least: value, most: value }
}

#[cfg(test)]
mod tests;
