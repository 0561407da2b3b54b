//! Position in a text, and its movement.

use alloc::format;
use alloc::string::{String, ToString};

use super::ParseError;

/// Position in a text. Methods whose names end in `_here` do not skip blanks first.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    line: u32,
    /// Column in the current line of the text.
    column: u32,
    only_blanks_in_line: bool,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, column: 1, only_blanks_in_line: true }
    }

    /// Line of the next character (from 1).
    pub(super) const fn line(&self) -> u32 {
        self.line
    }

    /// The rest of the text, blanks included.
    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    /// True if only blanks and comments are left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blank();
        self.rest.is_empty()
    }

    /// The next character that is not blank.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip_blank();
        self.rest.chars().next()
    }

    /// True if `what` is next.
    pub(super) fn sees(&mut self, what: &str) -> bool {
        self.skip_blank();
        self.sees_here(what)
    }

    /// True if `what` follows immediately.
    pub(super) fn sees_here(&self, what: &str) -> bool {
        self.rest.starts_with(what)
    }

    /// Takes `what` if it is next.
    pub(super) fn eat(&mut self, what: &str) -> bool {
        self.skip_blank();
        self.eat_here(what)
    }

    /// Takes `what` if it follows immediately.
    pub(super) fn eat_here(&mut self, what: &str) -> bool {
        let found = self.sees_here(what);
        if found {
            self.advance(what.len());
        }
        found
    }

    /// Takes `what`, which must be next; the error says `meaning`.
    pub(super) fn expect(&mut self, what: &str, meaning: &str) -> Result<(), ParseError> {
        match self.eat(what) {
            true => Ok(()),
            false => Err(self.error(meaning)),
        }
    }

    /// The next name, without taking it; empty if there is none.
    pub(super) fn peek_word(&mut self) -> &'a str {
        self.skip_blank();
        let starts = self.rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let end =
            if starts { self.len_while(|c| c.is_ascii_alphanumeric() || c == '_') } else { 0 };
        self.rest.get(..end).unwrap_or_default()
    }

    /// Takes the next name.
    pub(super) fn word(&mut self, meaning: &str) -> Result<&'a str, ParseError> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.error(meaning));
        }
        self.advance(word.len());
        Ok(word)
    }

    /// Takes `word` if it is the whole of the next name.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.advance(word.len());
        }
        found
    }

    /// Takes a number, decimal or (`0x`) hexadecimal, that fits `T`.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, meaning: &str) -> Result<T, ParseError> {
        self.skip_blank();
        let at = self.clone();
        let (radix, prefix) =
            if self.sees_here("0x") || self.sees_here("0X") { (16, 2) } else { (10, 0) };
        self.advance(prefix);
        let digits = self.take_while(|c| c.is_digit(radix));
        let value = u64::from_str_radix(digits, radix).ok();
        value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| at.error(meaning))
    }

    /// Takes the characters that follow immediately and belong.
    pub(super) fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let taken = self.rest.get(..self.len_while(belongs)).unwrap_or_default();
        self.advance(taken.len());
        taken
    }

    /// Takes everything up to `end`, and `end`; `None` if there is none.
    pub(super) fn take_until(&mut self, end: &str) -> Option<&'a str> {
        let (taken, _) = self.rest.split_once(end)?;
        self.advance(taken.len() + end.len());
        Some(taken)
    }

    /// Takes `"text"` and decodes its escapes.
    pub(super) fn string(&mut self) -> Result<String, ParseError> {
        self.expect("\"", "a text in quotation marks")?;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| !matches!(c, '"' | '\\' | '\n')));
            if self.eat_here("\"") {
                return Ok(text);
            }
            if !self.eat_here("\\") {
                return Err(self.error("a quotation mark that ends the text"));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let at = self.clone();
        let escape = self.rest.chars().next();
        self.advance(escape.map_or(0, char::len_utf8));
        let meant = match escape {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('0') => '\0',
            Some(c @ ('\\' | '"' | '\'')) => c,
            Some('x') => {
                let digits = self.rest.get(..2).and_then(|two| u8::from_str_radix(two, 16).ok());
                self.advance(digits.map_or(0, |_| 2));
                char::from(digits.ok_or_else(|| at.error("two hexadecimal digits"))?)
            }
            _ => return Err(at.error("an escape: n r t 0 \\ \" ' or x and two digits")),
        };
        Ok(meant)
    }

    /// Skips blanks and comments: `// …`, `/* … */`, and `# …` at the start of a line. An
    /// unterminated comment stays, for the error.
    pub(super) fn skip_blank(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            let is_comment =
                self.sees_here("//") || (self.sees_here("#") && self.only_blanks_in_line);
            if is_comment {
                self.take_while(|c| c != '\n');
            } else if self.sees_here("/*") {
                let Some(end) = self.rest.get(2..).and_then(|rest| rest.find("*/")) else { return };
                self.advance(end + 4);
            } else {
                return;
            }
        }
    }

    /// Skips the rest of a step: up to a line that begins like a step.
    pub(super) fn skip_step(&mut self) {
        while !self.rest.is_empty() {
            self.take_while(|c| c != '\n');
            self.take_while(char::is_whitespace);
            let digits = self.rest.strip_prefix('.').unwrap_or(self.rest);
            let is_time = digits.starts_with(|c: char| c.is_ascii_digit());
            if is_time || self.rest.starts_with(['+', '*', '`']) {
                return;
            }
        }
    }

    /// Advances by `bytes`, which end at a character.
    pub(super) fn advance(&mut self, bytes: usize) {
        let (Some(passed), Some(rest)) = (self.rest.get(..bytes), self.rest.get(bytes..)) else {
            return;
        };
        self.rest = rest;
        for c in passed.chars() {
            if c == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
                self.only_blanks_in_line = true;
            } else {
                self.column = self.column.saturating_add(1);
                self.only_blanks_in_line &= c.is_whitespace();
            }
        }
    }

    /// Error at the next character that is not blank.
    pub(super) fn error(&self, expected: &str) -> ParseError {
        let mut at = self.clone();
        at.skip_blank();
        let end = at.len_while(|c| !c.is_whitespace());
        let word: String =
            at.rest.get(..end).unwrap_or_default().chars().take(LONGEST_FOUND).collect();
        let found = if word.is_empty() { "the end".to_string() } else { format!("\"{word}\"") };
        ParseError { line: at.line, column: at.column, expected: expected.to_string(), found }
    }

    fn len_while(&self, belongs: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len())
    }
}

/// Most characters of the found text that an error repeats.
const LONGEST_FOUND: usize = 24;
