//! A function takes one thing by each argument.
//!
//! A tuple that its own signature takes apart is two arguments that pass for one: the rule that there
//! are six at most sees one, and a caller names neither. Functions of traits that stand elsewhere
//! have the arguments that the trait gives them.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::tree::Tree;

/// Signatures with a tuple as a pattern.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files_ending(".rs").filter(|(_, text)| text.contains("): "));
    sources.flat_map(|(name, text)| judge_text(name, text)).collect()
}

fn judge_text(name: &str, text: &str) -> Vec<Finding> {
    let Ok(parsed) = syn::parse_file(text) else { return Vec::new() };
    let mut signatures = Signatures { file: name, found: Vec::new() };
    signatures.visit_file(&parsed);
    signatures.found
}

struct Signatures<'a> {
    file: &'a str,
    found: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Signatures<'_> {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        for argument in &signature.inputs {
            let syn::FnArg::Typed(argument) = argument else { continue };
            if is_tuple(&argument.pat) {
                let name = &signature.ident;
                let message = format!(
                    "an argument is one thing, and `{name}` takes apart a tuple of several"
                );
                let line = argument.span().start().line;
                self.found.push(Finding::at(self.file, line, message, REMEDY));
            }
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }
}

fn is_tuple(pattern: &syn::Pat) -> bool {
    match pattern {
        // `()` is nothing, as a function has it that stands for another.
        syn::Pat::Tuple(tuple) => !tuple.elems.is_empty(),
        syn::Pat::Reference(reference) => is_tuple(&reference.pat),
        _ => false,
    }
}

const REMEDY: &str = "give each its own argument, or all of them a struct with a name";

#[cfg(test)]
mod tests;
