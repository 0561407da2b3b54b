//! Rules from the environment: `WHIMBREL_PROFILE`, `WHIMBREL_CONFIG`, and for each tunable its name
//! in capitals with `_` for every dot, with or without `net.ipv4.`: `WHIMBREL_TCP_SYN_RETRIES=3`.

use std::ffi::OsString;
use std::path::PathBuf;

use whimbrel_stack::Profile;
use whimbrel_tcp::tunables::TUNABLE_GROUPS;
use whimbrel_tcp::{TUNABLES, Tunables};

use super::{Origin, RulesError, profile};

/// The variables that set rules.
#[derive(Clone, Default, Debug)]
pub struct Variables {
    pub(super) profile: Option<(&'static Profile, Origin)>,
    pub(super) config: Option<PathBuf>,
    pub(super) tunables: Vec<Variable>,
}

/// A variable that sets a tunable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) variable: String,
    pub(super) name: &'static str,
    pub(super) value: String,
}

impl Variables {
    /// Reads the environment of this process.
    pub fn of_process() -> Result<Self, RulesError> {
        // A variable that is not UTF-8 sets no rule: names and values are ASCII.
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text))
    }

    /// Parses these variables. An unknown variable with the prefix is an error, because it would
    /// have no effect.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, RulesError> {
        let mut environment = Self::default();
        for (variable, value) in variables {
            match variable.strip_prefix("WHIMBREL_") {
                None | Some(OF_TESTS_NET | OF_TESTS_BLESS | OF_THE_GROUP) => {}
                Some("CONFIG") => environment.config = Some(value.into()),
                Some("PROFILE") => {
                    let named = profile(&value).map_err(|text| RulesError::Meaningless {
                        origin: variable.clone(),
                        text,
                    })?;
                    environment.profile = Some((named, Origin::Environment(variable)));
                }
                Some(word) => {
                    let name = name_of(word).ok_or_else(|| unknown(&variable, word))?;
                    environment.tunables.push(Variable { variable, name, value });
                }
            }
        }
        // The environment has no order: this makes it repeatable.
        environment.tunables.sort_by(|a, b| a.variable.cmp(&b.variable));
        Ok(environment)
    }
}

/// Returns the tunable's name that is written `word` in a variable.
fn name_of(word: &str) -> Option<&'static str> {
    names().find(|name| {
        let short = name.strip_prefix("net.ipv4.").unwrap_or(name);
        in_capitals(name) == word || in_capitals(short) == word
    })
}

/// Iterates over the first names of all tunables and groups. The aliases of other systems would
/// collide here.
fn names() -> impl Iterator<Item = &'static str> {
    let groups = TUNABLE_GROUPS.iter().filter_map(|group| group.names.first());
    TUNABLES.iter().map(|info| info.name.text).chain(groups.map(|name| name.text))
}

fn in_capitals(name: &str) -> String {
    name.replace('.', "_").to_ascii_uppercase()
}

fn unknown(variable: &str, word: &str) -> RulesError {
    let tried = Tunables::default().set_by_name(&word.to_ascii_lowercase(), "");
    let error = tried.err().map_or_else(String::new, |error| error.to_string());
    let text = format!("{error} (in capitals, _ for each dot); or unset {variable}");
    RulesError::Meaningless { origin: variable.into(), text }
}

/// Variable that may hold a key, for `--cookie-group env:WHIMBREL_COOKIE_KEY`.
const OF_THE_GROUP: &str = "COOKIE_KEY";
/// Variable that configures this project's tests.
const OF_TESTS_NET: &str = "REQUIRE_NET";
const OF_TESTS_BLESS: &str = "BLESS";

#[cfg(test)]
mod tests;
