//! `name(arguments) = result`: a call.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use super::ParseError;
use super::lexer::Cursor;
use crate::ast::{Arg, CallStep, Ending, Expected, Field};

/// Reads a call from its name on.
pub(super) fn read(cursor: &mut Cursor<'_>, ends: Option<Ending>) -> Result<CallStep, ParseError> {
    let name = cursor.word("the name of a call")?.to_string();
    cursor.expect("(", "( and the arguments of a call")?;
    let args = read_args(cursor, ")", 0)?;
    cursor.expect("=", "= and what the call returns")?;
    Ok(CallStep { ends, name, args, expected: read_expected(cursor)? })
}

fn read_expected(cursor: &mut Cursor<'_>) -> Result<Expected, ParseError> {
    let value = read_arg(cursor, 0)?;
    let errno = cursor.peek_word();
    cursor.advance(errno.len());
    let errno = (!errno.is_empty()).then(|| errno.to_string());
    let note = match cursor.eat("(") {
        true => Some(read_note(cursor)?),
        false => None,
    };
    Ok(Expected { value, errno, note })
}

fn read_note(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    let note = cursor.take_while(|c| c != ')' && c != '\n').trim().to_string();
    cursor.expect(")", ") that ends the remark")?;
    Ok(note)
}

/// Expressions separated by commas, up to `end`.
fn read_args(cursor: &mut Cursor<'_>, end: &str, depth: u8) -> Result<Vec<Arg>, ParseError> {
    let mut args = Vec::new();
    if cursor.eat(end) {
        return Ok(args);
    }
    loop {
        args.push(read_arg(cursor, depth)?);
        if cursor.eat(end) {
            return Ok(args);
        }
        cursor.expect(",", &format!("a comma or {end}"))?;
    }
}

/// An expression: one value, or several joined by `|`.
fn read_arg(cursor: &mut Cursor<'_>, depth: u8) -> Result<Arg, ParseError> {
    if depth > DEEPEST {
        return Err(cursor.error("less nesting"));
    }
    let first = read_one(cursor, depth)?;
    if !cursor.sees("|") {
        return Ok(first);
    }
    let mut parts = vec![first];
    while cursor.eat("|") {
        parts.push(read_one(cursor, depth)?);
    }
    Ok(Arg::Or(parts))
}

fn read_one(cursor: &mut Cursor<'_>, depth: u8) -> Result<Arg, ParseError> {
    if cursor.eat("...") {
        return Ok(Arg::Ellipsis);
    }
    match cursor.peek() {
        Some('"') => Ok(Arg::Text(cursor.string()?)),
        Some('[') => {
            cursor.advance(1);
            Ok(Arg::List(read_args(cursor, "]", depth + 1)?))
        }
        Some('{') => {
            cursor.advance(1);
            Ok(Arg::Struct(read_fields(cursor, depth + 1)?))
        }
        Some('(') => {
            cursor.advance(1);
            read_parenthesis(cursor, depth + 1)
        }
        Some(c) if c.is_ascii_digit() || c == '-' || c == '.' => read_number(cursor),
        _ => {
            let name = cursor.word("an argument")?.to_string();
            match cursor.eat_here("(") {
                true => Ok(Arg::Apply(name, read_args(cursor, ")", depth + 1)?)),
                false => Ok(Arg::Name(name)),
            }
        }
    }
}

/// `(value)`, or `(type)value`: a cast has no effect here.
fn read_parenthesis(cursor: &mut Cursor<'_>, depth: u8) -> Result<Arg, ParseError> {
    cursor.eat_word("struct");
    let inner = read_arg(cursor, depth)?;
    let is_pointer = cursor.eat("*");
    cursor.expect(")", ") that ends this")?;
    let is_type = is_pointer || matches!(inner, Arg::Name(_));
    let goes_on = cursor.peek().is_some_and(|c| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '(' | '[' | '{')
    });
    if is_type && goes_on { read_arg(cursor, depth) } else { Ok(inner) }
}

fn read_number(cursor: &mut Cursor<'_>) -> Result<Arg, ParseError> {
    let at = cursor.clone();
    let is_negative = cursor.eat("-");
    let is_hex = cursor.sees_here("0x") || cursor.sees_here("0X");
    if !is_hex {
        let mut ahead = cursor.clone();
        let written = ahead.take_while(|c| c.is_ascii_digit() || c == '.');
        if written.contains('.') && !written.contains("..") {
            let value: f64 = written.parse().map_err(|_| at.error("a number"))?;
            *cursor = ahead;
            return Ok(Arg::Float(if is_negative { -value } else { value }));
        }
    }
    let value: u64 = cursor.number("a number")?;
    // 0xffffffffffffffff is the 64-bit -1 in C.
    let value = match i64::try_from(value) {
        Err(_) if !is_hex => return Err(at.error("a number of 63 bits")),
        _ => value as i64,
    };
    Ok(Arg::Int(if is_negative { value.wrapping_neg() } else { value }))
}

/// Fields of a struct after `{`.
fn read_fields(cursor: &mut Cursor<'_>, depth: u8) -> Result<Vec<Field>, ParseError> {
    let mut fields = Vec::new();
    if cursor.eat("}") {
        return Ok(fields);
    }
    loop {
        fields.push(read_field(cursor, depth)?);
        if cursor.eat("}") {
            return Ok(fields);
        }
        cursor.expect(",", "a comma or } behind a field")?;
    }
}

fn read_field(cursor: &mut Cursor<'_>, depth: u8) -> Result<Field, ParseError> {
    match read_arg(cursor, depth)? {
        // `msg_iov(1)` gives the number of buffers, as the value does too.
        Arg::Name(name) | Arg::Apply(name, _) if cursor.eat("=") => {
            Ok(Field { name: Some(name), value: read_arg(cursor, depth)? })
        }
        value => Ok(Field { name: None, value }),
    }
}

/// Deepest nesting of brackets.
const DEEPEST: u8 = 32;
