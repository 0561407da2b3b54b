//! Comments, documents, help and errors are plain English, and test names are short.

mod prose;

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::layout::is_test;
use crate::tree::Tree;

/// A kind of fault.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Word,
    Octet,
    Opening,
    TestName,
}

/// Each place that breaks a rule.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    tree.files().flat_map(|(name, text)| findings(name, text)).collect()
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Word => "banned words",
            Self::Octet => "a name with octets",
            Self::Opening => "a doc that begins with",
            Self::TestName => "the long test name",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Word => "name the subject, or put a quotation in quotation marks",
            Self::Octet => "write `byte`",
            Self::Opening => "begin with what the item is or does; of a `bool`, \"True if\"",
            Self::TestName => "name it by subject, verb and result, in at most 60 letters",
        }
    }
}

fn findings(name: &str, text: &str) -> Vec<Finding> {
    if name.starts_with("gates/src/english") {
        return Vec::new();
    }
    let finding = |line, kind: Kind, text: &str| {
        Finding::at(name, line, format!("{} `{text}`", kind.name()), kind.remedy())
    };
    let mut findings = Vec::new();
    for (line, prose) in prose::lines(name, text) {
        let prose = prose.to_lowercase();
        let words = WORDS.iter().flat_map(|word| prose::words(&prose, word));
        findings.extend(words.map(|word| finding(line, Kind::Word, word)));
        findings.extend(prose::octets(&prose).map(|word| finding(line, Kind::Octet, word)));
    }
    if name.ends_with(".rs") {
        let openings = prose::openings(text, &QUESTIONS).into_iter();
        findings.extend(openings.map(|(line, word)| finding(line, Kind::Opening, word)));
        let names = long_test_names(text).into_iter();
        findings.extend(names.map(|(line, test)| finding(line, Kind::TestName, &test)));
    }
    findings
}

fn long_test_names(text: &str) -> Vec<(usize, String)> {
    // The lengths gate reports what does not parse.
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut tests = Tests(Vec::new());
    tests.visit_file(&file);
    tests.0
}

struct Tests(Vec<(usize, String)>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let name = item.sig.ident.to_string();
        if is_test(&item.attrs) && name.len() > LONGEST_TEST_NAME {
            self.0.push((item.sig.ident.span().start().line, name));
        }
        visit::visit_item_fn(self, item);
    }
}

const LONGEST_TEST_NAME: usize = 60;
/// Words and phrases that hide who does what.
const WORDS: [&str; 13] = [
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "beside",
    "besides",
    "of late",
    "let go",
    "lets go",
    "is told",
    "as it is",
    "what few",
    "whatever comes",
];
/// Words that may not begin a doc comment.
const QUESTIONS: [&str; 8] =
    ["What", "Whether", "Who", "Whom", "Whose", "The same", "How", "Where"];

#[cfg(test)]
mod tests;
