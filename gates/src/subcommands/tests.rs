use super::*;

const MAIN: &str = "mod load;\nmod runs;\nmod serve;\n\
    enum Tool { Load(load::Arguments), Serve(serve::Arguments) }\n";

fn found(load: &str) -> Vec<String> {
    let files = [
        (ROOT, MAIN),
        ("tools/cli/src/load.rs", load),
        ("tools/cli/src/runs.rs", "pub(crate) fn runs() {}\n"),
        ("tools/cli/src/serve.rs", "pub(crate) fn other() {}\n"),
    ];
    judge(&Tree::of(&files)).iter().map(ToString::to_string).collect()
}

#[test]
fn subcommand_naming_another_is_found() {
    for load in ["use crate::serve;\n", "fn run() { crate::serve::other(); }\n"] {
        let findings = found(load);
        let [finding] = &findings[..] else { panic!("{load}: {findings:?}") };
        assert!(finding.contains("load.rs:1") && finding.contains("`serve`"), "{finding}");
    }
}

#[test]
fn subcommand_may_name_what_is_none() {
    assert_eq!(found("use crate::runs::runs;\n"), [""; 0]);
}

#[test]
fn missing_list_of_subcommands_is_found() {
    assert_eq!(judge(&Tree::of(&[(ROOT, "mod load;\n")])).len(), 1);
}
