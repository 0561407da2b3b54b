//! `-h` fits a screen: the options with a letter, and a few more, in a line each. `--help` has all, with
//! all that there is to say.

use clap::{Arg, Command};

use crate::wrap::{WIDTH, first_clause};

/// The same command line, whose `-h` is short.
pub(crate) fn with_brief_help(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let is_leaf = command.get_subcommands().count() == 0;
    let command = command.max_term_width(WIDTH).mut_subcommands(with_brief_help);
    if !is_leaf {
        // What is common to all commands does not stand in the way of any.
        return command.mut_args(|option| match option.get_short() {
            None => option.hide_short_help(true),
            Some(_) => option,
        });
    }
    let examples = command.get_after_help().cloned();
    let command = command.mut_args(|option| brief(&name, option));
    let command = match examples {
        Some(examples) => command.after_long_help(examples),
        None => command,
    };
    command.after_help("--help has every option, with all there is to say of it, and examples.")
}

/// An option as `-h` has it, if it has.
fn brief(command: &str, option: Arg) -> Arg {
    let id = option.get_id().as_str();
    let is_shown = option.is_positional()
        || option.get_short().is_some()
        || SHOWN.iter().any(|(of, shown)| *of == command && *shown == id);
    if !is_shown || option.is_hide_set() {
        return option.hide_short_help(true);
    }
    let long = option.get_long_help().or(option.get_help()).map(ToString::to_string);
    let Some(mut long) = long else { return option };
    let said = BRIEF.iter().find(|(brief, _)| *brief == id).map(|(_, text)| *text);
    let clause = first_clause(long.split(" [").next().unwrap_or_default(), COLUMNS);
    let short = said.unwrap_or(clause).to_owned();
    let default = option.get_default_values().first().and_then(|value| value.to_str());
    // One that is too long for a line there stands in the long text alone.
    let hidden = default.filter(|value| value.len() > COLUMNS).map(str::to_owned);
    if let Some(value) = &hidden {
        long += &format!(" [default: {value}]");
    }
    option.help(short).long_help(long).hide_default_value(hidden.is_some())
}

/// What `-h` shows though it has no letter.
const SHOWN: [(&str, &str); 10] = [
    ("serve", "file_root"),
    ("serve", "body"),
    ("serve", "echo"),
    ("serve", "access_log"),
    ("serve", "h2c"),
    ("serve", "json"),
    ("load", "json"),
    ("load", "fail_if"),
    ("crr", "server"),
    ("bulk", "json"),
];
/// What is said there where the first clause is not what matters.
const BRIEF: [(&str, &str); 16] = [
    ("wire", "The wire: tun:, tap:, packet:, unix:, mem:, pcap:, kernel:"),
    ("set", "Set a tunable; -S help lists them"),
    ("verbose", "Print counters; of a server a line each second"),
    ("listen", "Listen there; may repeat"),
    ("body", "Answer with that many bytes"),
    ("h2c", "Speak HTTP/2 in clear text as well"),
    ("access_log", "Append a line for each request to it (-: stdout)"),
    ("file_root", "Serve the files below this directory"),
    ("connections", "How many connections at a time"),
    ("threads", "Threads that share them (kernel: alone)"),
    ("rate", "So many per second, at a constant rate"),
    ("interval", "The length of the intervals"),
    ("ring", "Go on in another file beyond a size"),
    ("confidence", "How sure the mean of the runs shall be"),
    ("iterations", "Run it that often, until the mean is sure"),
    ("fail_if", "Exit with code 3 if that is true of the result"),
];
/// What there is room for beside an option.
const COLUMNS: usize = 50;

#[cfg(test)]
mod tests;
