//! When something happens.

use core::time::Duration;

/// The time of an event. Relative times count from the event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTime {
    /// `*`: whenever it does.
    Any,
    /// So long after the script's beginning: `.100`.
    Absolute(Duration),
    /// So long after the step before: `+.1`.
    Relative(Duration),
    /// Between two times since the beginning: `1~2`.
    AbsoluteRange(Duration, Duration),
    /// Between two times since the step before: `+.1~+.2`.
    RelativeRange(Duration, Duration),
}

/// When a blocking call ends, as written behind `...`: with the sign that it had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// `.1...0.2`: on the script's clock.
    Absolute(Duration),
    /// `+.1...0.3`: so long after the event before the call, as its beginning, with or without `+`.
    Relative(Duration),
}
