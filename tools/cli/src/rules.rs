//! `--profile`, `--config`, `-S` and their like: by which rules a stack goes.
//!
//! `-S` and the options that are short for it prevail over what [`whimbrel_io::rules`] gathers.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use whimbrel_base::tunables::TunableError;
use whimbrel_io::WireSpec;
use whimbrel_io::rules::{Origin, Rules, RulesError, Sources, Variables, profile};
use whimbrel_stack::Profile;
use whimbrel_tcp::TUNABLES;

use crate::failure::Failure;

mod list;
mod server;

pub(crate) use server::ServerRuleOptions;

pub(crate) use self::list::values;

/// The options that set rules of the stack, as they were typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct RuleOptions {
    /// Behave as another stack does, for example linux-6.18 or lwip-2.1+msl5s: `whimbrel sysctl
    /// --profiles` lists them [default: whimbrel].
    #[arg(help_heading = HEADING, long, value_name = "NAME", alias = "persona", value_parser = profile)]
    profile: Option<&'static Profile>,
    /// Read settings from this file: profile = "NAME", and tunables below [tunables].
    #[arg(help_heading = HEADING, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Set a tunable of the stack.
    #[arg(help_heading = HEADING, short = 'S', long, value_name = "KEY=VALUE", help = SET_HELP)]
    set: Vec<String>,
    /// Print the resulting settings, each with its origin, and exit; --config reads the output.
    #[arg(help_heading = HEADING, long)]
    print_config: bool,
}

/// A command's own option that is short for `-S`, and prevails over it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shorthand {
    /// Name of the option, for example `--set`.
    pub(crate) option: &'static str,
    /// The tunable that it sets.
    pub(crate) name: &'static str,
    /// The value that it sets that to.
    pub(crate) value: String,
}

/// Queries on the settings that replace the command's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RuleQuery {
    /// `--print-config`: every setting in force, and its origin.
    Rules,
    /// `-S help`: every tunable that there is.
    Tunables,
}

impl RuleOptions {
    /// Returns the settings, with the environment and the file that the options name.
    pub(crate) fn rules(&self, shorthands: &[Shorthand]) -> Result<Rules, Failure> {
        self.rules_in(Variables::of_process()?, shorthands)
    }

    /// Returns the settings for a stack on this wire, which may be the kernel's.
    pub(crate) fn rules_on(
        &self,
        wire: &WireSpec,
        shorthands: &[Shorthand],
    ) -> Result<Rules, Failure> {
        match wire.is_kernel() {
            true => self.none_for_the_kernel(shorthands),
            false => self.rules(shorthands),
        }
    }

    /// The rules of this stack for one whose stack is the kernel's: there is nothing to set.
    fn none_for_the_kernel(&self, shorthands: &[Shorthand]) -> Result<Rules, Failure> {
        let text = "the kernel's sockets use the kernel's settings: use sysctl, or another wire \
                    (-w)";
        let set = self.set_option().or(self.profile.map(|_| "--profile"));
        let set = set.or(shorthands.first().map(|short| short.option));
        set.map_or(Ok(Rules::default()), |option| Err(Failure::usage(option, text)))
    }

