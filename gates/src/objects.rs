//! A type is one object, not a namespace: it has few methods of its own.
//!
//! Methods that call one method of one field are not counted: a type that joins parts may pass
//! everything on to them.

use crate::finding::Finding;
use crate::tree::Tree;
use crate::types::{self, Exception, Method, TypeName};

/// Types with more methods than their limit, and limits that can be lowered.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    types::methods(tree).iter().filter_map(|(name, methods)| judge_type(name, methods)).collect()
}

fn judge_type(name: &TypeName, methods: &[Method]) -> Option<Finding> {
    let own: Vec<_> = methods.iter().filter(|method| !method.delegates).collect();
    let limit = types::limit(name, EXCEPTIONS, MOST_METHODS);
    let (wrong, remedy) = if own.len() > limit {
        ("at most", SPLIT)
    } else if own.len() < limit && limit > MOST_METHODS {
        ("no longer", LOWER)
    } else {
        return None;
    };
    let first = own.first()?;
    let message = format!("`{}` has {wrong} {limit} methods, now {}", name.1, own.len());
    Some(Finding::at(&first.file, first.line, message, remedy))
}

const MOST_METHODS: usize = 100;
/// Types from before this gate: their limits only fall.
const EXCEPTIONS: &[Exception] =
    &[("crates/tcp", "Connection", 274), ("crates/tcp", "Sender", 108)];
const SPLIT: &str = "give some of its fields, with the methods that use them, a type of their own";
const LOWER: &str = "lower its limit in gates/src/objects.rs";

#[cfg(test)]
mod tests;
