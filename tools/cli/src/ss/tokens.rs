//! Words of a filter.

/// True if a filter begins with this word, so that it names no process.
pub(super) fn begins_filter(word: &str) -> bool {
    let first = split(word).into_iter().next().unwrap_or_default();
    BEGINNINGS.contains(&first.as_str())
}

/// Splits a text into words, brackets and comparisons.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut kind = Kind::Space;
    for letter in text.chars() {
        let next = match letter {
            '(' | ')' => Kind::Bracket,
            '=' | '!' | '<' | '>' | '&' | '|' => Kind::Sign,
            letter if letter.is_whitespace() => Kind::Space,
            _ => Kind::Word,
        };
        match (next, tokens.last_mut()) {
            (Kind::Space, _) => {}
            (Kind::Word | Kind::Sign, Some(last)) if next == kind => last.push(letter),
            _ => tokens.push(letter.into()),
        }
        kind = next;
    }
    tokens
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Space,
    Word,
    Sign,
    Bracket,
}

const BEGINNINGS: &[&str] = &[
    "state",
    "exclude",
    "excl",
    "dst",
    "src",
    "dport",
    "sport",
    "not",
    "!",
    "(",
    "dev",
    "fwmark",
    "cgroup",
    "autobound",
];
