use super::*;

#[test]
fn interval_is_students() {
    // Mean 100, standard deviation 10, three values: 10 / sqrt 3 * 4.303 = 24.8.
    let half = Level::P95.half_width(&[90.0, 100.0, 110.0]).unwrap();
    assert!((half - 0.2484).abs() < 0.0001, "{half}");
    let surer = Level::P99.half_width(&[90.0, 100.0, 110.0]).unwrap();
    assert!((surer - 0.5730).abs() < 0.0001, "{surer}");
}

#[test]
fn mean_is_sure_when_both_halves_fit() {
    let within = |width| Confidence { level: Level::P95, width }.holds(&[90.0, 100.0, 110.0]);
    assert!(within(0.50) && !within(0.49));
}

#[test]
fn too_few_runs_and_too_many_say_nothing() {
    assert_eq!(Level::P95.half_width(&[1.0]), None);
    assert_eq!(Level::P99.half_width(&[1.0; 31]), None);
    assert_eq!(Level::P99.half_width(&[1.0; 30]), Some(0.0));
}
