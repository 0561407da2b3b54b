//! Status of an RFC, in numbers.

use std::fmt;

use super::{Requirement, Status};

/// Number of requirements of one table by status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    table: String,
    by_status: [usize; 4],
    /// Of those that are open, how many an RFC insists on.
    musts_open: usize,
}

impl Counts {
    pub(super) fn of(file: &str, requirements: &[Requirement]) -> Self {
        let name = file.rsplit('/').next().unwrap_or(file);
        let count = |status| requirements.iter().filter(|it| it.status == status).count();
        let is_open_must = |it: &&Requirement| it.status == Status::Open && it.level.is_must();
        Self {
            table: name.trim_end_matches(".toml").to_owned(),
            by_status: STATUSES.map(count),
            musts_open: requirements.iter().filter(is_open_must).count(),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [done, deviation, open, not_applicable] = self.by_status;
        let total: usize = self.by_status.iter().sum();
        write!(
            f,
            "RFC {}: {total} requirements, {done} done, {deviation} deviations, {open} open \
             ({} MUST), {not_applicable} n/a",
            self.table, self.musts_open
        )
    }
}

const STATUSES: [Status; 4] =
    [Status::Done, Status::Deviation, Status::Open, Status::NotApplicable];
