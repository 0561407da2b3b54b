//! `%{ … }%` as written: a few statements in the Python subset of scripts.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The statements between `%{` and `}%`.
#[derive(Clone, PartialEq, Debug)]
pub struct Snippet {
    /// First line (from 1).
    pub line: u32,
    /// In order. An error if one is outside the subset: the script is skipped.
    pub statements: Result<Vec<Statement>, String>,
}

/// A statement of a snippet.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// Fails the script if the condition is false: `assert condition, message`.
    Assert {
        /// Line number (from 1).
        line: u32,
        /// As written, for the report.
        text: String,
        /// Condition that must hold.
        condition: Term,
        /// Message if it does not.
        message: Option<Term>,
    },
    /// `print(…)`, or `print …`.
    Print(Vec<Term>),
    /// Sets a variable of the script: `name = value`.
    Set(String, Term),
    /// `name += value`, `name -= value`.
    Change(String, Operator, Term),
}

/// An expression of a snippet.
#[derive(Clone, PartialEq, Debug)]
pub enum Term {
    /// A whole number, in decimal or hexadecimal.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text in quotes: `'text'`.
    Text(String),
    /// A truth value: `True` or `False`.
    Bool(bool),
    /// A field of `tcp_info`, a constant, or a variable.
    Name(String),
    /// `not x`, `-x`, `~x`.
    Unary(Unary, Box<Term>),
    /// `a == b`, `a and b`, `a + b`, …
    Binary(Operator, Box<Term>, Box<Term>),
    /// `a < b < c`: the first term and the comparisons, from left to right.
    Chain(Box<Term>, Vec<(Operator, Term)>),
    /// `abs(x)`, `min(a, b)`, …; `'text'.format(a)` is `format('text', a)`.
    Apply(String, Vec<Term>),
    /// Several values: `(a, b)`.
    Tuple(Vec<Term>),
}

/// Unary operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names are Python's")]
pub enum Unary {
    Not,
    Minus,
    Invert,
}

/// Binary operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names are Python's")]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
}
