//! Splits a target's path into names that are safe to look up: no separator, no way upward.

use alloc::string::String;
use alloc::vec::Vec;

/// The names of a path, from its root down, percent-decoded. Empty for `/`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathNames {
    /// The names. None is empty, `.` or `..`, or holds `/` or NUL.
    pub names: Vec<String>,
    /// True if the path ends with `/`, that is, names a directory.
    pub directory: bool,
}

/// Error of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathFault {
    /// `%` without two hexadecimal digits.
    #[error("% is followed by two hexadecimal digits")]
    Percent,
    /// The decoded name is not UTF-8.
    #[error("a path is UTF-8")]
    Encoding,
    /// A name that leads upward, or holds a separator or NUL.
    #[error("a path stays below its root: no .., no encoded / and no NUL")]
    Escape,
}

impl PathNames {
    /// Splits at `/` first and decodes then, so that an encoded separator stays within a name.
    pub fn parse(path: &str) -> Result<Self, PathFault> {
        let mut names = Vec::new();
        for part in path.split('/') {
            let name = decode(part)?;
            match name.as_str() {
                "" | "." => {}
                ".." => return Err(PathFault::Escape),
                text if text.contains(['/', '\0']) => return Err(PathFault::Escape),
                _ => names.push(name),
            }
        }
        let directory = path.rsplit('/').next().is_none_or(|last| matches!(last, "" | "."));
        Ok(Self { names, directory })
    }

    /// True if any name begins with a dot.
    pub fn is_hidden(&self) -> bool {
        self.names.iter().any(|name| name.starts_with('.'))
    }

    /// The path with reserved characters encoded; begins with `/`.
    pub fn encode(&self) -> String {
        let mut path = String::new();
        for name in &self.names {
            path.push('/');
            encode_name(name, &mut path);
        }
        if self.directory || self.names.is_empty() {
            path.push('/');
        }
        path
    }
}

/// Appends `name` to `path`, with all characters encoded except unreserved ones (RFC 3986 2.3).
pub fn encode_name(name: &str, path: &mut String) {
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push('%');
            for nibble in [byte >> 4, byte & 15] {
                path.push(
                    char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase(),
                );
            }
        }
    }
}

fn decode(part: &str) -> Result<String, PathFault> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let (high, low) = (hexadecimal(rest.next())?, hexadecimal(rest.next())?);
            high << 4 | low
        } else {
            byte
        });
    }
    String::from_utf8(bytes).map_err(|_| PathFault::Encoding)
}

fn hexadecimal(byte: Option<u8>) -> Result<u8, PathFault> {
    byte.and_then(|byte| char::from(byte).to_digit(16))
        .and_then(|digit| u8::try_from(digit).ok())
        .ok_or(PathFault::Percent)
}

#[cfg(test)]
mod tests;
