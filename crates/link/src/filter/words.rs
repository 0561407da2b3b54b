//! Splits a filter's text into words.

use alloc::string::String;
use alloc::vec::Vec;

/// Error of a filter's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at column {column}: {text}")]
pub struct FilterError {
    /// Column, counted from 1.
    pub column: usize,
    /// The word there, and those that are valid.
    pub text: String,
}

/// A word, or a sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// All words and signs of a filter.
pub(super) fn split(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let len = length(rest);
        let word = rest.get(..len).unwrap_or(rest);
        if !word.trim().is_empty() {
            words.push(Word { text: word, column: at + 1 });
        }
        at += len;
    }
    words
}

/// Length of the first word of `rest`, bytes.
fn length(rest: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || "_.:/-".contains(c);
    match rest.find(|c| !is_part(c)) {
        None => rest.len(),
        Some(0) if SIGNS.iter().any(|sign| rest.starts_with(sign)) => 2,
        Some(0) => rest.chars().next().map_or(1, char::len_utf8),
        Some(len) => len,
    }
}

/// Signs of two characters; any other character outside of words is a sign by itself.
const SIGNS: [&str; 4] = ["&&", "||", "!=", "=="];
