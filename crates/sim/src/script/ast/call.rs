//! A call as written.

use alloc::string::String;
use alloc::vec::Vec;

use super::Ending;

/// `name(arguments) = result`.
#[derive(Clone, PartialEq, Debug)]
pub struct CallStep {
    /// When it ends, if it blocks.
    pub ends: Option<Ending>,
    /// Its name.
    pub name: String,
    /// What is passed; what a call fills in is written as it must come out.
    pub args: Vec<Arg>,
    /// What it returns.
    pub expected: Expected,
}

/// What a call returns.
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// The value behind `=`: a number, a name, or `...`.
    pub value: Arg,
    /// An error's name behind `-1`.
    pub errno: Option<String>,
    /// The remark in parentheses: (Operation now in progress), (flags O_RDWR).
    pub note: Option<String>,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// `...`
    Ellipsis,
    /// A number, decimal or hexadecimal.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `"text"`, its escapes read.
    Text(String),
    /// A name that stands for itself.
    Name(String),
    /// `A | B`.
    Or(Vec<Arg>),
    /// `[…]`.
    List(Vec<Arg>),
    /// `{…}`.
    Struct(Vec<Field>),
    /// `name(arguments)`: `htons(80)`, `sizeof(x)`, …
    Apply(String, Vec<Arg>),
}

/// One part of a struct.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its name, if written; `msg_iov(1)` is `msg_iov`.
    pub name: Option<String>,
    /// Its value.
    pub value: Arg,
}
