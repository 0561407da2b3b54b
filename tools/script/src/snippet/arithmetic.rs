//! Operators with Python's meaning: `/` gives a fraction, `//` and `%` round down.

use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;

use super::{SnippetError, Value};
use crate::ast::Operator;

/// `left operator right`, with both values known.
pub(super) fn apply(
    operator: Operator,
    left: &Value,
    right: &Value,
) -> Result<Value, SnippetError> {
    match operator {
        Operator::Or => Ok(if left.is_true() { left.clone() } else { right.clone() }),
        Operator::And => Ok(if left.is_true() { right.clone() } else { left.clone() }),
        Operator::Equal
        | Operator::NotEqual
        | Operator::Less
        | Operator::LessOrEqual
        | Operator::Greater
        | Operator::GreaterOrEqual => compare(operator, left, right).map(Value::Bool),
        Operator::BitOr | Operator::BitXor | Operator::BitAnd => bits(operator, left, right),
        Operator::ShiftLeft | Operator::ShiftRight => shift(operator, left, right),
        _ => calculate(operator, left, right),
    }
}

/// Evaluates a comparison.
pub(super) fn compare(
    operator: Operator,
    left: &Value,
    right: &Value,
) -> Result<bool, SnippetError> {
    match operator {
        Operator::Equal => return Ok(equal(left, right)),
        Operator::NotEqual => return Ok(!equal(left, right)),
        _ => {}
    }
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => floats(left, right).ok_or_else(|| mismatch("compare", left, right))?,
        },
    };
    Ok(match operator {
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        _ => return Err(SnippetError::Unsupported("a chain of other than comparisons".into())),
    })
}

/// Changes the sign: `-value`.
pub(super) fn negate(value: &Value) -> Result<Value, SnippetError> {
    match (value, value.as_int()) {
        (Value::Float(number), _) => Ok(Value::Float(-number)),
        (_, Some(number)) => number.checked_neg().map(Value::Int).ok_or_else(too_large),
        _ => Err(SnippetError::Raised(format!("- of {}", value.type_name()))),
    }
}

/// Inverts the bits: `~value`.
pub(super) fn invert(value: &Value) -> Result<Value, SnippetError> {
    let number = value.as_int();
    let raised = || SnippetError::Raised(format!("~ of {}", value.type_name()));
    number.map(|number| Value::Int(!number)).ok_or_else(raised)
}

/// Error of a number beyond the range here.
pub(super) fn too_large() -> SnippetError {
    SnippetError::Unsupported("so large a value".into())
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Tuple(left), Value::Tuple(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| equal(a, b))
        }
        _ => match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => left == right,
            _ => floats(left, right).is_some_and(|order| order == Some(Ordering::Equal)),
        },
    }
}

/// Order of two numbers, at least one of them a fraction; `None` if one is not a number.
fn floats(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    Some(left.as_float()?.partial_cmp(&right.as_float()?))
}

fn bits(operator: Operator, left: &Value, right: &Value) -> Result<Value, SnippetError> {
    let of = |a: i128, b: i128| match operator {
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        _ => a & b,
    };
    match (left.as_int(), right.as_int()) {
        (Some(a), Some(b)) => Ok(match (left, right) {
            (Value::Bool(_), Value::Bool(_)) => Value::Bool(of(a, b) != 0),
            _ => Value::Int(of(a, b)),
        }),
        _ => Err(mismatch("combine the bits of", left, right)),
    }
}

fn shift(operator: Operator, left: &Value, right: &Value) -> Result<Value, SnippetError> {
    let (Some(number), Some(by)) = (left.as_int(), right.as_int()) else {
        return Err(mismatch("shift", left, right));
    };
    if by < 0 {
        return Err(SnippetError::Raised("negative shift count".into()));
    }
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    if operator == Operator::ShiftRight {
        return Ok(Value::Int(number >> by.min(127)));
    }
    if number == 0 {
        return Ok(Value::Int(0));
    }
    let shifted = number.checked_shl(by).filter(|shifted| shifted >> by == number);
    shifted.map(Value::Int).ok_or_else(too_large)
}

fn calculate(operator: Operator, left: &Value, right: &Value) -> Result<Value, SnippetError> {
    if let Value::Text(text) = left {
        return join(operator, text, right);
    }
    if operator != Operator::Divide
        && let (Some(a), Some(b)) = (left.as_int(), right.as_int())
    {
        return whole(operator, a, b);
    }
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else {
        return Err(mismatch("calculate with", left, right));
    };
    match operator {
        Operator::Add => Ok(Value::Float(a + b)),
        Operator::Subtract => Ok(Value::Float(a - b)),
        Operator::Multiply => Ok(Value::Float(a * b)),
        _ if b == 0.0 => Err(division_by_zero()),
        Operator::Divide => Ok(Value::Float(a / b)),
        Operator::FloorDivide => Ok(Value::Float((a / b).floor())),
        _ => Ok(Value::Float(a - b * (a / b).floor())),
    }
}

fn whole(operator: Operator, a: i128, b: i128) -> Result<Value, SnippetError> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        _ if b == 0 => return Err(division_by_zero()),
        // Towards minus infinity: one less than in Rust if there is a remainder whose sign is not
        // the divisor's.
        Operator::FloorDivide => {
            a.checked_div(b).map(|quotient| quotient - i128::from(rounds_up(a, b)))
        }
        _ => a.checked_rem(b).map(|rest| if rounds_up(a, b) { rest + b } else { rest }),
    };
    result.map(Value::Int).ok_or_else(too_large)
}

fn rounds_up(a: i128, b: i128) -> bool {
    let rest = a.checked_rem(b).unwrap_or(0);
    rest != 0 && (rest < 0) != (b < 0)
}

fn join(operator: Operator, text: &str, right: &Value) -> Result<Value, SnippetError> {
    match (operator, right) {
        (Operator::Add, Value::Text(more)) if text.len() + more.len() <= LONGEST => {
            Ok(Value::Text([text, more].concat()))
        }
        (Operator::Add, Value::Text(_)) => Err(too_large()),
        (Operator::Remainder, _) => Err(SnippetError::Unsupported("formatting by %".into())),
        (Operator::Multiply, _) => Err(SnippetError::Unsupported("repeated text".into())),
        _ => Err(mismatch("calculate with", &Value::Text(String::from(text)), right)),
    }
}

fn division_by_zero() -> SnippetError {
    SnippetError::Raised("division by zero".into())
}

fn mismatch(what: &str, left: &Value, right: &Value) -> SnippetError {
    let (left, right) = (left.type_name(), right.type_name());
    SnippetError::Raised(format!("cannot {what} {left} and {right}"))
}

/// Longest text of a snippet, bytes.
const LONGEST: usize = 1 << 16;
