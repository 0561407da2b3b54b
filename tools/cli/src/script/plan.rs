//! Typed arguments become a plan.

use std::path::PathBuf;
use std::thread;

use whimbrel_io::rules::Rules;
use whimbrel_script::dialect::Dialect;
use whimbrel_script::packet::Mode;
use whimbrel_script::parse::Defines;
use whimbrel_script::run::{Leftovers, Settings};

use super::{Arguments, ScriptTarget};
use crate::failure::Failure;

/// Scripts to run, their host, and the output.
#[derive(Debug)]
pub(super) struct ScriptPlan {
    pub(super) against: ScriptTarget,
    /// The rules of the stack, before a script changes them.
    pub(super) rules: Rules,
    /// In the dialect that was named, if one was.
    settings: Settings,
    /// The dialect of all scripts; none if each is detected.
    dialect: Option<Dialect>,
    pub(super) jobs: usize,
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// The folder that captures go to, if any are wanted.
    pub(super) captures: Option<PathBuf>,
    /// Words to be replaced, and what by.
    pub(super) macros: Vec<(String, String)>,
}

impl ScriptPlan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        if arguments.against == ScriptTarget::Kernel
            && let Some(option) = arguments.rules.set_option()
        {
            let text = "the kernel has its own settings: leave it out, or use --against shard";
            return Err(Failure::usage(option, text));
        }
        if arguments.against == ScriptTarget::Kernel && arguments.pcap_dir.is_some() {
            let text = "the kernel reports neither states nor reasons for drops: use tcpdump, or \
                        --against shard";
            return Err(Failure::usage("--pcap-dir", text));
        }
        let rules = arguments.rules.rules(&[])?;
        let settings = Settings {
            mode: if arguments.semantic { Mode::Semantic } else { Mode::Strict },
            dialect: arguments.dialect.unwrap_or_default(),
            leftovers: if arguments.foreign { Leftovers::Warn } else { Leftovers::Fail },
        };
        Ok(Self {
            against: arguments.against,
            rules,
            settings,
            dialect: arguments.dialect,
            jobs: arguments.jobs.map_or_else(|| default_jobs(arguments.against), usize::from),
            json: arguments.json,
            quiet: arguments.quiet,
            captures: arguments.pcap_dir.clone(),
            macros: arguments.define.iter().map(|it| definition(it)).collect::<Result<_, _>>()?,
        })
    }

    /// Strictness of a script's comparison with the host.
    pub(super) const fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// Settings for the script with this text.
    pub(super) fn settings(&self, text: &str) -> Settings {
        let dialect = self.dialect.or_else(|| Dialect::of(text)).unwrap_or_default();
        Settings { dialect, ..self.settings }
    }

    /// Definitions in scripts of this dialect.
    pub(super) fn defines(&self, dialect: Dialect) -> Defines {
        let defines = Defines::of(dialect);
        self.macros.iter().fold(defines, |defines, (name, value)| defines.with_macro(name, value))
    }
}

/// `NAME=VALUE`; a name without a value is defined as itself.
fn definition(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = text.split_once('=').unwrap_or((text, text));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        let example = format!(
            "{text:?} is not a definition: use NAME=VALUE, for example \
                               PORT=8080"
        );
        return Err(Failure::usage("-D", example));
    }
    Ok((name.into(), value.into()))
}

fn default_jobs(against: ScriptTarget) -> usize {
    match against {
        ScriptTarget::Shard => thread::available_parallelism().map_or(1, usize::from),
        ScriptTarget::Kernel => KERNEL_JOBS,
    }
}

/// Scripts against a kernel mostly wait; but with too many at once the times that they see suffer.
const KERNEL_JOBS: usize = 4;

#[cfg(test)]
mod tests;
