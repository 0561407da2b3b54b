//! Text of peers, files and documents reaches a terminal through `Foreign`. The program `whimbrel`
//! prints through `streams`, which escapes control characters that got past it.
//!
//! So only files with a reason may write on the standard streams directly, turn bytes or file names
//! into unchecked text, or take foreign text unescaped.

use crate::finding::Finding;
use crate::tree::Tree;

/// A word that prints around both, where it may stand, and what to write instead.
struct Rule {
    words: &'static [&'static str],
    /// In which crates it is looked for.
    crates: &'static [&'static str],
    /// Files that may, or folders of them.
    may: &'static [&'static str],
    message: &'static str,
    remedy: &'static str,
}

/// Code that prints around `Foreign` and `output`.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let code = tree.files_ending(".rs").filter(|(file, _)| is_code(file));
    code.flat_map(|(file, text)| judge_file(file, text)).collect()
}

/// True if what stands in this file runs outside of tests.
fn is_code(file: &str) -> bool {
    let is_ours = file.starts_with("crates/") || file.starts_with("tools/");
    is_ours && file.contains("/src/") && !file.contains("tests")
}

fn judge_file(file: &str, text: &str) -> Vec<Finding> {
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().starts_with("//"));
    let broken = numbered.flat_map(|(number, line)| {
        let broken = RULES.iter().filter(move |rule| rule.is_for(file) && rule.is_broken_by(line));
        broken.map(move |rule| Finding::at(file, number, rule.message.to_owned(), rule.remedy))
    });
    broken.collect()
}

impl Rule {
    fn is_for(&self, file: &str) -> bool {
        let is_in = |name: &&str| {
            let folder = file.split('/').nth(1);
            folder == Some(*name)
        };
        let is_of = |place: &&str| {
            file.strip_suffix(".rs").is_some_and(|it| it == *place)
                || file.starts_with(&format!("{place}/"))
        };
        self.crates.iter().any(is_in) && !self.may.iter().any(is_of)
    }

    fn is_broken_by(&self, line: &str) -> bool {
        self.words.iter().any(|word| {
            line.match_indices(word).any(|(at, _)| {
                // A stream may be asked whether it is a terminal; `debug!(` is another macro than `bug!(`.
                let before = line[..at].chars().next_back();
                let is_whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
                let after = &line[at + word.len()..];
                (is_whole || word.starts_with('.')) && !after.starts_with(".is_terminal()")
            })
        })
    }
}

const EVERYWHERE: &[&str] = &["apps", "sim", "script", "lab", "io", "kernel", "cli"];
const RULES: [Rule; 4] = [
    Rule {
        words: &["stdout()", "stderr()", "print!(", "println!(", "eprint!(", "eprintln!("],
        crates: EVERYWHERE,
        may: &[
            // The one that escapes, and what writes by it.
            "tools/cli/src/streams",
            "tools/cli/src/output",
            "tools/cli/src/report",
            // A screen, which shows cells; a log that escapes all but ASCII; a capture, of bytes.
            "tools/cli/src/runs/screen",
            "tools/cli/src/serving/access_log",
            "tools/cli/src/capture",
        ],
        message: "what is printed goes by `streams`, and this writes on a stream itself",
        remedy: "call `output::print` or `streams::tell`",
    },
    Rule {
        words: &["from_utf8_lossy(", "to_string_lossy(", ".display()"],
        crates: EVERYWHERE,
        may: &[
            // A script's text is parsed, a command line quoted, a link escaped by its page, an option of a
            // socket compared.
            "tools/cli/src/script/files",
            "tools/cli/src/typed",
            "tools/cli/src/page_file",
            "tools/kernel/src/script/options",
            // What programs that the lab itself started print, to be parsed.
            "tools/cli/src/lab/real/testbed",
            "tools/cli/src/lab/real/fddi_70ms",
        ],
        message: "bytes and paths of others are shown by `Foreign`, and this makes unchecked text of them",
        remedy: "show `Foreign::new(bytes)` or `whimbrel_io::text::path(path)`",
    },
    Rule {
        words: &["].as_str()", "Value::as_str"],
        crates: &["apps", "cli"],
        may: &[
            // What they find becomes `Foreign`, or is compared; pages escape.
            "tools/apps/src/iperf3",
            "tools/cli/src/compare",
            "tools/cli/src/sim/goals",
            "tools/cli/src/html",
            // Documents of this program itself, and lines of another of this user's.
            "tools/cli/src/lab/document",
            "tools/cli/src/attach",
            "tools/cli/src/ss",
            "tools/cli/src/sysctl/running",
        ],
        message: "text of a document is `Foreign`, and this takes it unchecked",
        remedy: "keep it as a `Foreign<String>`",
    },
    Rule {
        words: &[".verbatim()", "Foreign::verbatim"],
        crates: EVERYWHERE,
        may: &[
            // They compare, or write JSON, which escapes by itself.
            "tools/apps/src/iperf3",
            "tools/cli/src/bulk/json",
            "tools/cli/src/bulk/iperf3",
            "tools/cli/src/compare",
        ],
        message: "foreign text is displayed, and this takes it as it came",
        remedy: "display it; to compare it or to write it as JSON, add the file to the gate's list",
    },
];

#[cfg(test)]
mod tests;
