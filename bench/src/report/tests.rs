use super::{grouped, replace, short_number};

#[test]
fn only_what_stands_between_the_markers_is_replaced() {
    let page = "before\n<!-- churn: begin -->\nold\n<!-- churn: end -->\nafter\n";
    let wanted = "before\n<!-- churn: begin -->\nnew\n<!-- churn: end -->\nafter\n";
    assert_eq!(replace(page, "churn", "new\n").unwrap(), wanted);
    assert!(replace("no markers", "churn", "new\n").is_err());
}

#[test]
fn numbers_have_three_digits_and_are_grouped_by_thousands() {
    assert_eq!(short_number(0.456), "0.46");
    assert_eq!(short_number(45.67), "45.7");
    assert_eq!(short_number(456.7), "457");
    assert_eq!(short_number(1_234_567.0), "1,234,567");
    assert_eq!(grouped(0), "0");
}
