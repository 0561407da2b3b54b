use std::time::Duration;

use super::{Cell, FullCell, Goal, grid, is_named, paths};

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

#[test]
fn full_grid_has_720_cells_of_distinct_names() {
    let cells = FullCell::all();
    let mut names: Vec<_> = cells.iter().map(FullCell::name).collect();
    assert_eq!(names.first().map(String::as_str), Some("10M/1ms/0%/0.25bdp/reno"));
    assert!(names.iter().any(|it| it == "10G/600ms/0.001%/4bdp/bbr"), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 720);
}

#[test]
fn full_cell_estimates_packets_of_line_window_or_losses() {
    let packets = |name: &str| {
        let cell = FullCell::all().into_iter().find(|cell| cell.name() == name).unwrap();
        cell.packets() as u64
    };
    // 22 s of 833 packets.
    assert_eq!(packets("10M/1ms/0%/1bdp/cubic"), 10_000 + 18_333);
    let line = packets("100M/10ms/0%/1bdp/cubic");
    assert!(packets("100M/10ms/1%/1bdp/cubic") < line);
    assert_eq!(packets("100M/10ms/1%/1bdp/bbr"), line);
    // 64 MB in 600 ms are less than 1 Gb/s, and a tenth of 10 Gb/s.
    assert!(packets("10G/600ms/0%/1bdp/bbr") < packets("1G/70ms/0%/1bdp/bbr") * 2);
}

#[test]
fn full_cell_measures_rate_wait_and_losses() {
    let measure = |name: &str| {
        let cell = FullCell::all().into_iter().find(|cell| cell.name() == name).unwrap();
        cell.measure(&|| true).unwrap()
    };
    let (clean, lossy) = (measure("10M/10ms/0%/1bdp/cubic"), measure("10M/10ms/1%/1bdp/cubic"));
    assert!((97.0..=100.5).contains(&clean.used), "{clean:?}");
    assert!(clean.wait_mean > lossy.wait_mean && clean.wait_mean <= clean.wait_p99, "{clean:?}");
    assert!((0.9..1.5).contains(&lossy.sent_again) && clean.sent_again < 0.9, "{lossy:?}");
    assert_eq!(measure("10M/10ms/1%/1bdp/cubic"), lossy);
}
