//! Foreign text on its way to a terminal. Characters that could move the cursor, begin a line,
//! reverse letters or be invisible are escaped.
//!
//! Peers, files and documents determine such text. [`Foreign`] keeps it unchanged, and displays it
//! in one line of bounded length; [`printable`] is for a whole output, whose lines are the
//! program's own.
//!
//! The standard library's `escape_debug` decides which characters are printable. It is not
//! sufficient: it takes text and no bytes, escapes quotes, has no bound, and prints the Hangul
//! fillers, which are blank.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::{self, Write};

/// Text from a peer, a file or a document. `Display` writes it in one line, escaped, with at most
/// [`MOST`] letters, or as many as the precision says: `{:.64}`.
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
    /// Wraps foreign text.
    pub const fn new(text: T) -> Self {
        Self(text)
    }

    /// Returns the text unchanged, to be compared or forwarded. To print it is unsafe.
    pub const fn verbatim(&self) -> &T {
        &self.0
    }
}

impl<T: AsRef<[u8]>> Foreign<T> {
    /// Iterates over the lines of a text; each of them is foreign.
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

/// Writes the displayed form, between quotes.
impl<T: AsRef<[u8]>> fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Escapes the unprintable characters of an output, except line feeds and tabs. The escapes are
/// those of JSON, so that a document keeps its meaning.
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

/// True if a terminal prints the character by itself and does nothing else: no control character,
/// no mark that joins, hides or reverses others, no blank but the space.
pub fn is_printed(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        letter if letter.is_ascii() => false,
        // Letters by their category, but blank.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => false,
        letter => letter.escape_debug().len() == 1,
    }
}

/// Returns at most `most` letters; if there are more, the last is an ellipsis.
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
        // The letters that leave room for an ellipsis.
        if letters < most {
            end = out.len();
        }
    }
    out
}

/// Iterates over the characters of UTF-8 text, and each byte that is not UTF-8.
fn letters_of(bytes: &[u8]) -> impl Iterator<Item = Result<char, u8>> {
    bytes.utf8_chunks().flat_map(|chunk| {
        chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().copied().map(Err))
    })
}

/// Escapes a character as JSON does: `\n`, `\u001b`, and two numbers for a character beyond the
/// first 65,536.
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

/// Default limit of displayed letters: as many as a path has bytes.
pub const MOST: usize = 4_096;

#[cfg(test)]
mod tests;
