//! `whimbrel sysctl`: the rules of a stack, of this one or as another has them, and where each is from.

use clap::Args;
use whimbrel_io::rules::{Origin, Rules, profile};
use whimbrel_stack::{PROFILES, Profile};
use whimbrel_tcp::tunables::{TUNABLE_GROUPS, TunableInfo};
use whimbrel_tcp::{TUNABLES, Tunables};

use crate::attach::HostOption;
use crate::failure::Failure;
use crate::output;
use crate::rules::RuleOptions;
use crate::wildcard::is_like;

mod cases;
mod document;
mod explanation;
mod running;
mod table;

/// Command line of `whimbrel sysctl`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Tunables to print: part of a name, for example tw or rmem; another system's name, for example
    /// net.inet.tcp.msl; or a name with * as a wildcard [default: all]. After a process (its number, its
    /// command or the path of its control socket), or with KEY=VALUE, those of a running stack.
    #[arg(value_name = "PATTERN|[PROCESS] KEY[=VALUE]")]
    patterns: Vec<String>,
    /// Print only the values that differ from this profile, and the profile's.
    #[arg(long, value_name = "NAME", value_parser = profile)]
    diff: Option<&'static Profile>,
    /// Print all information on this tunable: range, default, names, RFC, profiles with other values,
    /// and lab cases that depend on it.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["diff", "patterns", "profiles"])]
    explain: Option<String>,
    /// List the profiles instead.
    #[arg(long, conflicts_with_all = ["diff", "patterns"])]
    profiles: bool,
    /// Set tunables of a running stack, which KEY=VALUE does in any case.
    #[arg(short, long, conflicts_with_all = ["diff", "explain", "profiles"])]
    write: bool,
    /// Print one JSON document (whimbrel.sysctl/1) instead; of a running stack, whimbrel.sysctl-running/1.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOption,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
}

/// The values to print.
struct View {
    rules: Rules,
    /// The profile to compare with, and its rules.
    other: Option<(&'static Profile, Tunables)>,
    shown: Vec<&'static TunableInfo>,
}

/// Prints the requested view.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_running = arguments.write || arguments.host.host.is_some();
    if is_running || running::is_meant(&arguments.patterns) {
        return running::run(arguments);
    }
    if arguments.profiles {
        let text = match arguments.json {
            true => format!("{:#}\n", document::of_profiles()),
            false => table::of_profiles(PROFILES),
        };
        return output::print(&text);
    }
    let view = View::new(arguments)?;
    let text = match (arguments.json, &arguments.explain) {
        (true, _) => format!("{:#}\n", document::of(&view)),
        (false, Some(_)) => explanation::of(&view),
        (false, None) => table::of(&view),
    };
    output::print(&text)
}

impl View {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let rules = arguments.rules.rules(&[])?;
        let other = arguments.diff.map(|other| Ok::<_, Failure>((other, tunables_of(other)?)));
        let other = other.transpose()?;
        let mut shown = match &arguments.explain {
            Some(key) => named(key)?,
            None => matching(&arguments.patterns)?,
        };
        if let Some((_, other)) = &other {
            shown.retain(|info| info.value(&rules.tunables) != info.value(other));
        }
        Ok(Self { rules, other, shown })
    }

    /// Source of a tunable's value.
    fn source(&self, info: &TunableInfo) -> Option<String> {
        match self.rules.origin(info)? {
            Origin::Profile(of) => {
                let source = self.rules.profile.setting_of(info).map_or("", |it| it.source);
                Some(format!("{of}: {source}"))
            }
            other => Some(other.to_string()),
        }
    }

    /// Source of the value in the other profile.
    fn other_source(&self, info: &TunableInfo) -> Option<String> {
        let (other, _) = self.other.as_ref()?;
        Some(format!("{}: {}", other.name, other.setting_of(info)?.source))
    }
}

/// The rules of a profile.
fn tunables_of(profile: &Profile) -> Result<Tunables, Failure> {
    profile.tunables().map_err(Failure::run)
}

/// The tunables with this name, which may be a group's.
fn named(key: &str) -> Result<Vec<&'static TunableInfo>, Failure> {
    match Tunables::named(key) {
        none if none.is_empty() => Err(unknown("--explain", key)),
        some => Ok(some),
    }
}

/// The tunables that any of these patterns is of, in their order.
fn matching(patterns: &[String]) -> Result<Vec<&'static TunableInfo>, Failure> {
    for pattern in patterns {
        if !is_known(pattern) {
            return Err(unknown("PATTERN", pattern));
        }
    }
    let shown = |info: &&TunableInfo| {
        patterns.is_empty() || patterns.iter().any(|pattern| is_of(pattern, info))
    };
    Ok(TUNABLES.iter().filter(shown).collect())
}

/// True if a tunable is of this pattern.
fn is_known(pattern: &str) -> bool {
    TUNABLES.iter().any(|info| is_of(pattern, info))
}

/// True if a tunable has this name, or one that contains the pattern.
fn is_of(pattern: &str, info: &TunableInfo) -> bool {
    let named = Tunables::named(pattern);
    if !named.is_empty() {
        return named.iter().any(|named| named.field == info.field);
    }
    let pattern = pattern.to_ascii_lowercase();
    let groups = TUNABLE_GROUPS.iter().filter(|group| group.fields.contains(&info.field));
    let others = info.aliases.iter().chain(groups.flat_map(|group| group.names));
    let mut names = [info.name.text, info.field].into_iter().chain(others.map(|name| name.text));
    names.any(|name| match pattern.contains('*') {
        true => is_like(&pattern, &name.to_ascii_lowercase()),
        false => name.to_ascii_lowercase().contains(&pattern),
    })
}

/// The error for an unknown name, with similar ones.
fn unknown(option: &str, typed: &str) -> Failure {
    let tried = Tunables::default().set_by_name(typed, "");
    let error = tried.err().map_or_else(String::new, |error| error.to_string());
    Failure::usage(option, format!("{error} (whimbrel sysctl lists all)"))
}

#[cfg(test)]
mod tests;
