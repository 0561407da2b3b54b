use std::time::Duration;

use super::{Cell, Goal, grid, is_named, paths};

#[test]
fn grid_has_cells_whose_double_bdp_fits_in_the_buffer() {
    let names: Vec<_> = grid().into_iter().map(|line| line.name).collect();
    assert_eq!(names.len(), 28);
    for name in ["10M/1ms/reno", "100M/600ms/cubic", "1G/200ms/reno"] {
        assert!(names.iter().any(|it| it == name), "{name} is not among {names:?}");
    }
    assert!(!names.iter().any(|it| it.starts_with("1G/600ms")), "{names:?}");
}

#[test]
fn cell_is_measured_after_twice_slow_start_plus_two_seconds() {
    let cell = |rate, rtt| Cell { rate, rtt: Duration::from_millis(rtt), algorithm: "reno" };
    // A BDP of 1,250 bytes is less than the initial window.
    assert_eq!(cell(10_000_000, 1).begins(), Duration::from_secs(2));
    // 875,000 / 14,600 is 2^5.905: 2 s + 2 x 70 ms x 5.905.
    assert_eq!(cell(100_000_000, 70).begins().as_millis(), 2_826);
    assert_eq!(cell(100_000_000, 70).lasts(), Duration::from_secs(20));
}

#[test]
fn parts_in_any_order_name_a_line() {
    let lines = grid();
    let named = |pattern: &str| lines.iter().filter(|it| is_named(&it.name, pattern)).count();
    assert_eq!(named("100M/70ms/reno"), 1);
    assert_eq!(named("reno/100M"), 5);
    assert_eq!(named("1G"), 8);
    assert_eq!(named("70m"), 0);
}

#[test]
fn figure_is_worse_than_before_beyond_a_hundredth_of_it() {
    let goal = Goal::AtLeast(98.0);
    assert!(goal.is_met(98.0) && !goal.is_met(97.9));
    assert!(!goal.is_worse(49.6, 50.0) && goal.is_worse(49.4, 50.0));
    let goal = Goal::AtMost(3.0);
    assert!(goal.is_met(3.0) && !goal.is_met(3.1));
    assert!(!goal.is_worse(4.03, 4.0) && goal.is_worse(4.05, 4.0));
    let goal = Goal::Near(50.0);
    assert!(goal.is_met(55.0) && goal.is_met(45.0) && !goal.is_met(55.1) && !goal.is_met(44.9));
    assert!(!goal.is_worse(40.0, 60.0) && goal.is_worse(39.0, 60.0) && goal.is_worse(61.0, 60.0));
}

#[test]
fn slow_cell_is_filled_and_its_measurement_repeats() {
    let line = grid().into_iter().find(|line| line.name == "10M/10ms/reno").unwrap();
    let figure = line.measure(&|| true).unwrap();
    assert!((90.0..=100.5).contains(&figure.value), "{figure:?}");
    assert_eq!(line.measure(&|| true).unwrap(), figure);
}

#[test]
fn line_names_are_distinct() {
    let mut names: Vec<_> = grid().into_iter().chain(paths()).map(|line| line.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
