//! Compares the curve in integers with the curve in floating point.

use proptest::prelude::*;

use super::{Curve, cube_root};

const MSS: u32 = 1_460;
const SECOND: u32 = 1_000_000;

#[test]
fn the_curve_of_a_thousand_segments_is_back_after_nine_seconds() {
    // RFC 9438 4.2: the cube root of 300 / 0.4 is 9.086 s.
    let curve = Curve::new(700 * MSS, 1_000 * MSS, MSS);
    let segments = |seconds: f64| curve.at((seconds * 1e6) as u32, MSS) / MSS;
    assert_eq!(segments(0.0), 700);
    assert_eq!(segments(9.086 / 2.0), 962, "seven eighths of the way in half of the time");
    assert!((999..=1_000).contains(&segments(9.086)));
    assert_eq!(segments(9.086 * 2.0), 1_300, "and as far beyond in the same time again");
}

#[test]
fn a_plateau_below_the_window_is_the_window_itself() {
    for w_max in [0, 699 * MSS, 700 * MSS] {
        let curve = Curve::new(700 * MSS, w_max, MSS);
        assert_eq!(curve.at(0, MSS), 700 * MSS);
        let later = curve.at(10 * SECOND, MSS).div_ceil(MSS);
        assert_eq!(later, 700 + 400, "0.4 x 10^3 segments more");
    }
}

#[test]
fn cube_roots_are_exact() {
    for root in [0_u32, 1, 2, 9, 10, 1_000, 1_048_576, 2_097_151] {
        let cube = u64::from(root).pow(3);
        assert_eq!(cube_root(cube), root);
        assert_eq!(cube_root(cube + 1), root.max(1));
        assert_eq!(cube_root(cube.saturating_sub(1)), root.saturating_sub(1));
    }
}

proptest! {
    #[test]
    fn integers_say_what_floating_point_says(
        cwnd in 1u32..=1 << 30,
        more in 0u32..=1 << 30,
        mss in 36u32..=65_495,
        micros: u32,
    ) {
        let w_max = cwnd.saturating_add(more).min(1 << 30);
        let curve = Curve::new(cwnd, w_max, mss);
        let (cwnd, w_max, unit) = (f64::from(cwnd), f64::from(w_max), f64::from(mss));
        let k = ((w_max - cwnd) / unit / 0.4).cbrt();
        let t = f64::from(micros) / 1e6;
        let exact = (0.4 * (t - k).powi(3) * unit + w_max).clamp(0.0, f64::from(1 << 30));
        // A unit of time of the slope there, and one of K.
        let slope = 3.0 * 0.4 * (t - k).abs().powi(2) * unit;
        let error = (f64::from(curve.at(micros, mss)) - exact).abs();
        prop_assert!(error <= 2.1e-3 * slope + 0.01 * unit + 2.0, "{exact} and {error} more or less");
    }

    #[test]
    fn nothing_overflows(cwnd: u32, w_max: u32, mss: u32, micros: u32) {
        let curve = Curve::new(cwnd, w_max, mss);
        prop_assert!(curve.at(micros, mss) <= 1 << 30);
    }
}
