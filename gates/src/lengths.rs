//! Files and functions stay short enough to be read in one sitting.
//!
//! A function counts from its signature to its closing brace, without attributes and doc
//! comments. Functions inside a macro call are not seen: their syntax belongs to the macro.

use std::fmt;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::tree::Tree;

/// The lines of every function, sorted.
pub(crate) struct Census {
    sorted: Vec<usize>,
}

/// The census of all functions, and what is too long in the tree.
pub(crate) fn judge(tree: &Tree) -> (Census, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut functions = Vec::new();
    for (name, text) in tree.files_ending(".rs") {
        findings.extend(judge_file(name, text));
        match functions_in(name, text) {
            Ok(found) => functions.extend(found),
            Err(error) => findings.push(unparsable(name, &error)),
        }
    }
    let census = Census::of(&functions);
    findings.extend(judge_functions(&functions, &census));
    (census, findings)
}

impl Census {
    fn of(functions: &[Function]) -> Self {
        let mut sorted: Vec<_> = functions.iter().map(|function| function.lines).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    fn longer_than(&self, lines: usize) -> usize {
        self.sorted.len() - self.sorted.partition_point(|&length| length <= lines)
    }

    fn shorter_than(&self, lines: usize) -> usize {
        self.sorted.partition_point(|&length| length < lines)
    }

    fn percentile(&self, percent: usize) -> usize {
        let rank = (self.sorted.len() * percent).div_ceil(100).max(1);
        self.sorted.get(rank - 1).copied().unwrap_or(0)
    }

    fn has_too_many_long(&self) -> bool {
        self.longer_than(USUAL_FUNCTION) * LONG_ONE_IN > self.sorted.len()
    }

    fn has_too_few_short(&self) -> bool {
        self.shorter_than(SHORT_FUNCTION) * 10 < self.sorted.len() * SHORT_OF_TEN
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.sorted.len();
        writeln!(f, "lines per function, {total} functions:")?;
        let mut shorter = 0;
        for (label, below) in BUCKETS {
            let here = self.shorter_than(below) - shorter;
            shorter += here;
            writeln!(f, "  {label:>7} {here:>6} {:>5.1} %", share(here, total))?;
        }
        let [half, most, nearly_all] = [50, 90, 99].map(|percent| self.percentile(percent));
        let longest = self.percentile(100);
        write!(f, "  p50 {half}, p90 {most}, p99 {nearly_all}, longest {longest}")
    }
}

fn share(part: usize, total: usize) -> f64 {
    100.0 * part as f64 / total.max(1) as f64
}

struct Function {
    file: String,
    name: String,
    line: usize,
    lines: usize,
}

fn judge_file(name: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > LONGEST_FILE).then(|| {
        let message = format!("a file has at most {LONGEST_FILE} lines, this one {lines}");
        Finding::at(name, LONGEST_FILE + 1, message, "give each noun in it a file of its own")
    })
}

fn judge_functions(functions: &[Function], census: &Census) -> Vec<Finding> {
    let over = |limit: usize| functions.iter().filter(move |function| function.lines > limit);
    let mut findings: Vec<_> = over(LONGEST_FUNCTION).map(too_long).collect();
    if census.has_too_many_long() {
        let tolerated = over(USUAL_FUNCTION).filter(|function| function.lines <= LONGEST_FUNCTION);
        findings.extend(tolerated.map(one_too_many));
    }
    if census.has_too_few_short() {
        findings.push(too_few_short(census));
    }
    findings
}

fn too_long(function: &Function) -> Finding {
    let Function { file, name, line, lines } = function;
    let message =
        format!("a function never exceeds {LONGEST_FUNCTION} lines, `{name}` has {lines}");
    Finding::at(file, *line, message, "split it where it takes a breath")
}

fn one_too_many(function: &Function) -> Finding {
    let Function { file, name, line, lines } = function;
    let message = format!(
        "a function has at most {USUAL_FUNCTION} lines, with one exception in {LONG_ONE_IN} \
         functions, now exceeded; `{name}` has {lines}"
    );
    Finding::at(file, *line, message, "split this one or another of its kind")
}

fn too_few_short(census: &Census) -> Finding {
    let short = census.shorter_than(SHORT_FUNCTION);
    let total = census.sorted.len();
    let message = format!(
        "{SHORT_OF_TEN} functions in ten have fewer than {SHORT_FUNCTION} lines, now {short} of \
         {total} ({:.1} %)",
        share(short, total)
    );
    Finding::of_file(".", message, "split the longest functions of the newest files")
}

fn unparsable(name: &str, error: &syn::Error) -> Finding {
    let line = error.span().start().line;
    Finding::at(name, line, format!("not Rust: {error}"), "mend it or do not call it .rs")
}

fn functions_in(file: &str, text: &str) -> Result<Vec<Function>, syn::Error> {
    let mut visitor = FunctionVisitor { file, found: Vec::new() };
    visitor.visit_file(&syn::parse_file(text)?);
    Ok(visitor.found)
}

struct FunctionVisitor<'a> {
    file: &'a str,
    found: Vec<Function>,
}

impl FunctionVisitor<'_> {
    fn record(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let line = signature.span().start().line;
        self.found.push(Function {
            file: self.file.to_owned(),
            name: signature.ident.to_string(),
            line,
            lines: body.brace_token.span.close().end().line + 1 - line,
        });
    }
}

impl<'ast> Visit<'ast> for FunctionVisitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.record(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.record(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.record(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// Beyond this a file holds more than one noun.
const LONGEST_FILE: usize = 800;
/// The hard stop: no function is longer.
const LONGEST_FUNCTION: usize = 100;
/// Length of a function above which it counts as an exception.
const USUAL_FUNCTION: usize = 60;
/// One function in this many may lie between the two limits above.
const LONG_ONE_IN: usize = 100;
/// A function below this is short,
const SHORT_FUNCTION: usize = 30;
/// and so many in ten are.
const SHORT_OF_TEN: usize = 9;
/// The rows of the printed distribution: label, and the first length that is too long for it.
const BUCKETS: [(&str, usize); 6] = [
    ("1-9", 10),
    ("10-19", 20),
    ("20-29", 30),
    ("30-60", 61),
    ("61-100", 101),
    (">100", usize::MAX),
];

#[cfg(test)]
mod tests;
