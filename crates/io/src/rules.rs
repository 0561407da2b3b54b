//! The rules of a stack, and where each comes from.
//!
//! The default, the profile, the configuration file and the environment are asked in this order, and
//! whoever says something last prevails; what a program [sets](Rules::set) after that prevails over all.
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

/// The rules of a stack. Shown as a configuration file, with the origin of each value behind it.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The values that are in force.
    pub tunables: Tunables,
    /// Whose they were at first.
    pub profile: &'static Profile,
    /// Who named it, if anybody did.
    profile_origin: Option<Origin>,
    /// Who said what is not the default, by the name of the tunable.
    origins: BTreeMap<&'static str, Origin>,
}

/// What says by which rules a stack goes. By default nothing does.
#[derive(Clone, Default, Debug)]
pub struct Sources {
    /// A profile that was asked for, and by what; else the environment's, or the file's.
    pub profile: Option<(&'static Profile, Origin)>,
    /// A configuration file; else the one that the environment names.
    pub file: Option<PathBuf>,
    /// Variables of the environment.
    pub environment: Variables,
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The profile of this name, or the base of it.
    Profile(&'static str),
    /// A line of the configuration file, as in `a.toml:3`.
    File(String),
    /// The variable of this name.
    Environment(String),
    /// An option of the program's, by its name.
    Option(&'static str),
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The configuration file cannot be read.
    #[error("{path}: {error}; give a file that can be read", path = crate::text::path(path))]
    Unreadable {
        /// The configuration file that was given.
        path: PathBuf,
        /// Why the system did not read it.
        error: io::Error,
    },
    /// A tunable that there is not, or that may not have its value.
    #[error("{origin}: {error}")]
    Tunable {
        /// Where it was set: a file and line, or a variable.
        origin: String,
        /// What is wrong with it.
        error: Box<TunableError>,
    },
    /// Something else that means nothing.
    #[error("{origin}: {text}")]
    Meaningless {
        /// The file and line, or the variable.
        origin: String,
        /// What it is, and what would mean something.
        text: String,
    },
}

impl Rules {
    /// What these sources say together. Whether no value contradicts another, [`Rules::validate`] says.
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

    /// The defaults, and what the profile says.
    fn of_profile(named: Option<(&'static Profile, Origin)>) -> Result<Self, RulesError> {
        let Some((profile, origin)) = named else { return Ok(Self::default()) };
        let mut rules = Self { profile, profile_origin: Some(origin), ..Self::default() };
        for (whose, setting) in profile.all_settings() {
            rules.set(setting.name, setting.value, Origin::Profile(whose))?;
        }
        Ok(rules)
    }

    /// Sets the tunable that has this name or alias, as it is typed.
    pub fn set(&mut self, name: &str, value: &str, origin: Origin) -> Result<(), RulesError> {
        let refused =
            |error| RulesError::Tunable { origin: origin.to_string(), error: Box::new(error) };
        self.tunables.set_by_name(name, value).map_err(refused)?;
        for info in Tunables::named(name) {
            self.origins.insert(info.name.text, origin.clone());
        }
        Ok(())
    }

    /// Whether no value contradicts another, which is known when all are there.
    pub fn validate(&self) -> Result<(), RulesError> {
        self.tunables.validate().map_err(|error| {
            let named = Tunables::named(&error.name);
            let origin = named.first().and_then(|info| self.origin(info));
            let origin = origin.map_or_else(|| "--set".into(), ToString::to_string);
            RulesError::Tunable { origin, error: Box::new(error.into()) }
        })
    }

    /// Who said what a tunable is, if it is not the default.
    pub fn origin(&self, info: &TunableInfo) -> Option<&Origin> {
        self.origins.get(info.name.text)
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

/// The profile of that name, or what there is instead.
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
