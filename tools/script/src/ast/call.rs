//! A call as written.

use alloc::string::String;
use alloc::vec::Vec;

use super::Ending;

/// A system call with its expected result: `name(arguments) = result`.
#[derive(Clone, PartialEq, Debug)]
pub struct CallStep {
    /// Time of its end, if it blocks.
    pub ends: Option<Ending>,
    /// The call's name, as in `setsockopt`.
    pub name: String,
    /// Arguments; one that the call fills in is written as it must come out.
    pub args: Vec<Arg>,
    /// Expected result, if it matters.
    pub expected: Expected,
}

/// Expected result of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// Value after `=`: a number, a name, or `...`.
    pub value: Arg,
    /// Name of an error after `-1`.
    pub errno: Option<String>,
    /// The remark in parentheses: (Operation now in progress), (flags O_RDWR).
    pub note: Option<String>,
}

/// An argument of a call, or a part of one.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// The runner's value for this place: `...`.
    Ellipsis,
    /// A number, decimal or hexadecimal.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `"text"`, with its escapes decoded.
    Text(String),
    /// A name that stands for itself.
    Name(String),
    /// Flags combined: `A | B`.
    Or(Vec<Arg>),
    /// A list of buffers or of an option's values: `[…]`.
    List(Vec<Arg>),
    /// A structure with named fields: `{…}`.
    Struct(Vec<Field>),
    /// `name(arguments)`: `htons(80)`, `sizeof(x)`, …
    Apply(String, Vec<Arg>),
}

/// A field of a struct.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its name, if written; `msg_iov(1)` is `msg_iov`.
    pub name: Option<String>,
    /// The value of the field.
    pub value: Arg,
}
