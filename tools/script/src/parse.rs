//! From the text of a script to a [`Script`].
//!
//! The language is packetdrill's, in the dialects of Linux and of FreeBSD. Line ends mean nothing
//! but to comments, conditionals and option lines: a step begins with its time and goes on until
//! it is complete. What the language has and this project has not (UDP, tunnels, …) becomes
//! [`Action::Unsupported`]; anything else that is not understood is an error that says where.
//!
//! ```text
//! text --ifdef--> one branch of each conditional, same lines --macros--> names replaced --> steps
//! ```

mod call;
mod icmp;
mod ifdef;
mod lexer;
mod macros;
mod options;
mod packet;
mod parts;
mod snippet;
mod time;
mod tokens;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use lexer::Cursor;

use super::ast::{Action, OptionLine, Script, Shell, Step};
use super::dialect::Dialect;

/// Parses a script. An error names the line and its fault.
pub fn parse(text: &str, defines: &Defines) -> Result<Script, ParseError> {
    let mut defines = defines.clone();
    let text = ifdef::choose(text, &mut defines)?;
    let text = macros::replace(&text, &defines);
    read_script(&mut Cursor::new(&text))
}

/// Names defined before the first line, for `#ifdef` and for replacement in the text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Defines {
    values: BTreeMap<String, String>,
}

impl Defines {
    /// Names defined in a dialect ([`Dialect::defined`]).
    pub fn of(dialect: Dialect) -> Self {
        let names = dialect.defined().iter();
        names.fold(Self::default(), |defines, name| defines.with_macro(name, name))
    }

    /// Adds a macro with a value: `-D name=value`.
    #[must_use]
    pub fn with_macro(mut self, name: &str, value: &str) -> Self {
        self.define(name, value);
        self
    }

    fn define(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_string(), value.to_string());
    }

    fn is_defined(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Value of `name`; empty if it only exists.
    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| *value != name)
    }
}

/// Error of a script's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line of the script, from 1.
    pub line: u32,
    /// Column, in characters (from 1).
    pub column: u32,
    /// Valid text there.
    pub expected: String,
    /// Text found, or `the end`.
    pub found: String,
}

fn read_script(cursor: &mut Cursor<'_>) -> Result<Script, ParseError> {
    let mut script = Script::default();
    read_head(cursor, &mut script)?;
    while !cursor.is_at_end() {
        if cursor.sees("`") {
            script.cleanup = Some(read_shell(cursor)?);
            return match cursor.is_at_end() {
                true => Ok(script),
                false => Err(cursor.error("the end, behind a command without a time")),
            };
        }
        script.steps.push(read_step(cursor)?);
    }
    Ok(script)
}

/// Reads options and the set-up block, in either order.
fn read_head(cursor: &mut Cursor<'_>, script: &mut Script) -> Result<(), ParseError> {
    loop {
        if cursor.sees("--") {
            script.options.push(read_option(cursor)?);
        } else if cursor.sees("`") && script.setup.is_none() {
            script.setup = Some(read_shell(cursor)?);
        } else {
            return Ok(());
        }
    }
}

fn read_option(cursor: &mut Cursor<'_>) -> Result<OptionLine, ParseError> {
    cursor.expect("--", "an option")?;
    let line = cursor.line();
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-').to_string();
    if name.is_empty() {
        return Err(cursor.error("the name of an option"));
    }
    let value = match cursor.eat_here("=") {
        true if cursor.sees_here("\"") => Some(cursor.string()?),
        true => Some(cursor.take_while(|c| !c.is_whitespace()).to_string()),
        false => None,
    };
    Ok(OptionLine { line, name, value })
}

fn read_shell(cursor: &mut Cursor<'_>) -> Result<Shell, ParseError> {
    cursor.expect("`", "a command")?;
    let line = cursor.line();
    let text = cursor.take_until("`").ok_or_else(|| cursor.error("a backquote that ends this"))?;
    Ok(Shell { line, text: text.to_string() })
}

fn read_step(cursor: &mut Cursor<'_>) -> Result<Step, ParseError> {
    cursor.skip_blank();
    let line = cursor.line();
    let (when, ends) = time::read(cursor)?;
    let is_call = cursor.peek().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if ends.is_some() && !is_call {
        return Err(cursor.error("a call, since there is a time at which it ends"));
    }
    let action = match cursor.peek() {
        Some('<' | '>') => packet::read(cursor)?,
        Some('`') => Action::Shell(read_shell(cursor)?),
        Some('%') => Action::Snippet(snippet::read(cursor)?),
        _ if is_call => Action::Call(call::read(cursor, ends)?),
        _ => return Err(cursor.error("a packet, a call, `a command` or %{ a snippet }%")),
    };
    Ok(Step { line, when, action })
}

/// Skips a known but unsupported element, up to the line that begins the next step.
fn skip_unsupported(cursor: &mut Cursor<'_>, what: &str) -> Action {
    cursor.skip_step();
    Action::Unsupported(format!("{what} is not supported"))
}

#[cfg(test)]
mod tests;
