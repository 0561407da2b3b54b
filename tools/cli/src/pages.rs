//! `whimbrel completions` and `whimbrel man`: made of the command line itself.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use whimbrel_io::text;

use crate::failure::Failure;
use crate::output;

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub(crate) struct Manual {
    /// The command whose page to print, for example: script run [default: the whole program].
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory instead (created if missing).
    #[arg(long = "dir", value_name = "DIR", conflicts_with = "command")]
    folder: Option<PathBuf>,
}

/// Prints the completion script of `command` for a shell.
pub(crate) fn completions(
    arguments: &Completions,
    mut command: clap::Command,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "whimbrel", &mut script);
    output::print(&String::from_utf8(script).map_err(Failure::run)?)
}

/// Prints the page of `program` or of one of its commands, or writes all pages.
pub(crate) fn manual(arguments: &Manual, mut program: clap::Command) -> Result<(), Failure> {
    let Some(folder) = &arguments.folder else {
        program.build();
        let named = arguments.command.iter().try_fold(&program, subcommand)?;
        let mut page = Vec::new();
        Man::new(named.clone()).render(&mut page).map_err(Failure::run)?;
        return output::print(&String::from_utf8(page).map_err(Failure::run)?);
    };
    let written = fs::create_dir_all(folder);
    written.and_then(|()| clap_mangen::generate_to(program, folder)).map_err(|error| {
        let folder = text::path(folder);
        Failure::run(format!("--dir {folder}: {error}; use a directory that can be written"))
    })
}

/// The command of this name that `command` has.
fn subcommand<'c>(command: &'c clap::Command, name: &String) -> Result<&'c clap::Command, Failure> {
    command.find_subcommand(name).ok_or_else(|| {
        let all = command.get_subcommands().map(clap::Command::get_name);
        let all: Vec<_> = all.filter(|name| *name != "help").collect();
        let whose = command.get_bin_name().filter(|name| !name.is_empty());
        let whose = whose.unwrap_or_else(|| command.get_name());
        let text = match all.is_empty() {
            true => format!("{name:?}: {whose} has no subcommands: leave it out"),
            false => format!("{whose} has no command {name:?}: give one of {}", all.join(", ")),
        };
        Failure::usage("COMMAND", text)
    })
}
