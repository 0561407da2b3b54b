//! The `Date` field (RFC 9110 5.6.7) from the driver's time, and the dates that clients send.

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
        let mut text = Text { bytes: [b' '; 29], length: 0 };
        let written = write!(
            text,
            "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
            name(WEEKDAYS, days + 4),
            name(MONTHS, month),
            second / 3_600,
            second / 60 % 60,
            second % 60,
        );
        debug_assert!(written.is_ok(), "29 bytes hold every second up to the year 9999");
        Self(text.bytes)
    }

    /// The 29 characters of the date, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The second that `text` means, since 1970; `now` is the present one. RFC 9110 5.6.7: "A recipient that
/// parses a timestamp value in an HTTP field MUST accept all three HTTP-date formats."
pub fn parse(text: &str, now: u64) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let weekday = words.next()?;
    let (day, month, year, time) = match weekday.strip_suffix(',') {
        // Sun Nov  6 08:49:37 1994
        None => {
            let (month, day, time) = (words.next()?, words.next()?, words.next()?);
            (day, month, number(words.next()?, 4)?, time)
        }
        // Sun, 06 Nov 1994 08:49:37 GMT
        Some(day_of_week) if day_of_week.len() == 3 => {
            let (day, month, year) = (words.next()?, words.next()?, words.next()?);
            let time = words.next()?;
            words.next().filter(|zone| *zone == "GMT")?;
            (day, month, number(year, 4)?, time)
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        Some(_) => {
            let mut date = words.next()?.split('-');
            let (day, month, year) = (date.next()?, date.next()?, number(date.next()?, 2)?);
            let time = words.next()?;
            words.next().filter(|zone| *zone == "GMT")?;
            (day, month, full_year(year, now), time)
        }
    };
    let month = (0..12).find(|number| name(MONTHS, *number) == month)?;
    let day = number(day, 2).or_else(|| number(day, 1)).filter(|day| (1..=31).contains(day))?;
    let mut clock = time.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let ends = words.next().is_none() && clock.next().is_none();
    // A leap second counts as the second before it.
    if !ends || hour > 23 || minute > 59 || second > 60 || year < 1970 {
        return None;
    }
    let days = days_before(year, month, day)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second.min(59))
}

/// RFC 9110 5.6.7: a year of two digits that appears to be more than 50 years in the future is the most
/// recent one in the past that has them.
fn full_year(last_two: u64, now: u64) -> u64 {
    let (this, ..) = civil(now.min(LAST_SECOND) / 86_400);
    let year = this - this % 100 + last_two;
    if year > this + 50 { year - 100 } else { year }
}

/// Exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The days from 1970-01-01 to a date from then on; `None` if its month has no such day.
fn days_before(year: u64, month: u64, day: u64) -> Option<u64> {
    // As in `civil`, years begin in March.
    let (march_year, march_month) = (year - u64::from(month < 2), (month + 10) % 12);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400;
    let days = (days + day_of_year).checked_sub(719_468)?;
    (civil(days) == (year, month, day)).then_some(days)
}

/// Year, month (0 ..= 11) and day of a number of days since 1970-01-01. Years begin in March, so
/// that the leap day is the last.
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

/// The name at `number`, modulo the number of names.
fn name(names: &'static str, number: u64) -> &'static str {
    let count = names.len() as u64 / 3;
    let at = usize::try_from(number % count).unwrap_or(0) * 3;
    names.get(at..at + 3).unwrap_or_default()
}

struct Text {
    bytes: [u8; 29],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

const WEEKDAYS: &str = "SunMonTueWedThuFriSat";
const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
const LAST_SECOND: u64 = 253_402_300_799;

#[cfg(test)]
mod tests;
