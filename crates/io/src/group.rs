//! Keys of host groups that complete each other's handshakes or accept each other's Fast Open cookies.
//!
//! A key comes from a file or from the environment, never from the command line, which all users of the
//! machine can read.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fmt, fs, io};

use whimbrel_base::{Key, Secrets};
use whimbrel_stack::Shard;

/// The key of a group: 16 bytes, written as 32 hexadecimal digits.
///
/// Anyone with the key can open connections to the group's hosts from forged addresses. The clocks of
/// the group must agree to 40 s.
#[derive(Clone, Copy)]
pub struct GroupKey(Key);

/// Location of a key: `file:PATH` or `env:NAME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// A file with the key, 32 hexadecimal digits.
    File(PathBuf),
    /// An environment variable of this name.
    Environment(String),
}

/// Reason why a key could not be read. The message never contains the text found instead, which may be
/// most of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupKeyError {
    /// Neither `file:` nor `env:`.
    #[error("{0:?}: give file:PATH or env:NAME, which holds {FORM}")]
    Source(String),
    /// The file could not be read.
    #[error("{path}: {error}; give a file with {FORM}", path = crate::text::path(.path))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The variable does not exist.
    #[error("the environment has no {0}: set it to {FORM}")]
    Variable(String),
    /// Wrong number of digits.
    #[error("{0} characters: a key has {FORM}")]
    Length(usize),
    /// Not a hexadecimal digit.
    #[error("character {0} is no hexadecimal digit: a key has {FORM}")]
    Digit(usize),
    /// A key that is easy to guess.
    #[error("all digits are alike: draw {FORM}")]
    Plain,
}

impl GroupKey {
    /// Replaces the cookie keys by that of the group; the other keys remain.
    pub fn share(self, secrets: &mut Secrets) {
        secrets.cookies = self.0;
    }

    /// Returns the key. Anyone who knows it can forge cookies.
    pub const fn key(&self) -> &Key {
        &self.0
    }

    /// Makes a shard whose keys are [shared](GroupKey::share) a member of the group from now on.
    pub fn join(self, shard: &mut Shard) {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        shard.join_group(since_1970.unwrap_or(Duration::ZERO));
    }
}

impl KeySource {
    /// Reads the key.
    pub fn read(&self) -> Result<GroupKey, GroupKeyError> {
        match self {
            Self::File(path) => {
                let refused = |error| GroupKeyError::File { path: path.clone(), error };
                fs::read_to_string(path).map_err(refused)?.parse()
            }
            Self::Environment(name) => {
                env::var(name).map_err(|_| GroupKeyError::Variable(name.clone()))?.parse()
            }
        }
    }
}

impl FromStr for KeySource {
    type Err = GroupKeyError;

    fn from_str(text: &str) -> Result<Self, GroupKeyError> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(Path::new(path).into())),
            Some(("env", name)) if !name.is_empty() => Ok(Self::Environment(name.into())),
            // It may be the key itself.
            _ => Err(GroupKeyError::Source(text.chars().take(4).chain("…".chars()).collect())),
        }
    }
}

impl FromStr for GroupKey {
    type Err = GroupKeyError;

    /// Parses 32 hexadecimal digits, surrounded by any white space.
    fn from_str(text: &str) -> Result<Self, GroupKeyError> {
        let text = text.trim();
        let digit = |(at, digit): (usize, char)| {
            digit.to_digit(16).map(|digit| digit as u8).ok_or(GroupKeyError::Digit(at + 1))
        };
        let digits = text.chars().enumerate().map(digit).collect::<Result<Vec<_>, _>>()?;
        let (pairs, _) = digits.as_chunks::<2>();
        let bytes: Vec<_> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        let bytes = bytes.try_into().ok().filter(|_| digits.len() == 2 * Key::LEN);
        let bytes: [u8; Key::LEN] = bytes.ok_or(GroupKeyError::Length(digits.len()))?;
        if digits.iter().all(|digit| digits.first() == Some(digit)) {
            return Err(GroupKeyError::Plain);
        }
        Ok(Self(Key(bytes)))
    }
}

/// Shows that there is a key, but not its value.
impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupKey").finish_non_exhaustive()
    }
}

const FORM: &str = "32 hexadecimal digits, as `openssl rand -hex 16` prints them";

#[cfg(test)]
mod tests;
