use super::judge;
use crate::tree::Tree;

fn lines_found(name: &str, text: &str) -> Vec<usize> {
    judge(&Tree::of(&[(name, text)])).iter().map(|finding| finding.line).collect()
}

#[test]
fn an_inline_test_module_is_found() {
    assert_eq!(lines_found("src/a.rs", "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n"), [2]);
}

#[test]
fn an_inline_test_module_by_another_name_is_found() {
    assert_eq!(lines_found("src/a.rs", "#[cfg(test)]\nmod properties {}\n"), [2]);
}

#[test]
fn a_test_module_in_its_own_file_passes() {
    assert!(lines_found("src/a.rs", "#[cfg(test)]\nmod tests;\nmod b { fn f() {} }\n").is_empty());
}

#[test]
fn a_test_beside_its_subject_is_found() {
    assert_eq!(
        lines_found("src/a.rs", "#[test]\nfn f() {}\n#[tokio::test]\nasync fn g() {}\n"),
        [2, 4]
    );
}

#[test]
fn tests_in_test_files_pass() {
    for name in ["src/a/tests.rs", "src/a/tests/opening.rs", "tools/cli/tests/serve.rs"] {
        assert!(lines_found(name, "#[test]\nfn f() {}\n").is_empty(), "{name}");
    }
}
