//! The file that a screen is kept in.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whimbrel_apps::http::HttpDate;
use whimbrel_io::text;

/// A moment, as files and people name it.
pub(super) struct Stamp(HttpDate);

impl Stamp {
    /// The second that it is.
    pub(super) fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self(HttpDate::from_unix_seconds(now.as_secs()))
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub(super) fn text(&self) -> &str {
        self.0.as_str()
    }

    /// The second as part of a file's name: `19941106-084937`.
    fn digits(&self) -> String {
        let mut words = self.text().split_ascii_whitespace().skip(1);
        let mut word = || words.next().unwrap_or_default();
        let (day, month, year, time) = (word(), word(), word(), word());
        let month = MONTHS.iter().position(|known| *known == month).unwrap_or(0) + 1;
        format!("{year}{month:02}{day}-{}", time.replace(':', ""))
    }
}

/// Writes `text` into a new file of `folder`, and returns its name: no file is overwritten.
pub(super) fn keep(folder: &Path, stamp: &Stamp, text: &str) -> Result<PathBuf, String> {
    let digits = stamp.digits();
    let mut path = PathBuf::from(format!("whimbrel-load-{digits}.html"));
    for number in 2..=MOST {
        match OpenOptions::new().write(true).create_new(true).open(folder.join(&path)) {
            Ok(mut file) => {
                let written = file.write_all(text.as_bytes());
                return written.map(|()| path.clone()).map_err(|error| refused(&path, &error));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = PathBuf::from(format!("whimbrel-load-{digits}-{number}.html"));
            }
            Err(error) => return Err(refused(&path, &error)),
        }
    }
    Err(format!("{MOST} files exist for this second: press s later"))
}

fn refused(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", text::path(path))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// More than a user presses in one second.
const MOST: u32 = 100;

#[cfg(test)]
mod tests;
