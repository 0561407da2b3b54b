use super::*;

#[test]
fn packages_of_others_are_counted_once() {
    let tree = "whimbrel v0.1.0 (/w)\nbytes v1.0.0\nwhimbrel-io v0.1.0 (/io)\nbytes v1.0.0 (*)\n\n";
    assert!(judge_tree(tree).is_empty());
    let many: String = (0..=MOST).map(|number| format!("p{number} v1.0.0\n")).collect();
    let findings = judge_tree(&many);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert!(finding.to_string().contains("pulls 19 packages"), "{finding}");
}

#[test]
fn what_is_for_tests_is_named() {
    let findings = judge_tree("whimbrel v0.1.0\nwhimbrel-sim v0.1.0 (*)\n");
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert!(finding.to_string().contains("`whimbrel-sim`"), "{finding}");
}
