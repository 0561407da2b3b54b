use clap::{ArgAction, CommandFactory};

use super::*;

/// Every command that does something, with the words that lead to it.
fn leaves(command: &Command, path: &[String], all: &mut Vec<(Vec<String>, Command)>) {
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        let path = [path, &[child.get_name().to_owned()]].concat();
        if child.get_subcommands().count() == 0 {
            all.push((path.clone(), child.clone()));
        }
        leaves(child, &path, all);
    }
}

/// The output of `words` with that option.
fn help(words: &[String], option: &str) -> String {
    let line = [&["whimbrel".to_owned()], words, &[option.to_owned()]].concat();
    let command = with_brief_help(crate::Command::command());
    command.try_get_matches_from(line).unwrap_err().to_string()
}

fn every_leaf() -> Vec<(Vec<String>, Command)> {
    let mut program = with_brief_help(crate::Command::command());
    program.build();
    let mut all = Vec::new();
    leaves(&program, &[], &mut all);
    assert!(all.len() >= 9, "{}", all.len());
    all
}

#[test]
fn short_help_fits_a_screen_and_has_every_short_option() {
    for (words, command) in every_leaf() {
        let text = help(&words, "-h");
        let lines = text.lines().count();
        assert!(lines <= 40, "{words:?}: {lines} lines\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        for short in command.get_arguments().filter_map(Arg::get_short) {
            let is = |line: &str| line.trim_start().starts_with(&format!("-{short}"));
            assert!(text.lines().any(is), "-{short} is not in:\n{text}");
        }
        assert!(text.contains("--help has every option"), "{text}");
    }
}

#[test]
fn long_help_has_every_option_in_full_and_examples() {
    for (words, command) in every_leaf() {
        let text = help(&words, "--help");
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let shown = match option.get_long() {
                Some(long) => format!("--{long}"),
                None => option.get_value_names().unwrap()[0].to_string(),
            };
            assert!(text.contains(&shown), "{shown} is not in:\n{text}");
            // Its last words stand there, however lines are broken.
            let is_ours = !matches!(option.get_action(), ArgAction::Help | ArgAction::HelpLong);
            let whole = option.get_long_help().or(option.get_help()).filter(|_| is_ours);
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let whole = whole.map_or_else(String::new, |text| words(&text.to_string()));
            let end: String = whole.chars().rev().take(20).collect();
            let end: String = end.chars().rev().collect();
            assert!(words(&text).contains(end.trim_end_matches('.')), "{shown}: {end}\n{text}");
        }
        assert!(text.contains("Examples:\n"), "{text}");
    }
}
