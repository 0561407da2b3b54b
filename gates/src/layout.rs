//! The tests of `foo.rs` live in `foo/tests.rs`, so that a file reads as what it does.

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::tree::Tree;

/// Inline test modules, and tests outside of test files.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    tree.files_ending(".rs").flat_map(|(name, text)| judge_file(name, text)).collect()
}

fn judge_file(name: &str, text: &str) -> Vec<Finding> {
    // What does not parse is reported where lengths are.
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut visitor = TestVisitor { file: name, findings: Vec::new() };
    visitor.visit_file(&file);
    visitor.findings
}

struct TestVisitor<'a> {
    file: &'a str,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for TestVisitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && (item.ident == "tests" || is_for_tests(&item.attrs)) {
            let message = format!("the test module `{}` stands inside its subject", item.ident);
            self.findings.push(Finding::at(
                self.file,
                item.ident.span().start().line,
                message,
                MOVE,
            ));
            return;
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) && !holds_tests(self.file) {
            let message = format!("the test `{}` stands outside of a test file", item.sig.ident);
            let line = item.sig.ident.span().start().line;
            self.findings.push(Finding::at(self.file, line, message, MOVE));
        }
    }
}

/// `#[test]`, or another runtime's `#[path::test]`.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_named_test = |attribute: &syn::Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
    };
    attributes.iter().any(is_named_test)
}

/// `#[cfg(test)]` and nothing more complicated.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is_cfg_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_cfg_test)
}

/// True for the name of a file whose content is tests.
pub(crate) fn holds_tests(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/") || name.starts_with("tests/")
}

const MOVE: &str = "move it from `foo.rs` to `foo/tests.rs` (of `lib.rs`: to `src/tests.rs`)";

#[cfg(test)]
mod tests;
