//! Selects the measurements.

use std::collections::BTreeSet;

use whimbrel_base::tunables::{TunableError, names_like};
use whimbrel_stack::Profile;
use whimbrel_tcp::{TUNABLES, Tunables};

use super::{Case, Row, Setup, Values};

/// Selection of a case's measurements.
#[derive(Clone, Default, Debug)]
pub struct Selection {
    /// Profiles instead of the case's own.
    pub profiles: Vec<&'static Profile>,
    /// Keys with their values, instead of those of the rows.
    pub vary: Vec<(String, Vec<String>)>,
    /// Seeds: each row runs with each.
    pub seeds: Vec<u64>,
}

/// Error of a selection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A key that is neither a parameter of the case nor a tunable.
    #[error(
        "{case} has no {key:?}{}: give one of {parameters}, or a tunable (-S help lists \
             them)",
        perhaps(near)
    )]
    UnknownKey {
        /// The key, as typed.
        key: String,
        /// The name of the case.
        case: &'static str,
        /// The names of its parameters.
        parameters: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A value outside of its key's range.
    #[error("{0}")]
    BadValue(String),
    /// Contradictory rules.
    #[error("{profile}: {error}")]
    Contradiction {
        /// The changed profile.
        profile: &'static str,
        /// The contradiction.
        error: String,
    },
}

fn perhaps(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" (perhaps {})", near.join(", or ")) }
}

/// Measurements of `selection`, in order of the report.
pub fn plan(case: &'static Case, selection: &Selection) -> Result<Vec<Setup>, PlanError> {
    let mut setups: Vec<Setup> = Vec::new();
    let mut seen = BTreeSet::new();
    for wanted in wanted(case, selection) {
        for settings in varied(&wanted.settings, &selection.vary) {
            if !seen.insert((wanted.profile.name, settings.clone())) {
                continue;
            }
            let setup = wanted.setup(case, settings, !selection.vary.is_empty())?;
            setups.push(setup);
        }
    }
    let seeds = if selection.seeds.is_empty() { &[1][..] } else { &selection.seeds };
    let with = |seed: u64| setups.iter().map(move |setup| Setup { seed, ..setup.clone() });
    Ok(seeds.iter().copied().flat_map(with).collect())
}

/// A selected row, or one like it.
pub(super) struct Wanted {
    profile: &'static Profile,
    pub(super) settings: Vec<(String, String)>,
    /// Row with its bounds, if the case has one.
    row: Option<&'static Row>,
}

/// Rows of the case for the selected profiles. A profile that the case does not have gets the
/// settings of this stack's own rules.
fn wanted(case: &'static Case, selection: &Selection) -> Vec<Wanted> {
    if selection.profiles.is_empty() {
        let own = case.rows.iter().filter_map(|row| {
            Profile::by_name(row.profile).map(|profile| Wanted::of_row(row, profile, true))
        });
        return own.collect();
    }
    let of_profile = |profile: &&'static Profile| {
        let profile = *profile;
        let is_own = case.rows.iter().any(|row| row.profile == profile.name);
        let like = if is_own { profile.name } else { DEFAULT };
        let rows = case.rows.iter().filter(move |row| row.profile == like);
        rows.map(move |row| Wanted::of_row(row, profile, is_own))
    };
    selection.profiles.iter().flat_map(of_profile).collect()
}

/// These settings with each of the varied values.
pub(super) fn varied(
    settings: &[(String, String)],
    vary: &[(String, Vec<String>)],
) -> Vec<Vec<(String, String)>> {
    let kept = settings.iter().filter(|(key, _)| vary.iter().all(|(varied, _)| varied != key));
    let mut all = vec![kept.cloned().collect::<Vec<_>>()];
    for (key, values) in vary {
        let with = |before: &Vec<(String, String)>| {
            let before = before.clone();
            values.iter().map(move |value| {
                let mut settings = before.clone();
                settings.push((key.clone(), value.clone()));
                settings
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

impl Wanted {
    /// A row of a case under a profile; `is_own`: the case's bounds apply.
    pub(super) fn of_row(row: &'static Row, profile: &'static Profile, is_own: bool) -> Self {
        let typed = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let settings = row.settings.iter().map(typed).collect();
        Self { profile, settings, row: is_own.then_some(row) }
    }

    pub(super) fn setup(
        &self,
        case: &'static Case,
        settings: Vec<(String, String)>,
        is_varied: bool,
    ) -> Result<Setup, PlanError> {
        let profile = self.profile.name;
        let contradiction = |error: String| PlanError::Contradiction { profile, error };
        let mut rules =
            self.profile.tunables().map_err(|error| contradiction(error.to_string()))?;
        let mut values = Values::of(case.parameters);
        for (key, value) in &settings {
            match case.parameters.iter().find(|parameter| parameter.name == key) {
                Some(parameter) => {
                    values.set(key, parameter.parse(value).map_err(PlanError::BadValue)?);
                }
                None => set(&mut rules, case, key, value)?,
            }
        }
        rules.validate().map_err(|error| contradiction(error.to_string()))?;
        // A changed setting has no bounds.
        let row = self.row.filter(|_| !is_varied);
        Ok(Setup {
            case,
            profile,
            settings,
            rules,
            values,
            seed: 1,
            role: row.map(|row| row.role),
            bounds: row.map_or_else(Vec::new, |row| row.bounds.to_vec()),
            back: None,
            kept: Vec::new(),
        })
    }
}

fn set(rules: &mut Tunables, case: &Case, key: &str, value: &str) -> Result<(), PlanError> {
    rules.set_by_name(key, value).map_err(|error| match error {
        TunableError::Unknown { .. } => {
            let parameters = case.parameters.iter().map(|parameter| parameter.name);
            let tunables = TUNABLES.iter().map(|info| info.name.text);
            let all = parameters.clone().chain(tunables);
            PlanError::UnknownKey {
                key: key.to_owned(),
                case: case.name,
                parameters: parameters.collect::<Vec<_>>().join(", "),
                near: names_like(key, all.map(|it| (it, it)))
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            }
        }
        error => PlanError::BadValue(error.to_string()),
    })
}

/// Profile whose settings apply to profiles without a row.
const DEFAULT: &str = "whimbrel";

#[cfg(test)]
mod tests;
