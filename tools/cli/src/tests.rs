use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;
use whimbrel_io::WireSpec;

use super::*;

#[path = "../../../tests/harness/files.rs"]
mod files;

#[test]
fn command_line_definition_is_valid() {
    Command::command().debug_assert();
}

#[test]
fn global_short_options_have_one_meaning() {
    let reserved = [('w', "wire"), ('S', "set"), ('v', "verbose"), ('o', "output")];
    // Their letters are those of the commands of the same name.
    let others = ["ss", "sysctl"];
    let all = every_command(Command::command());
    for command in all.iter().filter(|it| !others.contains(&it.get_name())) {
        for option in command.get_arguments() {
            let Some(short) = option.get_short() else { continue };
            let meaning = reserved.iter().find(|(letter, _)| *letter == short);
            let expected = meaning.map_or(option.get_long(), |(_, long)| Some(*long));
            assert_eq!(option.get_long(), expected, "-{short} of {}", command.get_name());
        }
    }
}

#[test]
fn every_example_of_the_documentation_parses() {
    let mut examples = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for words in commands(&text) {
            assert_parses(&words, &file.display().to_string());
            examples += 1;
        }
    }
    assert!(examples > 15, "{examples} examples were found");
}

#[test]
fn the_help_of_every_command_ends_with_examples_of_it() {
    let all = every_command(Command::command());
    for command in all.iter().filter(|command| command.get_subcommands().count() == 0) {
        let name = command.get_name();
        let help = command.get_after_help().unwrap_or_else(|| panic!("{name} has no examples"));
        // Command lines are those without further indent.
        let shell = help.to_string().replace("Examples:", "```sh").replace("\n      ", "\n# ");
        let examples = commands(&(shell + "\n```\n"));
        assert!(!examples.is_empty(), "{help}");
        for words in examples {
            assert_parses(&words, name);
            assert!(words.iter().any(|word| word == name), "{words:?} is no example of {name}");
        }
    }
}

fn assert_parses(words: &[String], of: &str) {
    let shown = format!("{of}: whimbrel {}", words.join(" "));
    let line = std::iter::once("whimbrel".to_owned()).chain(words.iter().cloned());
    match Command::try_parse_from(line) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {}
        Err(error) => panic!("{shown}\n{error}"),
    }
    let wires = words.windows(2).filter(|pair| pair[0] == "-w" || pair[0] == "--wire");
    for wire in wires {
        wire[1].parse::<WireSpec>().unwrap_or_else(|error| panic!("{shown}\n{error}"));
    }
}

#[test]
fn examples_come_only_from_shell_blocks() {
    let text = "whimbrel no\n```sh\n$ sudo whimbrel load \\\n  -H 'A: b c'  # all\ncurl x\n\
                A=1 cargo run --release -- crr | jq . > x\n\
                cargo run -p whimbrel --example web\n```\n```text\nwhimbrel no\n```\n\
                ```console,ignore\n$ whimbrel man\nwhimbrel no\n```\n";
    assert_eq!(commands(text), [vec!["load", "-H", "A: b c"], vec!["crr"], vec!["man"]]);
}

fn every_command(command: clap::Command) -> Vec<clap::Command> {
    let inner: Vec<_> = command.get_subcommands().cloned().flat_map(every_command).collect();
    std::iter::once(command).chain(inner).collect()
}

/// Files for users.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    [vec![root.join("README.md")], files::below(&root.join("docs"), "md")].concat()
}

/// The words behind the program's name on each of its lines in the blocks of the shell.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let (mut in_shell, mut has_output) = (false, false);
    let mut commands = Vec::new();
    for line in joined.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            has_output = language.starts_with("console");
            in_shell = !in_shell && (has_output || language.trim() == "sh");
            continue;
        }
        if has_output && !line.starts_with("$ ") {
            continue;
        }
        let words = words(&substituted(line));
        // Behind `-p` it is the library's.
        let library = |at: usize| at > 0 && words[at - 1] == "-p";
        let ours = (0..words.len()).find(|at| words[*at] == "whimbrel" && !library(*at));
        let ours = ours.map(|at| at + 1);
        // Of another workspace's program, `--manifest-path` stands between.
        let built =
            words.windows(3).position(|run| run == ["run", "--release", "--"]).map(|at| at + 3);
        if let Some(from) = ours.or(built).filter(|_| in_shell) {
            let ours = words[from.min(words.len())..].iter();
            let ends = |word: &&String| !matches!(word.as_str(), "|" | ">");
            commands.push(ours.take_while(ends).cloned().collect());
        }
    }
    commands
}

/// The line with an address in place of a command's output.
fn substituted(line: &str) -> String {
    let parts = line.split("$(").enumerate();
    let parts = parts.map(|(place, part)| match part.split_once(')') {
        Some((_, rest)) if place > 0 => format!("10.0.0.3{rest}"),
        _ => part.to_owned(),
    });
    parts.collect()
}

/// The words of a line as a shell parts them, as far as our examples go: blanks, quotes, comments.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        let word = words.last_mut().unwrap();
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '#') if word.is_empty() => break,
            (None, ' ') => words.push(String::new()),
            (None, '|' | '>') => words.extend([letter.to_string(), String::new()]),
            _ => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
