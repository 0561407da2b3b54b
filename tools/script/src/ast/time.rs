//! Times of events.

use core::time::Duration;

/// Time of an event. Relative times count from the event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTime {
    /// `*`: any time.
    Any,
    /// Time since the script's beginning: `.100`.
    Absolute(Duration),
    /// Time since the step before: `+.1`.
    Relative(Duration),
    /// Between two times since the beginning: `1~2`.
    AbsoluteRange(Duration, Duration),
    /// Between two times since the step before: `+.1~+.2`.
    RelativeRange(Duration, Duration),
}

/// End of a blocking call, as written after `...`, with its sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// `.1...0.2`: on the script's clock.
    Absolute(Duration),
    /// `+.1...0.3`: time since the event before the call, as its beginning, with or without `+`.
    Relative(Duration),
}
