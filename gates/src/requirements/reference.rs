//! What a requirement refers to: `path#identifier`, or a packet script.

use crate::tree::Tree;

/// What a reference is to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any name in the file.
    Code,
    /// A function that is a test.
    Test,
    /// A packet script, or a folder of them: its path ends with `/`.
    Script,
}

/// What is wrong with the references, with the remedy.
pub(super) fn judge_all(
    kind: Kind,
    references: &[String],
    tree: &Tree,
) -> Vec<(String, &'static str)> {
    references.iter().filter_map(|it| Some((judge(kind, it, tree)?, MEND))).collect()
}

fn judge(kind: Kind, reference: &str, tree: &Tree) -> Option<String> {
    match kind {
        Kind::Script => judge_script(reference, tree),
        Kind::Code | Kind::Test => judge_name(kind, reference, tree),
    }
}

fn judge_script(reference: &str, tree: &Tree) -> Option<String> {
    let is_meant =
        |path: &str| path == reference || (reference.ends_with('/') && path.starts_with(reference));
    let mut scripts = tree.files_ending(".pkt").filter(|(path, _)| path.starts_with(SCRIPTS));
    let found = scripts.any(|(path, _)| is_meant(path));
    (!found).then(|| format!("`{reference}` is no script of `{SCRIPTS}`, and no folder of them"))
}

fn judge_name(kind: Kind, reference: &str, tree: &Tree) -> Option<String> {
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
        _ if words(text).any(|word| word == identifier) => None,
        _ => Some(format!("`{path}` does not contain `{identifier}`")),
    }
}

/// Whether `fn identifier` stands in `text`, in code.
fn defines(text: &str, identifier: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| words(line).collect::<Vec<_>>())
        .any(|words| words.windows(2).any(|pair| pair == ["fn", identifier]))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

const SCRIPTS: &str = "tests/scripts/";
const MEND: &str = "follow the code to where it went";
