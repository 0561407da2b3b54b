use serde_json::{Value, json};

use super::{Pace, Row, summary};

fn cell(loss: f64, used: f64, wait: f64, again: f64) -> Value {
    json!({
        "name": "10M/1ms/0%/1bdp/bbr", "loss": loss, "used": used, "sent_again": again,
        "wait": { "mean": wait, "p99": 2.0 * wait }, "limit": { "by": "cwnd", "percent": 99.6 },
        "error": null,
    })
}

fn row(document: Value, before: Option<Value>) -> Row {
    Row { name: "10M/1ms/0%/1bdp/bbr".into(), document, before }
}

fn is_worse(now: Value, before: Value) -> bool {
    row(now, Some(before)).is_worse()
}

#[test]
fn cell_with_less_rate_more_wait_or_more_repeats_is_worse() {
    let before = || cell(0.0, 90.0, 0.01, 1.0);
    assert!(!is_worse(before(), before()));
    assert!(!is_worse(cell(0.0, 88.3, 0.0119, 1.29), before()));
    assert!(is_worse(cell(0.0, 88.1, 0.01, 1.0), before()));
    assert!(is_worse(cell(0.0, 90.0, 0.0121, 1.0), before()));
    assert!(is_worse(cell(0.0, 90.0, 0.01, 1.31), before()));
    assert!(!row(before(), None).is_worse());
}

#[test]
fn rate_of_a_lossy_cell_may_fall_by_a_tenth() {
    let before = || cell(0.1, 90.0, 0.01, 1.0);
    assert!(!is_worse(cell(0.1, 81.1, 0.01, 1.0), before()));
    assert!(is_worse(cell(0.1, 80.9, 0.01, 1.0), before()));
}

#[test]
fn cell_that_cannot_be_measured_any_more_is_worse() {
    let failed =
        json!({ "name": "10M/1ms/0%/1bdp/bbr", "loss": 0.0, "used": null, "error": "it hangs" });
    let row = row(failed, Some(cell(0.0, 90.0, 0.01, 1.0)));
    assert!(row.is_worse());
    let text = row.text();
    assert!(text.contains(" it hangs\nWORSE than ") && text.contains(" 90.0 %"), "{text}");
}

#[test]
fn line_of_a_cell_fits_80_columns() {
    let name = "100M/600ms/0.001%/0.25bdp/cubic".into();
    let document = cell(0.001, 100.04, 0.99, 10.25);
    let text = Row { name, document, before: None }.text();
    assert!(text.trim_end().len() <= 80, "{text}");
    assert!(
        text.contains("100.0 %") && text.contains(" 990ms ") && text.contains("1.98s"),
        "{text}"
    );
    assert!(text.ends_with("  cwnd 100 %\n"), "{text}");
}

#[test]
fn summary_counts_worse_and_new_cells() {
    let now = || cell(0.0, 90.0, 0.01, 1.0);
    let rows = [row(now(), Some(cell(0.0, 99.0, 0.01, 1.0))), row(now(), None)];
    assert_eq!(summary(&rows, None), "2 cells\n");
    assert_eq!(summary(&rows, Some(&<_>::default())), "2 cells\n1 worse than before, 1 new\n");
}

#[test]
fn time_left_is_unknown_before_the_first_cell() {
    let pace = Pace { began: std::time::Instant::now(), all: 10.0, done: 0.0 };
    assert_eq!(pace.left(), "");
    let minute = std::time::Duration::from_secs(60);
    let began = pace.began.checked_sub(minute).unwrap();
    assert_eq!(Pace { began, done: 5.0, ..pace }.left(), ", about 2 min left");
    let pace = Pace { began, all: 300.0, done: 1.0 };
    assert_eq!(pace.left(), ", about 5.0 h left");
}
