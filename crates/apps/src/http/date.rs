//! The `Date` field (RFC 9110 5.6.7), from a time that the driver gives.

use core::fmt::{self, Write};

/// A second in the form `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HttpDate([u8; 29]);

impl HttpDate {
    /// The second `seconds` after 1970-01-01 00:00 UTC, up to the year 9999.
    pub fn from_unix_seconds(seconds: u64) -> Self {
        let seconds = seconds.min(LAST_SECOND);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        let mut text = Text { octets: [b' '; 29], length: 0 };
        let written = write!(
            text,
            "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
            name(WEEKDAYS, days + 4),
            name(MONTHS, month),
            second / 3_600,
            second / 60 % 60,
            second % 60,
        );
        debug_assert!(written.is_ok(), "29 octets hold every second up to the year 9999");
        Self(text.octets)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Year, month (0 ..= 11) and day of a number of days since 1970-01-01. Years begin in March
/// here, so that the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    (era * 400 + year_of_era + u64::from(month < 2), month, day)
}

/// The three letters numbered `number`, modulo how many there are.
fn name(names: &'static str, number: u64) -> &'static str {
    let count = names.len() as u64 / 3;
    let at = usize::try_from(number % count).unwrap_or(0) * 3;
    names.get(at..at + 3).unwrap_or_default()
}

struct Text {
    octets: [u8; 29],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.octets.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

const WEEKDAYS: &str = "SunMonTueWedThuFriSat";
const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
const LAST_SECOND: u64 = 253_402_300_799;

#[cfg(test)]
mod tests;
