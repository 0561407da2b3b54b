//! The rules of a stack: its tunables, and the origin of each value.
//!
//! Sources are read in this order: default, profile, configuration file, environment. Later ones
//! prevail, and what a program [sets](Rules::set) afterwards prevails over all.
//!
//! ```
//! use whimbrel_io::rules::{Rules, Sources, Variables};
//!
//! let set = [("WHIMBREL_TCP_SYN_RETRIES".to_owned(), "3".to_owned())];
//! let sources = Sources { environment: Variables::new(set)?, ..Sources::default() };
//! assert_eq!(Rules::gather(sources)?.tunables.syn_retries, 3);
//! # Ok::<_, whimbrel_io::rules::RulesError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use whimbrel_base::tunables::{TunableError, names_like};
use whimbrel_stack::{PROFILES, Profile};
use whimbrel_tcp::tunables::TunableInfo;
use whimbrel_tcp::{TUNABLES, Tunables};

pub use environment::Variables;
use file::File;

mod environment;
mod file;

/// The rules of a stack. `Display` writes them as a configuration file, with the origin of each
/// value.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The values in force.
    pub tunables: Tunables,
    /// The profile that they are based on.
    pub profile: &'static Profile,
    /// Origin of the profile, if one was named.
    profile_origin: Option<Origin>,
    /// Origins of the values that are not defaults, by the name of the tunable.
    origins: BTreeMap<&'static str, Origin>,
}

/// Sources of a stack's rules. By default there are none.
#[derive(Clone, Default, Debug)]
pub struct Sources {
    /// A requested profile and its origin; otherwise the environment's, or the file's.
    pub profile: Option<(&'static Profile, Origin)>,
    /// A configuration file; otherwise the one named by the environment.
    pub file: Option<PathBuf>,
    /// Variables of the environment.
    pub environment: Variables,
}

/// Origin of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The profile of this name, or its base.
    Profile(&'static str),
    /// A line of the configuration file, as in `a.toml:3`.
    File(String),
    /// The variable of this name.
    Environment(String),
    /// An option of the program, by its name.
    Option(&'static str),
}

/// Reason why the rules are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The configuration file cannot be read.
    #[error("{path}: {error}; give a file that can be read", path = crate::text::path(path))]
    Unreadable {
        /// Path of the configuration file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The tunable does not exist, or may not have this value.
    #[error("{origin}: {error}")]
    Tunable {
        /// Origin of the value: a file and line, or a variable.
        origin: String,
        /// Error of the tunable.
        error: Box<TunableError>,
    },
    /// Another setting is invalid.
    #[error("{origin}: {text}")]
    Meaningless {
        /// The file and line, or the variable.
        origin: String,
        /// Message with the setting and the valid forms.
        text: String,
    },
}

impl Rules {
    /// Combines these sources. [`Rules::validate`] then checks that the values agree with each
    /// other.
    pub fn gather(sources: Sources) -> Result<Self, RulesError> {
        let Sources { profile, file, environment } = sources;
        let path = file.or(environment.config);
        let file = path.map(File::read).transpose()?.unwrap_or_default();
        let mut rules = Self::of_profile(profile.or(environment.profile).or(file.profile))?;
        for line in file.tunables {
            rules.set(&line.name, &line.value, Origin::File(line.place))?;
        }
        for variable in environment.tunables {
            rules.set(variable.name, &variable.value, Origin::Environment(variable.variable))?;
        }
        Ok(rules)
    }

    /// Returns the defaults, changed by the profile.
    fn of_profile(named: Option<(&'static Profile, Origin)>) -> Result<Self, RulesError> {
        let Some((profile, origin)) = named else { return Ok(Self::default()) };
        let mut rules = Self { profile, profile_origin: Some(origin), ..Self::default() };
        for (whose, setting) in profile.all_settings() {
            rules.set(setting.name, setting.value, Origin::Profile(whose))?;
        }
        Ok(rules)
    }

    /// Sets the tunable of this name or alias to a value as typed.
    pub fn set(&mut self, name: &str, value: &str, origin: Origin) -> Result<(), RulesError> {
        let refused =
            |error| RulesError::Tunable { origin: origin.to_string(), error: Box::new(error) };
        self.tunables.set_by_name(name, value).map_err(refused)?;
        for info in Tunables::named(name) {
            self.origins.insert(info.name.text, origin.clone());
        }
        Ok(())
    }

    /// Checks that the values agree with each other, which is known once all are set.
    pub fn validate(&self) -> Result<(), RulesError> {
        self.tunables.validate().map_err(|error| {
            let named = Tunables::named(&error.name);
            let origin = named.first().and_then(|info| self.origin(info));
            let origin = origin.map_or_else(|| "--set".into(), ToString::to_string);
            RulesError::Tunable { origin, error: Box::new(error.into()) }
        })
    }

    /// Returns the origin of a tunable's value, if it is not the default.
    pub fn origin(&self, info: &TunableInfo) -> Option<&Origin> {
        self.origins.get(info.name.text)
    }

    /// True if a profile was named.
    pub fn has_profile(&self) -> bool {
        self.profile_origin.is_some()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            tunables: Tunables::default(),
            profile: &PROFILES[0],
            profile_origin: None,
            origins: BTreeMap::new(),
        }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |origin: Option<&Origin>| origin.map_or_else(|| "default".into(), ToString::to_string);
        let origin = shown(self.profile_origin.as_ref());
        writeln!(f, "# The rules of the stack, and where each comes from; --config reads them.")?;
        writeln!(f, "profile = \"{}\"  # {origin}\n\n[tunables]", self.profile.name)?;
        for info in TUNABLES {
            let rule = format!("\"{}\" = \"{}\"", info.name.text, info.value(&self.tunables));
            writeln!(f, "{rule:48}  # {}", shown(self.origin(info)))?;
        }
        Ok(())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::File(place) => f.write_str(place),
            Self::Environment(variable) => f.write_str(variable),
            Self::Option(option) => f.write_str(option),
        }
    }
}

/// Returns the profile of this name, or a message that lists the profiles.
pub fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let known: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
        let near = names_like(name, known.iter().map(|name| (*name, *name)));
        let perhaps = match near.is_empty() {
            true => String::new(),
            false => format!(" (perhaps {})", near.join(", or ")),
        };
        format!("{name:?} is no profile{perhaps}: give one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
