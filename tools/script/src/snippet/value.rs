//! Values of snippets.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Value of a snippet's expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number; Python's are unbounded, these are not.
    Int(i128),
    /// A number with a fraction.
    Float(f64),
    /// A truth value: `True` or `False`.
    Bool(bool),
    /// Text; arithmetic makes at most 64 KiB.
    Text(String),
    /// Several values, in order.
    Tuple(Vec<Self>),
}

impl Value {
    /// True if Python's `if` takes it as true.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Bool(flag) => *flag,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(values) => !values.is_empty(),
        }
    }

    /// As a whole number: truth values are 1 and 0.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bool(flag) => Some(i128::from(*flag)),
            _ => None,
        }
    }

    /// As a number with a fraction.
    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            _ => self.as_int().map(|number| number as f64),
        }
    }

    /// Name of its type in Python.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
            Self::Text(_) => "str",
            Self::Tuple(_) => "tuple",
        }
    }

    /// Form within a tuple.
    fn quoted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{text}'"),
            other => write!(f, "{other}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            // As in Python, with a fraction even if it is 0.
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Text(text) => f.write_str(text),
            Self::Tuple(values) => {
                f.write_str("(")?;
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    value.quoted(f)?;
                }
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}
