//! Which measurements are made, for what was asked for.

use std::collections::BTreeSet;

use whimbrel_base::tunables::{TunableError, names_like};
use whimbrel_stack::Profile;
use whimbrel_tcp::{TUNABLES, Tunables};

use super::{Case, Row, Setup, Values};

/// What of a case is measured.
#[derive(Clone, Default, Debug)]
pub struct Selection {
    /// These profiles instead of the case's own.
    pub profiles: Vec<&'static Profile>,
    /// Each of these keys with each of its values, instead of what rows have.
    pub vary: Vec<(String, Vec<String>)>,
    /// Seeds: each row is measured with each.
    pub seeds: Vec<u64>,
}

/// Why that means no measurement.
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
        /// The key, as it was typed.
        key: String,
        /// The name of the case.
        case: &'static str,
        /// The names of its parameters.
        parameters: String,
        /// What is like it.
        near: Vec<String>,
    },
    /// A value that its key cannot have.
    #[error("{0}")]
    BadValue(String),
    /// Rules that contradict each other.
    #[error("{profile}: {error}")]
    Contradiction {
        /// The profile that was changed.
        profile: &'static str,
        /// What contradicts what.
        error: String,
    },
}

fn perhaps(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" (perhaps {})", near.join(", or ")) }
}

/// The measurements that `selection` means, in the order in which they are told.
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

/// A row that is wanted, or one like it.
pub(super) struct Wanted {
    profile: &'static Profile,
    pub(super) settings: Vec<(String, String)>,
    /// What it has to come to, if the case has it.
    row: Option<&'static Row>,
}

/// The case's own rows, those of the profiles that are asked for, or for a profile that it has not the
/// settings that this stack's own rules are tried with.
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

/// The same settings with each of the values that are asked for.
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
    /// A row of a case under a profile; `is_own`: it has to come to what the case says.
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
        // What somebody changed is bound by nothing.
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

/// The profile whose settings another is tried with.
const DEFAULT: &str = "whimbrel";

#[cfg(test)]
mod tests;
