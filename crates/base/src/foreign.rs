//! Text of others on its way to a terminal: what could move the cursor, begin a line, turn letters
//! around or not be seen is written as an escape.
//!
//! Peers, files and documents decide what such text holds. [`Foreign`] keeps it as it came, and shows it
//! in one line of bounded length; [`printable`] is for a whole output, whose lines are our own.
//!
//! The standard library's `escape_debug` decides what does not print. It is not enough alone: it takes
//! text and no bytes, escapes quotes, has no bound, and shows the Hangul fillers, which are blank.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::{self, Write};

/// Text that a peer, a file or a document brought. What prints it shows it in one line, escaped, and no
/// more than [`MOST`] letters of it, or as many as the precision says: `{:.64}`.
///
/// ```
/// use whimbrel_base::Foreign;
///
/// let title = Foreign::new(b"\x1b]0;yours\x07 caf\xc3\xa9\r\n\xff".as_slice());
/// assert_eq!(title.to_string(), r"\u001b]0;yours\u0007 café\r\n\xff");
/// assert_eq!(format!("{title:.8}|{:<4}|", Foreign::new("a")), r"\u001b]…|a   |");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Foreign<T>(T);

impl<T> Foreign<T> {
    /// This text, of another's making.
    pub const fn new(text: T) -> Self {
        Self(text)
    }

    /// The text as it came, to be compared or handed on; what prints it prints what a peer wants.
    pub const fn verbatim(&self) -> &T {
        &self.0
    }
}

impl<T: AsRef<[u8]>> Foreign<T> {
    /// The lines of a text that may have several; each of them is foreign.
    pub fn lines(&self) -> impl Iterator<Item = Foreign<&[u8]>> {
        let text = self.0.as_ref();
        let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n');
        let of_any = (!text.is_empty()).then_some(lines).into_iter().flatten();
        of_any.map(|line| Foreign(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self.0.as_ref(), f.precision().unwrap_or(MOST)))
    }
}

/// As it is displayed, between quotes.
impl<T: AsRef<[u8]>> fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// An output of several lines with what does not print escaped, but for line feeds and tabs. The escapes
/// are those of JSON, so that a document means what it meant.
pub fn printable(text: &str) -> Cow<'_, str> {
    let stays = |letter: char| matches!(letter, '\n' | '\t') || is_printed(letter);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        if stays(letter) { out.push(letter) } else { escape(letter, &mut out) }
    }
    Cow::Owned(out)
}

/// True if a terminal shows the letter by itself and does nothing else: no control character, no mark that
/// joins, hides or turns others around, no blank but the space.
pub fn is_printed(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        letter if letter.is_ascii() => false,
        // Letters by their category, and blank all the same.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => false,
        letter => letter.escape_debug().len() == 1,
    }
}

/// At most so many letters; if there are more, the last that is shown is an ellipsis.
fn shown(bytes: &[u8], most: usize) -> String {
    let mut out = String::new();
    let (mut letters, mut end) = (0, 0);
    let mut piece = String::new();
    for letter in letters_of(bytes) {
        piece.clear();
        match letter {
            Ok(letter) if is_printed(letter) => piece.push(letter),
            Ok(letter) => escape(letter, &mut piece),
            Err(byte) => drop(write!(piece, "\\x{byte:02x}")),
        }
        // An escape, which is ASCII, or one letter.
        letters += if piece.is_ascii() { piece.len() } else { 1 };
        if letters > most {
            out.truncate(end);
            out.extend((most > 0).then_some('…'));
            return out;
        }
        out.push_str(&piece);
        // As far as there is room for an ellipsis behind it.
        if letters < most {
            end = out.len();
        }
    }
    out
}

/// The letters of what should be UTF-8, and each byte that is not.
fn letters_of(bytes: &[u8]) -> impl Iterator<Item = Result<char, u8>> {
    bytes.utf8_chunks().flat_map(|chunk| {
        chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().copied().map(Err))
    })
}

/// As JSON writes it: `\n`, `\u001b`, and two numbers for a letter beyond the first 65,536.
fn escape(letter: char, out: &mut String) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        letter => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

/// Letters of a foreign text that are shown if nothing else is said: as many as a path has bytes.
pub const MOST: usize = 4_096;

#[cfg(test)]
mod tests;
