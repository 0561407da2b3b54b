//! Tokens of a snippet.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::lexer::Cursor;

/// A token of a snippet, with its position.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token<'a> {
    pub(super) line: u32,
    /// Start and end in the snippet, bytes.
    pub(super) place: (usize, usize),
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind<'a> {
    Int(i64),
    Float(f64),
    Text(String),
    Name(&'a str),
    /// An operator or a bracket.
    Sign(&'static str),
    /// A semicolon, or a line end outside brackets.
    End,
}

/// Tokens of a snippet whose first line is number `first_line`; an error for text that is no token.
pub(super) fn read(text: &str, first_line: u32) -> Result<Vec<Token<'_>>, String> {
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    let mut open = 0_usize;
    loop {
        skip_blanks(&mut cursor);
        let begin = text.len() - cursor.rest().len();
        let line = (first_line - 1).saturating_add(cursor.line());
        let kind = read_one(&mut cursor)
            .map_err(|what| format!("line {line}: {what} is not supported"))?;
        let Some(kind) = kind else { return Ok(tokens) };
        match &kind {
            Kind::Sign("(" | "[") => open += 1,
            Kind::Sign(")" | "]") => open = open.saturating_sub(1),
            Kind::End if open > 0 => continue,
            _ => {}
        }
        tokens.push(Token { line, place: (begin, text.len() - cursor.rest().len()), kind });
    }
}

fn skip_blanks(cursor: &mut Cursor<'_>) {
    loop {
        cursor.take_while(|c| c.is_whitespace() && c != '\n');
        if cursor.sees_here("#") {
            cursor.take_while(|c| c != '\n');
        } else if !cursor.eat_here("\\\n") {
            return;
        }
    }
}

fn read_one<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Kind<'a>>, String> {
    let Some(first) = cursor.rest().chars().next() else { return Ok(None) };
    let kind = match first {
        ';' | '\n' => {
            cursor.advance(1);
            Kind::End
        }
        '"' | '\'' => read_text(cursor, first)?,
        _ if first.is_ascii_digit() => read_number(cursor)?,
        _ if first.is_ascii_alphabetic() || first == '_' => {
            Kind::Name(cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))
        }
        _ => match SIGNS.iter().find(|sign| cursor.eat_here(sign)) {
            Some(sign) => Kind::Sign(sign),
            None => return Err(format!("the character {first}")),
        },
    };
    Ok(Some(kind))
}

fn read_text<'a>(cursor: &mut Cursor<'a>, quote: char) -> Result<Kind<'a>, String> {
    cursor.advance(1);
    let mut text = String::new();
    loop {
        text.push_str(cursor.take_while(|c| c != quote && c != '\\' && c != '\n'));
        match cursor.rest().chars().next() {
            Some('\\') => {
                cursor.advance(1);
                let escaped = cursor.rest().chars().next();
                cursor.advance(escaped.map_or(0, char::len_utf8));
                match escaped {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(c @ ('\\' | '\'' | '"')) => text.push(c),
                    _ => return Err("an escape other than \\n \\t \\\\ \\' \\\"".into()),
                }
            }
            Some(c) if c == quote => {
                cursor.advance(1);
                return Ok(Kind::Text(text));
            }
            _ => return Err("a text without an end".into()),
        }
    }
}

fn read_number<'a>(cursor: &mut Cursor<'a>) -> Result<Kind<'a>, String> {
    let written = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let hex = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
    let int = hex.map_or_else(|| written.parse().ok(), |hex| i64::from_str_radix(hex, 16).ok());
    let float = || written.parse().ok().filter(|_| hex.is_none()).map(Kind::Float);
    int.map(Kind::Int).or_else(float).ok_or_else(|| format!("the number {written}"))
}

/// Signs of the language, longer ones first, so that none hides another.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "<<", ">>", "//", "+=", "-=", "=", "<", ">", "|", "^", "&", "+", "-",
    "*", "/", "%", "~", "(", ")", ",", ".",
];
