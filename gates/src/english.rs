//! Comments, documents, help and errors are plain English, and test names are short.
//!
//! What the tree had before this gate stands in [`CEILINGS`], a row for each folder, and only falls.

mod prose;

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::layout::is_test;
use crate::tree::Tree;

/// A kind of fault, in the order of the columns of [`CEILINGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Word,
    Octet,
    Opening,
    TestName,
}

/// One place that breaks a rule.
struct Fault {
    file: String,
    line: usize,
    kind: Kind,
    text: String,
}

/// A folder, and how many faults of each [`Kind`] it may still have.
type Ceiling = (&'static str, [usize; 4]);
type Faults = BTreeMap<(String, Kind), Vec<Fault>>;

/// Notes on ceilings that can be lowered, and every fault of a folder that exceeds its ceiling.
pub(crate) fn judge(tree: &Tree) -> (Vec<String>, Vec<Finding>) {
    judge_by(CEILINGS, tree)
}

fn judge_by(ceilings: &[Ceiling], tree: &Tree) -> (Vec<String>, Vec<Finding>) {
    let mut faults = Faults::new();
    for fault in tree.files().flat_map(|(name, text)| faults_of(name, text)) {
        faults.entry((folder_of(&fault.file), fault.kind)).or_default().push(fault);
    }
    (notes(ceilings, &faults), findings(ceilings, &faults))
}

fn notes(ceilings: &[Ceiling], faults: &Faults) -> Vec<String> {
    let mut notes = Vec::new();
    for (folder, limits) in ceilings {
        for (kind, &limit) in KINDS.into_iter().zip(limits) {
            let count = faults.get(&((*folder).to_owned(), kind)).map_or(0, Vec::len);
            if count < limit {
                let name = kind.name();
                notes.push(format!("{HERE}: lower {name} of {folder} from {limit} to {count}"));
            }
        }
    }
    notes
}

fn findings(ceilings: &[Ceiling], faults: &Faults) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((folder, kind), found) in faults {
        let (limit, count, name) = (limit(ceilings, folder, *kind), found.len(), kind.name());
        if count > limit {
            findings.extend(found.iter().map(|Fault { file, line, text, .. }| {
                let message =
                    format!("{folder} has at most {limit} {name}, now {count}; here `{text}`");
                Finding::at(file, *line, message, kind.remedy())
            }));
        }
    }
    findings
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Word => "banned words",
            Self::Octet => "octets",
            Self::Opening => "docs that begin with a question",
            Self::TestName => "long test names",
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

fn limit(ceilings: &[Ceiling], folder: &str, kind: Kind) -> usize {
    let row = ceilings.iter().find(|row| row.0 == folder);
    row.and_then(|row| row.1.get(kind as usize)).copied().unwrap_or(0)
}

/// The first two folders of a file's path.
fn folder_of(file: &str) -> String {
    let folders: Vec<_> = file.split('/').collect();
    match folders.as_slice() {
        [first, second, _, ..] => format!("{first}/{second}"),
        [first, _] => (*first).to_owned(),
        _ => ".".to_owned(),
    }
}

fn faults_of(name: &str, text: &str) -> Vec<Fault> {
    if name.starts_with("gates/src/english") {
        return Vec::new();
    }
    let fault =
        |line, kind, text: &str| Fault { file: name.to_owned(), line, kind, text: text.to_owned() };
    let mut faults = Vec::new();
    for (line, prose) in prose::lines(name, text) {
        let prose = prose.to_lowercase();
        let words = WORDS.iter().flat_map(|word| prose::words(&prose, word));
        faults.extend(words.map(|word| fault(line, Kind::Word, word)));
        faults.extend(prose::octets(&prose).map(|word| fault(line, Kind::Octet, word)));
    }
    if name.ends_with(".rs") {
        let openings = prose::openings(text, &QUESTIONS).into_iter();
        faults.extend(openings.map(|(line, word)| fault(line, Kind::Opening, word)));
        let names = long_test_names(text).into_iter();
        faults.extend(names.map(|(line, test)| fault(line, Kind::TestName, &test)));
    }
    faults
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

const KINDS: [Kind; 4] = [Kind::Word, Kind::Octet, Kind::Opening, Kind::TestName];
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
const HERE: &str = "gates/src/english.rs";

/// The ceilings of folders from before this gate. A number rises only with files that move there.
const CEILINGS: &[Ceiling] = &[
    ("bench/examples", [0, 2, 0, 0]),
    ("bench/src", [0, 12, 0, 0]),
    ("tools/apps", [0, 13, 0, 0]),
    ("crates/base", [0, 11, 0, 0]),
    ("tools/cli", [0, 18, 0, 0]),
    ("crates/io", [0, 39, 0, 0]),
    ("tools/kernel", [0, 9, 0, 0]),
    ("crates/link", [0, 7, 0, 0]),
    ("tools/posix", [0, 13, 0, 0]),
    ("tools/script", [0, 15, 0, 0]),
    ("tools/sim", [0, 20, 0, 0]),
    ("crates/stack", [0, 146, 0, 0]),
    ("crates/tcp", [0, 63, 0, 0]),
    ("crates/udp", [0, 8, 0, 0]),
    ("crates/whimbrel", [0, 13, 0, 0]),
    ("crates/wire", [0, 34, 0, 0]),
    ("docs/reference", [0, 0, 0, 0]),
    ("gates/wasm-probe", [0, 9, 0, 0]),
];

#[cfg(test)]
mod tests;
