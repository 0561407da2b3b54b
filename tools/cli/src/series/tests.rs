//! Series of long runs.

use super::*;

#[test]
fn long_series_is_averaged_to_its_limit() {
    let second = Duration::from_secs(1);
    let short = series("rate", "per_second", second, &[1.0, 2.0]);
    assert_eq!((&short["step"], &short["values"]), (&json!(1.0), &json!([1.0, 2.0])));
    let long = series("rate", "per_second", second, &[vec![1.0; 500], vec![4.0; 500]].concat());
    assert_eq!(long["step"], 3.0);
    let values = long["values"].as_array().unwrap();
    assert_eq!((values.len(), &values[0], &values[333]), (334, &json!(1.0), &json!(4.0)));
}