    /// The first option that sets tunables one by one, if any was given.
    pub(crate) fn set_option(&self) -> Option<&'static str> {
        let set = (!self.set.is_empty()).then_some("--set");
        set.or(self.config.as_ref().map(|_| "--config"))
    }

    /// The query to print instead of any work, if there is one.
    pub(crate) fn question(&self) -> Option<RuleQuery> {
        let lists = self.set.iter().any(|text| text == HELP);
        match (lists, self.print_config) {
            (true, _) => Some(RuleQuery::Tunables),
            (false, true) => Some(RuleQuery::Rules),
            (false, false) => None,
        }
    }

    /// The answer to a question, of a command whose server may be in this process.
    pub(crate) fn answer(
        &self,
        question: RuleQuery,
        server: Option<&ServerRuleOptions>,
        shorthands: &[Shorthand],
    ) -> Result<String, Failure> {
        let rules = self.rules(shorthands)?;
        let server = server.map(|server| server.rules(&rules, shorthands)).transpose()?.flatten();
        Ok(match question {
            RuleQuery::Rules => match server {
                Some(server) => server::both(&rules, &server),
                None => rules.to_string(),
            },
            RuleQuery::Tunables => list::text(&rules),
        })
    }

    fn rules_in(&self, environment: Variables, shorthands: &[Shorthand]) -> Result<Rules, Failure> {
        let mut rules = Rules::gather(Sources {
            profile: self.profile.map(|profile| (profile, Origin::Option("--profile"))),
            file: self.config.clone(),
            environment,
        })?;
        set_all(&mut rules, self.set.iter().filter(|text| *text != HELP), "--set")?;
        set_shorthands(&mut rules, shorthands)?;
        rules.validate()?;
        Ok(rules)
    }
}

/// Sets the values of an option of this name.
fn set_all<'a>(
    rules: &mut Rules,
    typed: impl IntoIterator<Item = &'a String>,
    option: &'static str,
) -> Result<(), Failure> {
    for text in typed {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            let example = "give KEY=VALUE, as in net.ipv4.tcp_syn_retries=3";
            Failure::usage(option, format!("{text:?} has no value: {example}"))
        })?;
        rules.set(name.trim(), value, Origin::Option(option))?;
    }
    Ok(())
}

/// Sets the tunables behind the command's own options.
fn set_shorthands(rules: &mut Rules, shorthands: &[Shorthand]) -> Result<(), Failure> {
    for short in shorthands {
        rules.set(short.name, &short.value, Origin::Option(short.option))?;
    }
    Ok(())
}

/// The rules that are not the defaults, with their origins, for programs.
pub(crate) fn document(rules: &Rules) -> Value {
    let changed = TUNABLES.iter().filter_map(|info| {
        let origin = rules.origin(info)?.to_string();
        let rule = json!({"value": info.value(&rules.tunables), "origin": origin});
        Some((info.name.text.to_owned(), rule))
    });
    json!({"profile": rules.profile.name, "tunables": changed.collect::<Map<_, _>>()})
}

impl From<RulesError> for Failure {
    fn from(error: RulesError) -> Self {
        match &error {
            RulesError::Unreadable { .. } => Self::run(format!("--config {error}")),
            RulesError::Tunable { error: tunable, .. }
                if matches!(**tunable, TunableError::Unknown { .. }) =>
            {
                Self::Usage(format!("{error} (-S help lists all)"))
            }
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl Shorthand {
    /// Shorthands of the options that all clients have.
    pub(crate) fn of_client(local_ports: Option<&str>, congestion: Option<&str>) -> Vec<Self> {
        let ports = local_ports.map(Self::local_ports);
        ports.into_iter().chain(congestion.map(Self::congestion)).collect()
    }

    /// Shorthand of `--local-ports`.
    fn local_ports(typed: &str) -> Self {
        let name = "net.ipv4.ip_local_port_range";
        Self { option: "--local-ports", name, value: typed.into() }
    }

    /// Shorthand of `--congestion`.
    pub(crate) fn congestion(typed: &str) -> Self {
        Self { option: "--congestion", name: CONGESTION, value: typed.into() }
    }

    /// Shorthand of `--syncookies`.
    pub(crate) fn syn_cookies(typed: &str) -> Self {
        Self { option: "--syncookies", name: "net.ipv4.tcp_syncookies", value: typed.into() }
    }
}

/// The rule that names the congestion control.
pub(crate) const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
/// The value of `-S` that asks.
const HELP: &str = "help";
/// Heading of the options in a command's help.
pub(crate) const HEADING: &str = "Rules of the stack";
const SET_HELP: &str = "Set a tunable, for example -S net.ipv4.tcp_syn_retries=3 -S msl=5s \
                         -S tw.syn=linux; may repeat. -S help lists them; names \
                         of Linux, FreeBSD, illumos and lwIP are known";

#[cfg(test)]
mod tests;
