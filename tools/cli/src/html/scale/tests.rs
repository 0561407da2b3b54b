//! Values and places.

use super::*;

#[test]
fn values_lie_between_the_ends_by_difference_or_by_ratio() {
    let linear = Scale::linear([0.0, 200.0], [100.0, 0.0]);
    assert_eq!([0.0, 50.0, 200.0, 900.0].map(|it| linear.place(it)), [100.0, 75.0, 0.0, 0.0]);
    let log = Scale::log([0.01, 100.0], [0.0, 400.0]);
    assert_eq!([0.001, 0.1, 10.0].map(|it| log.place(it).round()), [0.0, 100.0, 300.0]);
    assert_eq!(log.decades(), [0.01, 0.1, 1.0, 10.0, 100.0]);
    // No range to divide.
    assert_eq!(Scale::linear([0.0, 0.0], [5.0, 9.0]).place(3.0), 5.0);
}

#[test]
fn an_axis_ends_at_a_round_number_not_far_above() {
    for (value, end) in [(0.0, 1.0), (16_384.0, 20_000.0), (27_645.0, 30_000.0), (0.29, 0.3)] {
        assert!((round_up(value) - end).abs() < 1e-9, "{value}: {}", round_up(value));
    }
    assert_eq!(round_up(f64::NAN), 1.0);
}
