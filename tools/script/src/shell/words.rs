//! Shell lines as words: quotes, pipes and redirections, without expansion.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::UnsupportedLine;

/// One command, or several joined by pipes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    /// The line as written.
    pub(super) text: String,
    /// True if it begins with `!`.
    pub(super) negated: bool,
    /// The words of each command.
    pub(super) stages: Vec<Vec<String>>,
    /// File that the last command writes, unless it is `/dev/null`.
    pub(super) output: Option<String>,
}

/// Lines of a text, ended by a newline, `;` or `&&`. Lines that need a real shell are refused.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, UnsupportedLine> {
    let mut reader = Reader { rest: text };
    let mut lines = Vec::new();
    loop {
        let before = reader.rest;
        let read = reader.line();
        let consumed = before.len() - reader.rest.len();
        let written = before.get(..consumed).unwrap_or(before);
        let written = written.trim().trim_end_matches([';', '&']).trim_end();
        match read {
            Some(line) if line.stages.is_empty() && reader.rest.is_empty() => return Ok(lines),
            Some(line) if line.stages.is_empty() => {}
            Some(line) => lines.push(Line { text: written.to_string(), ..line }),
            None => {
                let line = before.trim_start().lines().next().unwrap_or_default();
                return Err(UnsupportedLine(line.trim_end().to_string()));
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

/// Token between words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'static str),
    End,
}

impl<'a> Reader<'a> {
    /// Reads to the end of a line. `None` if it needs a real shell.
    fn line(&mut self) -> Option<Line> {
        let mut line = Line::default();
        let mut words: Vec<String> = Vec::new();
        loop {
            match self.token()? {
                Token::Word("!") if words.is_empty() && line.stages.is_empty() => {
                    line.negated = !line.negated;
                }
                Token::Word(word) => words.push(unquote(word)?),
                Token::Sign("|") if !words.is_empty() => {
                    line.stages.push(core::mem::take(&mut words));
                }
                Token::Sign(">") => self.redirect(&mut line, &mut words)?,
                Token::Sign(";" | "\n" | "&&") | Token::End => {
                    let dangles = words.is_empty() && !line.stages.is_empty();
                    if dangles || words.is_empty() && line.negated {
                        return None;
                    }
                    if !words.is_empty() {
                        line.stages.push(words);
                    }
                    return Some(line);
                }
                Token::Sign(_) => return None,
            }
        }
    }

    /// After `>`: a file, or another descriptor. `1>` and `2>` are words so far.
    fn redirect(&mut self, line: &mut Line, words: &mut Vec<String>) -> Option<()> {
        let of_errors = words.pop_if(|word| word == "2").is_some();
        words.pop_if(|word| word == "1");
        if let Some(rest) = self.rest.strip_prefix("&1").or(self.rest.strip_prefix("&2")) {
            self.rest = rest;
            return Some(());
        }
        let Token::Word(file) = self.token()? else { return None };
        match unquote(file)?.as_str() {
            "/dev/null" => {}
            _ if of_errors => return None,
            file => line.output = Some(file.to_string()),
        }
        Some(())
    }

    fn token(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        const SIGNS: [&str; 8] = ["&&", "||", "|", ";", "\n", ">", "&", "<"];
        if self.rest.is_empty() {
            return Some(Token::End);
        }
        for sign in SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return Some(Token::Sign(sign));
            }
        }
        let end = word_end(self.rest)?;
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(Token::Word(word))
    }

    /// Blanks, lines continued after a backslash, and comments.
    fn skip_blanks(&mut self) {
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t', '\r']);
            let trimmed = trimmed.strip_prefix("\\\n").unwrap_or(trimmed);
            let trimmed = match trimmed.strip_prefix('#') {
                Some(comment) => comment.find('\n').map_or("", |end| &comment[end..]),
                None => trimmed,
            };
            if trimmed.len() == self.rest.len() {
                return;
            }
            self.rest = trimmed;
        }
    }
}

/// True if `word` is a group of one-letter options with this one.
pub(super) fn is_flag(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|it| !it.starts_with('-') && it.contains(letter))
}

/// The line within `$(…)`, if a word is one.
pub(super) fn substitution(word: &str) -> Option<Line> {
    let inner = word.strip_prefix("$(")?.strip_suffix(')')?;
    let mut lines = lines(inner).ok()?;
    let line = lines.pop()?;
    lines.is_empty().then_some(line)
}

/// End of a word: quotes and `$(…)` keep blanks within.
fn word_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0_u32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') if before == '$' || depth > 0 => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, _) if depth > 0 => {}
            (None, ' ' | '\t' | '\r' | '\n' | '|' | '&' | ';' | '>' | '<') => return Some(at),
            (None, '(' | ')' | '`') => return None,
            (None, _) => {}
        }
        before = c;
    }
    (quote.is_none() && depth == 0).then_some(text.len())
}

/// Removes quotes and backslashes. `$(…)` stays unchanged.
fn unquote(word: &str) -> Option<String> {
    if word.trim_matches('"').starts_with("$(") {
        return Some(word.trim_matches('"').to_string());
    }
    let mut plain = String::with_capacity(word.len());
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => plain.push(characters.next()?),
            _ => plain.push(c),
        }
    }
    Some(plain)
}
