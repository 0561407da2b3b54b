//! `whimbrel completions` and `whimbrel man`: made of the command line itself.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output;

/// What was typed behind `completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// What was typed behind `man`.
#[derive(Args, Debug)]
pub(crate) struct Manual {
    /// Write the pages of all commands into this directory [default: print the first page].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints what a shell reads to complete `command`.
pub(crate) fn completions(
    arguments: &Completions,
    mut command: clap::Command,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "whimbrel", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Prints the page of `command`, or writes those of all its subcommands too.
pub(crate) fn manual(arguments: &Manual, command: clap::Command) -> Result<(), Failure> {
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(Failure::run)?;
        return output::print(&String::from_utf8_lossy(&page));
    };
    let written = fs::create_dir_all(folder);
    written.and_then(|()| clap_mangen::generate_to(command, folder)).map_err(|error| {
        let folder = folder.display();
        Failure::run(format!("{folder}: {error}; give a directory that can be written"))
    })
}
