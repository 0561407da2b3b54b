//! `#ifdef`, `#ifndef`, `#else`, `#endif`, and `-D NAME=VALUE`: conditional lines and definitions.
//! Lines not chosen become empty, so that all others keep their numbers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Defines, ParseError};

/// The text with one branch of each conditional. Its `-D` lines are added to `defines`.
pub(super) fn choose(text: &str, defines: &mut Defines) -> Result<String, ParseError> {
    let mut chosen = String::with_capacity(text.len());
    let mut open: Vec<Conditional> = Vec::new();
    let mut is_head = true;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let kept = is_kept(&open);
        match Directive::read(line) {
            Some(directive) => directive.follow(&mut open, defines, number)?,
            None if kept && is_head && line.trim_start().starts_with("-D") => {
                define(line, number, defines)?;
            }
            None if kept => {
                is_head &= !ends_head(line);
                chosen.push_str(line);
                continue;
            }
            None => {}
        }
        chosen.push('\n');
    }
    match open.last() {
        None => Ok(chosen),
        Some(conditional) => Err(error(conditional.line, "an #endif for this", "the end")),
    }
}

fn is_kept(open: &[Conditional]) -> bool {
    open.last().is_none_or(|conditional| conditional.is_kept)
}

/// True for a line of a command or a step, after which `-D` is not an option any more.
fn ends_head(line: &str) -> bool {
    line.trim_start().starts_with(|c: char| matches!(c, '`' | '+' | '.') || c.is_ascii_digit())
}

/// An open conditional.
struct Conditional {
    line: u32,
    /// True if the lines of this branch are kept.
    is_kept: bool,
    /// True if the lines of the other branch are kept.
    keeps_other: bool,
    has_else: bool,
}

enum Directive<'a> {
    If { name: &'a str, is_to_be: bool },
    Else,
    End,
}

impl<'a> Directive<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        match words.next()? {
            "#ifdef" => Some(Self::If { name: words.next().unwrap_or(""), is_to_be: true }),
            "#ifndef" => Some(Self::If { name: words.next().unwrap_or(""), is_to_be: false }),
            "#else" => Some(Self::Else),
            "#endif" => Some(Self::End),
            _ => None,
        }
    }

    fn follow(
        self,
        open: &mut Vec<Conditional>,
        defines: &Defines,
        line: u32,
    ) -> Result<(), ParseError> {
        match self {
            Self::If { name: "", .. } => return Err(error(line, "a name", "the end of the line")),
            Self::If { name, is_to_be } => {
                let is_so = defines.is_defined(name) == is_to_be;
                let outer = is_kept(open);
                let (is_kept, keeps_other) = (outer && is_so, outer && !is_so);
                open.push(Conditional { line, is_kept, keeps_other, has_else: false });
            }
            Self::Else => match open.last_mut().filter(|conditional| !conditional.has_else) {
                Some(conditional) => {
                    conditional.is_kept = conditional.keeps_other;
                    conditional.has_else = true;
                }
                None => return Err(error(line, "an #ifdef before it", "\"#else\"")),
            },
            Self::End => {
                open.pop().ok_or_else(|| error(line, "an #ifdef before it", "\"#endif\""))?;
            }
        }
        Ok(())
    }
}

/// `-D NAME=VALUE` or `-DNAME`, any number of them in a line; a value may stand in quotation marks.
fn define(line: &str, number: u32, defines: &mut Defines) -> Result<(), ParseError> {
    let mut rest = line.trim();
    while let Some(definition) = rest.strip_prefix("-D") {
        let definition = definition.trim_start();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name_len = definition.find(|c| !is_name(c)).unwrap_or(definition.len());
        let (name, behind) = definition.split_at(name_len);
        if name.is_empty() {
            return Err(error(number, "-D NAME=VALUE", &first_word(definition)));
        }
        let value;
        (value, rest) = behind.strip_prefix('=').map_or((name, behind), split_value);
        if value.len() > LONGEST_VALUE {
            return Err(error(number, "a value of 256 bytes at most", "a longer one"));
        }
        defines.define(name, value);
        rest = rest.trim_start();
    }
    match rest.is_empty() || rest.starts_with("//") || rest.starts_with('#') {
        true => Ok(()),
        false => Err(error(number, "the end of the line", &first_word(rest))),
    }
}

fn split_value(text: &str) -> (&str, &str) {
    if let Some((value, rest)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return (value, rest);
    }
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

fn first_word(text: &str) -> String {
    text.split_whitespace()
        .next()
        .map_or("the end of the line".to_string(), |word| word.chars().take(24).collect())
}

fn error(line: u32, expected: &str, found: &str) -> ParseError {
    ParseError { line, column: 1, expected: expected.to_string(), found: found.to_string() }
}

/// Limits the growth of a text by replaced names.
const LONGEST_VALUE: usize = 256;
