//! A reference of a requirement: `path#identifier`.

use crate::tree::Tree;

/// Target of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any name in the file.
    Code,
    /// A function that is a test.
    Test,
}

/// Faults of the references, with remedies.
pub(super) fn judge_all(
    kind: Kind,
    references: &[String],
    tree: &Tree,
) -> Vec<(String, &'static str)> {
    references.iter().filter_map(|it| Some((judge(kind, it, tree)?, MEND))).collect()
}

fn judge(kind: Kind, reference: &str, tree: &Tree) -> Option<String> {
    let Some((path, identifier)) = reference.split_once('#').filter(|(_, it)| !it.is_empty())
    else {
        return Some(format!("a reference is `path#identifier`, not `{reference}`"));
    };
    let Some(text) = tree.text(path) else {
        return Some(format!("`{path}` is no text file of the repository"));
    };
    match kind {
        Kind::Test if defines(text, identifier) => None,
        Kind::Test => Some(format!("`{path}` has no `fn {identifier}`")),
        Kind::Code if words(text).any(|word| word == identifier) => None,
        Kind::Code => Some(format!("`{path}` does not contain `{identifier}`")),
    }
}

/// True if `fn identifier` stands in `text`, in code.
fn defines(text: &str, identifier: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| words(line).collect::<Vec<_>>())
        .any(|words| words.windows(2).any(|pair| pair == ["fn", identifier]))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

const MEND: &str = "follow the code to where it went";
