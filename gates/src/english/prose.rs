//! The lines of a file that are read as prose, without quotations and code.

/// The lines of `text` to be judged, each with its number from 1.
///
/// In Markdown and in comments, quotations between `"` and code between back-ticks are left out, also
/// when they go on in the next line. Code is judged as it stands, for its strings and names.
pub(super) fn lines(name: &str, text: &str) -> Vec<(usize, String)> {
    match name.rsplit('/').next().and_then(|file| file.rsplit_once('.')).map(|(_, ending)| ending) {
        Some("md") => documents(text),
        Some("rs" | "pkt") => sources(text),
        Some("toml" | "sh") | None => {
            (1..).zip(text.lines()).map(|(number, line)| (number, line.to_owned())).collect()
        }
        Some(_) => Vec::new(),
    }
}

fn documents(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut quotation = Quotation::default();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if line.trim().is_empty() {
            quotation = Quotation::default();
        } else if !is_code && !line.starts_with('>') {
            lines.push((number, quotation.cut(line)));
        }
    }
    lines
}

fn sources(text: &str) -> Vec<(usize, String)> {
    let mut quotation = Quotation::default();
    let numbered = (1..).zip(text.lines()).map(|(number, line)| match comment(line) {
        Some(prose) if !prose.trim().is_empty() => (number, quotation.cut(prose)),
        _ => {
            quotation = Quotation::default();
            (number, line.to_owned())
        }
    });
    numbered.collect()
}

/// The text of a line that is a comment and nothing else.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']))
}

/// An open quotation or piece of code at the end of a line.
#[derive(Default)]
struct Quotation {
    is_quote: bool,
    is_code: bool,
}

impl Quotation {
    /// The parts of `line` outside of quotations and code.
    fn cut(&mut self, line: &str) -> String {
        let mut kept = String::new();
        for c in line.chars() {
            match c {
                '`' => self.is_code = !self.is_code,
                '"' if !self.is_code => self.is_quote = !self.is_quote,
                c if !self.is_code && !self.is_quote => kept.push(c),
                _ => {}
            }
        }
        kept
    }
}

/// Each place where `word` stands in `line` as a whole word.
pub(super) fn words<'a>(line: &'a str, word: &str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, found)| {
        let before = line[..at].chars().next_back();
        let after = line[at + found.len()..].chars().next();
        (!before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)).then_some(found)
    })
}

/// Each name with `octet` in it, but for JSON keys, the media type and the methods of std's addresses.
pub(super) fn octets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("octet").filter_map(|(at, _)| {
        let begin = line[..at].trim_end_matches(is_of_name).len();
        let rest = &line[begin..];
        let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        let (before, after) = (&line[..begin], &rest[name.len()..]);
        let is_key = before.ends_with('"') && after.starts_with(['"', '\\']);
        let is_of_std =
            name == "octets" && before.ends_with(['.', ':']) && after.starts_with(['(', ')']);
        (!is_key && !is_of_std && !after.starts_with("-stream")).then_some(name)
    })
}

/// The first lines of doc comments that begin with one of `words`, with that word.
pub(super) fn openings<'a>(text: &str, words: &[&'a str]) -> Vec<(usize, &'a str)> {
    let mut openings = Vec::new();
    let mut was_doc = false;
    for (number, line) in (1..).zip(text.lines()) {
        let doc = line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!"));
        if let (Some(doc), false) = (doc, was_doc) {
            let begins = |word: &&&str| {
                let rest = doc.trim_start().strip_prefix(**word);
                rest.is_some_and(|rest| !rest.starts_with(is_of_name))
            };
            openings.extend(words.iter().find(begins).map(|word| (number, *word)));
        }
        was_doc = doc.is_some();
    }
    openings
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
