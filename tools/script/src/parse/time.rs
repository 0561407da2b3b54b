//! Times of steps.

use core::time::Duration;

use super::ParseError;
use super::lexer::Cursor;
use crate::ast::{Ending, EventTime};

/// Start of a step, and end of its call if written.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(EventTime, Option<Ending>), ParseError> {
    if cursor.eat("*") {
        return Ok((EventTime::Any, None));
    }
    let begin = read_one(cursor)?;
    if cursor.eat("~") {
        return Ok((read_range(cursor, begin)?, None));
    }
    let ends = if cursor.eat("...") { Some(read_ending(cursor, begin)?) } else { None };
    Ok((begin.when(), ends))
}

/// A point in time as written.
#[derive(Clone, Copy)]
enum Point {
    Absolute(Duration),
    Relative(Duration),
}

impl Point {
    const fn when(self) -> EventTime {
        match self {
            Self::Absolute(at) => EventTime::Absolute(at),
            Self::Relative(after) => EventTime::Relative(after),
        }
    }

    const fn duration(self) -> Duration {
        match self {
            Self::Absolute(time) | Self::Relative(time) => time,
        }
    }
}

fn read_one(cursor: &mut Cursor<'_>) -> Result<Point, ParseError> {
    let is_relative = cursor.eat("+");
    let time = read_seconds(cursor)?;
    Ok(if is_relative { Point::Relative(time) } else { Point::Absolute(time) })
}

fn read_range(cursor: &mut Cursor<'_>, begin: Point) -> Result<EventTime, ParseError> {
    cursor.skip_blank();
    let at = cursor.clone();
    let end = read_one(cursor)?;
    let (from, to) = (begin.duration(), end.duration());
    match (begin, end) {
        _ if to < from => Err(at.error("a range that does not end before it begins")),
        // After a relative start, the sign may be omitted.
        (Point::Relative(_), _) => Ok(EventTime::RelativeRange(from, to)),
        (Point::Absolute(_), Point::Absolute(_)) => Ok(EventTime::AbsoluteRange(from, to)),
        (Point::Absolute(_), Point::Relative(_)) => Err(at.error("an absolute time")),
    }
}

fn read_ending(cursor: &mut Cursor<'_>, begin: Point) -> Result<Ending, ParseError> {
    cursor.skip_blank();
    let at = cursor.clone();
    let end = read_one(cursor)?;
    let (from, to) = (begin.duration(), end.duration());
    match (begin, end) {
        (Point::Absolute(_), Point::Relative(_)) => Ok(Ending::Absolute(from + to)),
        _ if to < from => Err(at.error("an end that is not before the beginning")),
        (Point::Absolute(_), Point::Absolute(_)) => Ok(Ending::Absolute(to)),
        (Point::Relative(_), _) => Ok(Ending::Relative(to)),
    }
}

/// `1`, `.5`, `1.25`: digits beyond the ninth decimal place are below the clock's resolution.
fn read_seconds(cursor: &mut Cursor<'_>) -> Result<Duration, ParseError> {
    cursor.skip_blank();
    let at = cursor.clone();
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let mut digits = cursor.rest().chars();
    let has_fraction =
        digits.next() == Some('.') && digits.next().is_some_and(|c| c.is_ascii_digit());
    let fraction = if has_fraction {
        cursor.advance(1);
        cursor.take_while(|c| c.is_ascii_digit())
    } else {
        ""
    };
    let too_far = || at.error("a time in seconds, at most 31536000");
    if whole.is_empty() && fraction.is_empty() {
        return Err(at.error("a time"));
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_far())? };
    if seconds > FARTHEST_SECONDS {
        return Err(too_far());
    }
    let decimals = fraction.bytes().chain(core::iter::repeat(b'0')).take(9);
    let nanos = decimals.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Ok(Duration::new(seconds, nanos))
}

/// A year: sums of a script's times stay far from the clock's end.
const FARTHEST_SECONDS: u64 = 365 * 24 * 60 * 60;
