//! Parsing and formatting of values: `60s`, `64k`, `on`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use crate::Micros;

use super::info::{Reading, Unit};

/// A type that a tunable can have. The formatted value parses to the same value.
pub trait Value: Copy {
    /// Parses `text`; `None` if it is invalid.
    fn parse(text: &str, unit: Unit, reading: Reading) -> Option<Self>;
    /// Formats the value, as typed.
    fn print(&self, unit: Unit) -> String;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn parse(text: &str, unit: Unit, reading: Reading) -> Option<Self> {
                Self::try_from(parse_number(text, unit, reading)?).ok()
            }

            fn print(&self, unit: Unit) -> String {
                print_number(u64::from(*self), unit)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl Value for Duration {
    fn parse(text: &str, _: Unit, reading: Reading) -> Option<Self> {
        let bare = match reading {
            Reading::Seconds => Some(1_000_000_000),
            Reading::Millis | Reading::TwiceMillis | Reading::MillisAndEighth => Some(1_000_000),
            Reading::Micros => Some(1_000),
            _ => None,
        };
        let nanos = parse_nanos(text, bare)?;
        Some(Self::from_nanos(match reading {
            Reading::TwiceMillis => nanos / 2,
            Reading::MillisAndEighth => nanos.checked_add(nanos / 8)?,
            _ => nanos,
        }))
    }

    fn print(&self, _: Unit) -> String {
        print_time(*self)
    }
}

impl Value for Micros {
    fn parse(text: &str, unit: Unit, reading: Reading) -> Option<Self> {
        Duration::parse(text, unit, reading).map(Self::from)
    }

    fn print(&self, _: Unit) -> String {
        print_time((*self).into())
    }
}

impl Value for bool {
    fn parse(text: &str, _: Unit, _: Reading) -> Option<Self> {
        match text {
            "on" | "1" | "true" | "yes" => Some(true),
            "off" | "0" | "false" | "no" => Some(false),
            _ => None,
        }
    }

    fn print(&self, _: Unit) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

/// Formats a time in the greatest unit that needs no fraction: `60s`, `200ms`, `0`.
pub fn print_time(time: Duration) -> String {
    let nanos = time.as_nanos();
    let unit = UNITS.iter().rev().find(|(_, unit)| nanos.is_multiple_of(u128::from(*unit)));
    let (name, unit) = unit.unwrap_or(&("ns", 1));
    format!("{}{name}", nanos / u128::from(*unit))
}

/// Parses a time with its unit.
pub fn parse_time(text: &str) -> Option<Duration> {
    parse_nanos(text, None).map(Duration::from_nanos)
}

fn parse_number(text: &str, unit: Unit, reading: Reading) -> Option<u64> {
    let text = reading.plain(text);
    let number = match unit {
        Unit::Bytes => parse_bytes(text)?,
        Unit::Nanos => parse_nanos(text, Some(1))?,
        _ => parse_digits(text)?,
    };
    Some(if reading == Reading::Twice { number / 2 } else { number })
}

fn print_number(number: u64, unit: Unit) -> String {
    let scaled = |shift: u32| number != 0 && number.trailing_zeros() >= shift;
    match unit {
        Unit::Nanos => print_time(Duration::from_nanos(number)),
        Unit::Bytes if scaled(30) => format!("{}G", number >> 30),
        Unit::Bytes if scaled(20) => format!("{}M", number >> 20),
        Unit::Bytes if scaled(10) => format!("{}k", number >> 10),
        _ => number.to_string(),
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (text.get(..text.len() - 1)?, 10),
        b'm' | b'M' => (text.get(..text.len() - 1)?, 20),
        b'g' | b'G' => (text.get(..text.len() - 1)?, 30),
        _ => (text, 0),
    };
    parse_digits(digits)?.checked_mul(1 << shift)
}

/// Parses a time in nanoseconds. `bare` is the unit of a number without one; without it, only 0
/// needs none.
fn parse_nanos(text: &str, bare: Option<u64>) -> Option<u64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit = match unit {
        "" if number == "0" => 1,
        "" => bare?,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        name => UNITS.iter().find(|(known, _)| *known == name)?.1,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = parse_digits(whole)?.checked_mul(unit)?;
    if fraction.len() > 9 {
        return None;
    }
    let part = parse_digits(fraction)?.checked_mul(unit)? / 10_u64.pow(fraction.len() as u32);
    whole.checked_add(part)
}

/// Parses digits only: no sign, no space.
fn parse_digits(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Units of formatted times, ascending.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
