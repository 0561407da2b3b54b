//! A call as written.

use alloc::string::String;
use alloc::vec::Vec;

use super::Ending;

/// A system call and what it is to return: `name(arguments) = result`.
#[derive(Clone, PartialEq, Debug)]
pub struct CallStep {
    /// When it ends, if it blocks.
    pub ends: Option<Ending>,
    /// The call's name, as in `setsockopt`.
    pub name: String,
    /// What is passed; what a call fills in is written as it must come out.
    pub args: Vec<Arg>,
    /// What it is to return, in which case it matters.
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

/// An argument of a call, or a part of one.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// Whatever the runner has for this place: `...`.
    Ellipsis,
    /// A number, decimal or hexadecimal.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `"text"`, its escapes read.
    Text(String),
    /// A name that stands for itself.
    Name(String),
    /// Flags that are set together: `A | B`.
    Or(Vec<Arg>),
    /// A list, as of buffers or of what an option reads: `[…]`.
    List(Vec<Arg>),
    /// A structure with named fields: `{…}`.
    Struct(Vec<Field>),
    /// `name(arguments)`: `htons(80)`, `sizeof(x)`, …
    Apply(String, Vec<Arg>),
}

/// One part of a struct.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its name, if written; `msg_iov(1)` is `msg_iov`.
    pub name: Option<String>,
    /// The value of the field.
    pub value: Arg,
}
