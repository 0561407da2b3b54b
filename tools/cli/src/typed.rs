//! The typed command, with which readers of its result can repeat the run.

use std::env;

/// The command line as a shell takes it, without where results go, and without what header fields hold, which
/// may be a secret.
pub(crate) fn command() -> String {
    of(env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()))
}

fn of(words: impl IntoIterator<Item = String>) -> String {
    let mut told = vec!["whimbrel".to_owned()];
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, value)) => (option, Some(value.to_owned())),
            None if word.starts_with("-H") && word.len() > 2 => ("-H", Some(word[2..].to_owned())),
            None => (word.as_str(), None),
        };
        match option {
            "--json" => {}
            "--html" => drop(value.or_else(|| words.next())),
            "-H" | "--header" => {
                let field = value.or_else(|| words.next()).unwrap_or_default();
                let name = field.split(':').next().unwrap_or_default();
                told.extend(["-H".to_owned(), quoted(&format!("{name}: …"))]);
            }
            _ => told.push(quoted(&word)),
        }
    }
    told.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%[]".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
