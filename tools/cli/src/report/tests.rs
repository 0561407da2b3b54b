use super::*;

#[test]
fn table_columns_select_their_values() {
    let rows = [json!({ "start": 0.5, "cwnd": null, "limited": { "app": 1 } }), json!({})];
    assert_eq!(
        csv(&["start", "cwnd", "limited/app"], rows),
        "start,cwnd,limited_app\n0.5,,1\n,,\n"
    );
}

#[test]
fn headings_and_errors_are_painted_and_nothing_else_changes() {
    let text = "Summary:\n  Total: 1\n\nError distribution:\n  [1] refused\n\nSlow:\n  x\n";
    let painted = paint(text);
    assert!(painted.contains("\u{1b}[1mSummary:\u{1b}[0m\n  Total: 1\n"), "{painted:?}");
    assert!(painted.contains("\u{1b}[31m  [1] refused"), "{painted:?}");
    assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
}
