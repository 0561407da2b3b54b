//! Tests of `window`.

use proptest::prelude::*;

use super::*;

#[test]
fn a_shift_above_fourteen_is_read_as_fourteen() {
    assert_eq!(WindowScale::new(15), WindowScale::MAX);
    assert_eq!(WindowScale::new(255), WindowScale::MAX);
}

#[test]
fn the_least_sufficient_shift_is_chosen() {
    for (bytes, shift) in [
        (0, 0),
        (65_535, 0),
        (65_536, 1),
        (131_071, 1),
        (131_072, 2),
        (1 << 30, 14),
        (u32::MAX, 14),
    ] {
        assert_eq!(WindowScale::for_window(bytes), WindowScale::new(shift), "{bytes} bytes");
    }
}

#[test]
fn the_largest_window_is_the_largest_field_at_the_largest_shift() {
    assert_eq!(RawWindow::new(65_535).scaled(WindowScale::MAX), WindowSize::MAX);
    assert_eq!(WindowSize::new(u32::MAX), WindowSize::MAX);
}

proptest! {
    #[test]
    fn an_announced_window_never_exceeds_the_true_one(bytes: u32, shift in 0u8..=14) {
        let (window, scale) = (WindowSize::new(bytes), WindowScale::new(shift));
        let announced = window.to_raw(scale).scaled(scale);
        prop_assert!(announced <= window);
        let saturated = window.to_raw(scale).get() == 65_535;
        prop_assert!(saturated || window.get() - announced.get() < 1 << shift);
    }
}
