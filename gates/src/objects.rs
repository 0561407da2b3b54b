//! A type is one object, not a namespace: it has few methods of its own.
//!
//! Methods that call one method of one field are not counted: a type that joins parts may pass
//! everything on to them.

use crate::finding::Finding;
use crate::tree::Tree;
use crate::types::{self, Method, TypeName};

/// Types with more methods than the limit.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    types::methods(tree).iter().filter_map(|(name, methods)| judge_type(name, methods)).collect()
}

fn judge_type(name: &TypeName, methods: &[Method]) -> Option<Finding> {
    let own: Vec<_> = methods.iter().filter(|method| !method.delegates).collect();
    if own.len() <= MOST_METHODS {
        return None;
    }
    let first = own.first()?;
    let message = format!("`{}` has at most {MOST_METHODS} methods, now {}", name.1, own.len());
    Some(Finding::at(&first.file, first.line, message, SPLIT))
}

const MOST_METHODS: usize = 100;
const SPLIT: &str = "give some of its fields, with the methods that use them, a type of their own";

#[cfg(test)]
mod tests;
