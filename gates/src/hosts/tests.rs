use super::{HOSTS, WORKPLACE, judge};
use crate::tree::Tree;

fn lines_found(name: &str, text: &str) -> Vec<usize> {
    judge(&Tree::of(&[(name, text)])).iter().map(|finding| finding.line).collect()
}

#[test]
fn each_host_is_found() {
    for host in HOSTS.map(<[_]>::concat) {
        assert!(!lines_found("a.md", &format!("one\nfrom https:{host}\n")).is_empty(), "{host}");
    }
}

#[test]
fn the_registry_by_its_name_in_prose_passes() {
    assert!(lines_found("a.md", "It is not published on crates.io.\n").is_empty());
}

#[test]
fn lock_files_are_not_looked_at() {
    assert!(lines_found("Cargo.lock", &HOSTS[0].concat()).is_empty());
}

#[test]
fn workplace_path_is_found_but_not_a_folder_of_its_name() {
    let path = WORKPLACE.concat();
    assert_eq!(lines_found("a.sh", &format!("cd {path}x\ncat \"{path}y\"\n")), [1, 2]);
    assert!(lines_found("a.sh", &format!("cd crates{path}x\ncd ../net{path}\n")).is_empty());
}
