//! Replaces defined names by their values, except in comments, texts, commands and snippets.

use alloc::string::String;

use super::Defines;

/// The text with its names replaced once: values are not searched again.
pub(super) fn replace(text: &str, defines: &Defines) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (verbatim, behind) = rest.split_at(verbatim_len(rest));
        let (word, behind) = behind.split_at(behind.find(|c| !is_name(c)).unwrap_or(behind.len()));
        replaced.push_str(verbatim);
        replaced.push_str(defines.value(word).unwrap_or(word));
        rest = behind;
    }
    replaced
}

/// Length of the text that cannot be a name: up to the next letter, or all of a quotation.
fn verbatim_len(text: &str) -> usize {
    const QUOTATIONS: [(&str, &str); 5] =
        [("//", "\n"), ("/*", "*/"), ("\"", "\""), ("`", "`"), ("%{", "}%")];
    for (begin, end) in QUOTATIONS {
        if let Some(inner) = text.strip_prefix(begin) {
            return inner.find(end).map_or(text.len(), |at| begin.len() + at + end.len());
        }
    }
    match text.chars().next() {
        Some(c) if !is_name(c) => c.len_utf8(),
        _ => 0,
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
