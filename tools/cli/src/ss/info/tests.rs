use std::time::Duration;

use super::{significant, span};

mod live;

#[test]
fn times_are_written_as_by_ss() {
    for (millis, text) in [
        (0, "0ms"),
        (200, "200ms"),
        (5_120, "5.120ms"),
        (5_000, "5sec"),
        (59_999, "59sec"),
        (60_000, "1min"),
        (119_000, "1min59sec"),
    ] {
        assert_eq!(span(Duration::from_millis(millis)), text);
    }
}

#[test]
fn numbers_have_six_digits_as_by_printf() {
    for (value, text) in [
        (0.025, "0.025"),
        (204.0, "204"),
        (1.5, "1.5"),
        (120_000.0, "120000"),
        (12.345_678, "12.3457"),
    ] {
        assert_eq!(significant(value), text);
    }
}
