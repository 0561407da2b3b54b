use super::*;

const DATA: (&str, &str) = (
    "crates/stack/src/profile/old.rs",
    "pub(super) const OLD: Profile = Profile {\n    name: \"old-2.1\",\n};\n    name: \"old\",\n",
);

fn found(file: &str, text: &str) -> Vec<String> {
    judge(&Tree::of(&[DATA, (file, text)])).iter().map(ToString::to_string).collect()
}

#[test]
fn who_compares_with_a_name_or_asks_for_its_profile_is_found() {
    for line in [
        "if name == \"old-2.1\" {",
        "if \"old-2.1\" != name {",
        "    \"old-2.1\" => 7,",
        "    \"new\" | \"old-2.1\" => 7,",
        "let old = Profile::by_name(\"old-2.1\");",
        "if rules.profile.name == name {",
        "if profile.name.starts_with(name) {",
    ] {
        let text = format!("fn f() {{\n{line}\n");
        let findings = found("crates/tcp/src/conn.rs", &text);
        assert!(findings.len() == 1 && findings[0].contains("conn.rs:2"), "{line}: {findings:?}");
    }
}

#[test]
fn who_names_one_as_data_or_in_a_test_is_not() {
    for line in [
        "    client: \"old-2.1\",",
        "// \"old-2.1\" => 7,",
        "    \"old\" => 7,",
        "let name = rules.profile.name;",
    ] {
        assert_eq!(found("tools/cli/src/lab.rs", line), [""; 0], "{line}");
    }
    assert_eq!(found("tools/cli/src/rules/tests.rs", "a == \"old-2.1\""), [""; 0]);
    assert_eq!(found("tools/cli/tests/whimbrel/lab.rs", "a == \"old-2.1\""), [""; 0]);
}
