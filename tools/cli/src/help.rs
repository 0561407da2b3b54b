//! `-h` fits a screen: the options with a letter, and a few more, in a line each. `--help` describes
//! all in full.

use clap::{Arg, Command};

use crate::wrap::{WIDTH, first_clause};

/// Returns the command line with a short `-h`.
pub(crate) fn with_brief_help(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let is_leaf = command.get_subcommands().count() == 0;
    let command = command.max_term_width(WIDTH).mut_subcommands(with_brief_help);
    if !is_leaf {
        // Options of all commands are not repeated in each.
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
    command.after_help("--help has every option in full, and examples.")
}

/// The short form of an option for `-h`, if it is shown there.
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
    // A default too long for a line is shown only in the long text.
    let hidden = default.filter(|value| value.len() > COLUMNS).map(str::to_owned);
    if let Some(value) = &hidden {
        long += &format!(" [default: {value}]");
    }
    option.help(short).long_help(long).hide_default_value(hidden.is_some())
}

/// Options without a letter that `-h` shows.
const SHOWN: [(&str, &str); 13] = [
    ("serve", "file_root"),
    ("serve", "body"),
    ("serve", "echo"),
    ("serve", "access_log"),
    ("serve", "h2c"),
    ("serve", "json"),
    ("forward", "to"),
    ("forward", "proxy_protocol"),
    ("forward", "json"),
    ("load", "json"),
    ("load", "fail_if"),
    ("crr", "server"),
    ("bulk", "json"),
];
/// Texts of `-h` for options whose first clause is not enough.
const BRIEF: [(&str, &str); 16] = [
    ("wire", "The wire: tun:, tap:, packet:, unix:, mem:, pcap:, kernel:"),
    ("set", "Set a tunable; -S help lists them"),
    ("verbose", "Print counters; from a server a line each second"),
    ("listen", "Address to listen at; may repeat"),
    ("body", "Bytes of each response"),
    ("h2c", "Accept HTTP/2 without TLS as well"),
    ("access_log", "Append a line per request (-: stdout)"),
    ("file_root", "Serve the files below this directory"),
    ("connections", "Connections open at the same time"),
    ("threads", "Threads that share them (only kernel:)"),
    ("rate", "Requests per second, at a constant rate"),
    ("interval", "Length of the intervals"),
    ("ring", "Start a new file beyond a size"),
    ("confidence", "Required certainty of the mean of the runs"),
    ("iterations", "Number of runs, until the mean is certain"),
    ("fail_if", "Exit with code 3 if this is true of the result"),
];
/// Columns of text next to an option.
const COLUMNS: usize = 50;

#[cfg(test)]
mod tests;
