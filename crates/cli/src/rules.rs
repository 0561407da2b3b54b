//! The rules of a stack, and where each comes from.
//!
//! The default, the profile, the configuration file, the environment and `-S` are asked in this
//! order, and whoever says something last prevails.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use whimbrel_base::tunables::{TunableError, names_like};
use whimbrel_stack::{PROFILES, Profile};
use whimbrel_tcp::tunables::TunableInfo;
use whimbrel_tcp::{TUNABLES, Tunables};

use crate::failure::Failure;
use environment::Environment;
use file::File;

mod environment;
mod file;
mod list;

/// What was typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct RuleOptions {
    /// Behave as another stack does: whimbrel, linux or freebsd [default: whimbrel].
    #[arg(help_heading = HEADING, long, value_name = "NAME", alias = "persona", value_parser = profile)]
    profile: Option<&'static Profile>,
    /// Read rules from this file: profile = "NAME", and tunables below [tunables].
    #[arg(help_heading = HEADING, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Set a tunable of the stack.
    #[arg(help_heading = HEADING, short = 'S', long, value_name = "KEY=VALUE", help = SET_HELP)]
    set: Vec<String>,
    /// Print the resulting rules, each with its origin, and exit; --config reads what is printed.
    #[arg(help_heading = HEADING, long)]
    print_config: bool,
}

/// A command's own option that is short for `-S`, and prevails over it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shorthand {
    /// The option.
    pub(crate) option: &'static str,
    /// What it sets.
    pub(crate) name: &'static str,
    /// To what.
    pub(crate) value: String,
}

/// What can be asked of the rules, so that nothing is done but an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// `--print-config`.
    Rules,
    /// `-S help`.
    Tunables,
}

/// What is meant.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The rules.
    pub(crate) tunables: Tunables,
    /// Whose they were at first.
    pub(crate) profile: &'static Profile,
    /// Who named it, if anybody did.
    profile_origin: Option<Origin>,
    /// Who said what is not the default, by the name of the tunable.
    origins: BTreeMap<&'static str, Origin>,
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    /// The profile of this name.
    Profile(&'static str),
    /// A line of the configuration file, as in `a.toml:3`.
    File(String),
    /// The variable of this name.
    Environment(String),
    /// This option.
    Option(&'static str),
}

impl RuleOptions {
    /// What they mean, with the environment and the file that they name.
    pub(crate) fn rules(&self, shorthands: &[Shorthand]) -> Result<Rules, Failure> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            // What is not UTF-8 is none of ours: our names and values are ASCII.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        self.rules_in(&Environment::new(variables)?, shorthands)
    }

    /// The rules of this stack for one whose stack is the kernel's: there is nothing to set.
    pub(crate) fn none_for_the_kernel(&self, shorthands: &[Shorthand]) -> Result<Rules, Failure> {
        let text = "the kernel's sockets go by the kernel's rules: use sysctl, or give this stack a \
                    wire by -w";
        let set = self.set_option().or(self.profile.map(|_| "--profile"));
        let set = set.or(shorthands.first().map(|short| short.option));
        set.map_or(Ok(Rules::default()), |option| Err(Failure::usage(option, text)))
    }

    /// The first option that sets tunables one by one, if any was given.
    pub(crate) fn set_option(&self) -> Option<&'static str> {
        let set = (!self.set.is_empty()).then_some("--set");
        set.or(self.config.as_ref().map(|_| "--config"))
    }

    /// What shall be printed instead of doing anything, if that is so.
    pub(crate) fn question(&self) -> Option<Question> {
        let lists = self.set.iter().any(|text| text == HELP);
        match (lists, self.print_config) {
            (true, _) => Some(Question::Tunables),
            (false, true) => Some(Question::Rules),
            (false, false) => None,
        }
    }

    /// The answer to a question.
    pub(crate) fn answer(
        &self,
        question: Question,
        shorthands: &[Shorthand],
    ) -> Result<String, Failure> {
        let rules = self.rules(shorthands)?;
        Ok(match question {
            Question::Rules => rules.to_string(),
            Question::Tunables => list::text(&rules),
        })
    }

    fn rules_in(
        &self,
        environment: &Environment,
        shorthands: &[Shorthand],
    ) -> Result<Rules, Failure> {
        let path = self.config.as_ref().or(environment.config.as_ref());
        let file = path.map(|path| File::read(path)).transpose()?.unwrap_or_default();
        let mut rules = Rules::of_profile(
            self.profile
                .map(|profile| (profile, Origin::Option("--profile")))
                .or_else(|| environment.profile.clone())
                .or_else(|| file.profile.clone()),
        )?;
        for line in &file.tunables {
            let origin = Origin::File(line.place.clone());
            rules.set(&line.name, &line.value, origin)?;
        }
        for variable in &environment.tunables {
            let origin = Origin::Environment(variable.variable.clone());
            rules.set(variable.name, &variable.value, origin)?;
        }
        for text in self.set.iter().filter(|text| *text != HELP) {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                let example = "give KEY=VALUE, as in net.ipv4.tcp_syn_retries=3";
                Failure::usage("--set", format!("{text:?} has no value: {example}"))
            })?;
            rules.set(name.trim(), value, Origin::Option("--set"))?;
        }
        for short in shorthands {
            rules.set(short.name, &short.value, Origin::Option(short.option))?;
        }
        rules.validate()?;
        Ok(rules)
    }
}

