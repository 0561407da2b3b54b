//! Functions that snippets may call.

use alloc::format;

use super::arithmetic::{compare, negate, too_large};
use super::{SnippetError, Value};
use crate::ast::Operator;

/// Result of `name(arguments)`.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, SnippetError> {
    match (name, arguments) {
        ("min", several) => extreme(name, Operator::Less, several),
        ("max", several) => extreme(name, Operator::Greater, several),
        ("abs", [value]) => match value {
            Value::Float(number) => Ok(Value::Float(number.abs())),
            _ if value.as_int().is_some_and(|number| number < 0) => negate(value),
            _ => value.as_int().map(Value::Int).ok_or_else(|| wrong(name, value)),
        },
        ("int", [value]) => match value {
            Value::Float(number) => truncate(*number),
            _ => value.as_int().map(Value::Int).ok_or_else(|| wrong(name, value)),
        },
        ("float", [value]) => value.as_float().map(Value::Float).ok_or_else(|| wrong(name, value)),
        ("round", [value]) => match value {
            // Halves round to even, as in Python.
            Value::Float(number) => truncate(number.round_ties_even()),
            _ => value.as_int().map(Value::Int).ok_or_else(|| wrong(name, value)),
        },
        ("bool", [value]) => Ok(Value::Bool(value.is_true())),
        ("str", [value]) => Ok(Value::Text(format!("{value}"))),
        ("len", [Value::Text(text)]) => Ok(Value::Int(text.chars().count() as i128)),
        ("len", [Value::Tuple(values)]) => Ok(Value::Int(values.len() as i128)),
        _ => {
            let count = arguments.len();
            Err(SnippetError::Unsupported(format!("{name} of {count} arguments")))
        }
    }
}

/// The first value with none `before` it; a single tuple stands for its values.
fn extreme(name: &str, before: Operator, values: &[Value]) -> Result<Value, SnippetError> {
    let values = match values {
        [Value::Tuple(values)] => values,
        several => several,
    };
    let none = || SnippetError::Raised(format!("{name} of nothing"));
    let (first, rest) = values.split_first().ok_or_else(none)?;
    let mut best = first;
    for value in rest {
        if compare(before, value, best)? {
            best = value;
        }
    }
    Ok(best.clone())
}

fn truncate(number: f64) -> Result<Value, SnippetError> {
    // Beyond this, floating-point numbers are not exact.
    if number.abs() < 1e15 { Ok(Value::Int(number as i128)) } else { Err(too_large()) }
}

fn wrong(name: &str, value: &Value) -> SnippetError {
    SnippetError::Raised(format!("{name} of {}", value.type_name()))
}
