//! Runs of a load, followed during the run, and their results for people and programs: for `load` and
//! `crr`, and in `lab`'s documents.

mod agreement;
mod control;
mod figures;
mod job;
pub(crate) mod json;
pub(crate) mod oha;
mod plan;
mod progress;
#[cfg_attr(not(feature = "tui"), path = "runs/no_screen.rs")]
mod screen;
mod summary;
mod url;

pub(crate) use control::LoadControl;
pub(crate) use figures::{Outcome, figure, figure_names, of_some};
pub(crate) use job::{LoadReporter, LocalServer, RunsJob};
pub(crate) use plan::{LoadRunPlan, work};
pub(crate) use screen::Screen;
pub(crate) use summary::{errors, hindrances, phases, runs, text};
pub(crate) use url::Url;