impl Rules {
    /// The defaults, and what the profile says.
    fn of_profile(named: Option<(&'static Profile, Origin)>) -> Result<Self, Failure> {
        let Some((profile, origin)) = named else { return Ok(Self::default()) };
        let mut rules = Self { profile, profile_origin: Some(origin), ..Self::default() };
        for (name, value) in profile.settings {
            rules.set(name, value, Origin::Profile(profile.name))?;
        }
        Ok(rules)
    }

    fn set(&mut self, name: &str, value: &str, origin: Origin) -> Result<(), Failure> {
        let refused = |error: TunableError| {
            let all = match error {
                TunableError::Unknown { .. } => " (-S help lists all)",
                _ => "",
            };
            Failure::usage(&origin.to_string(), format!("{error}{all}"))
        };
        self.tunables.set_by_name(name, value).map_err(refused)?;
        for info in Tunables::named(name) {
            self.origins.insert(info.name.text, origin.clone());
        }
        Ok(())
    }

    /// Whether no value contradicts another, which is known when all are there.
    fn validate(&self) -> Result<(), Failure> {
        self.tunables.validate().map_err(|error| {
            let named = Tunables::named(&error.name);
            let origin = named.first().and_then(|info| self.origins.get(info.name.text));
            let origin = origin.map_or_else(|| "--set".into(), ToString::to_string);
            Failure::usage(&origin, error)
        })
    }

    /// The rules that are not the defaults, with their origins, for programs.
    pub(crate) fn document(&self) -> Value {
        let changed = TUNABLES.iter().filter_map(|info| {
            let origin = self.origins.get(info.name.text)?;
            let rule = json!({"value": info.value(&self.tunables), "origin": origin.to_string()});
            Some((info.name.text.to_owned(), rule))
        });
        json!({"profile": self.profile.name, "tunables": changed.collect::<Map<_, _>>()})
    }

    fn origin(&self, info: &TunableInfo) -> String {
        self.origins.get(info.name.text).map_or_else(|| "default".into(), ToString::to_string)
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

impl Shorthand {
    /// `--local-ports`.
    pub(crate) fn local_ports(typed: &str) -> Self {
        let name = "net.ipv4.ip_local_port_range";
        Self { option: "--local-ports", name, value: typed.into() }
    }

    /// `--syncookies`.
    pub(crate) fn syn_cookies(typed: &str) -> Self {
        Self { option: "--syncookies", name: "net.ipv4.tcp_syncookies", value: typed.into() }
    }
}

/// A configuration file, with the origin of each value behind it.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.profile_origin.as_ref();
        let origin = named.map_or_else(|| "default".into(), ToString::to_string);
        writeln!(f, "# The rules of the stack, and where each comes from; --config reads them.")?;
        writeln!(f, "profile = \"{}\"  # {origin}\n\n[tunables]", self.profile.name)?;
        for info in TUNABLES {
            let rule = format!("\"{}\" = \"{}\"", info.name.text, info.value(&self.tunables));
            writeln!(f, "{rule:48}  # {}", self.origin(info))?;
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

/// The profile of that name.
fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let known: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
        format!("{name:?} is no profile{}: give one of {}", perhaps(name, &known), known.join(", "))
    })
}

/// Those of `known` that are like what was typed, in words: ` (perhaps linux)`; or nothing.
pub(crate) fn perhaps(typed: &str, known: &[&str]) -> String {
    let near = names_like(typed, known.iter().map(|name| (*name, *name)));
    match near.is_empty() {
        true => String::new(),
        false => format!(" (perhaps {})", near.join(", or ")),
    }
}

/// The value of `-S` that asks.
const HELP: &str = "help";
/// Where they stand in a command's help: behind what it is for.
const HEADING: &str = "Rules of the stack";
const SET_HELP: &str = "Set a tunable of the stack, as in -S net.ipv4.tcp_syn_retries=3 -S msl=5s \
                         -S tw.syn=linux; may repeat. -S help lists them; names \
                         of Linux, FreeBSD, illumos and lwIP are known";

#[cfg(test)]
mod tests;
