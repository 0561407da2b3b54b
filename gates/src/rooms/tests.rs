use super::{Package, ROOMS, judge, parse_metadata};

fn package(name: &str, dependencies: &[&str]) -> Package {
    let dependencies = dependencies.iter().map(|&name| name.to_owned()).collect();
    Package {
        name: name.to_owned(),
        folder: "crates/x".to_owned(),
        dependencies,
        roots: Vec::new(),
    }
}

fn count_found(name: &str, dependencies: &[&str]) -> usize {
    judge(&[package(name, dependencies)]).len()
}

#[test]
fn a_room_stands_behind_those_that_it_uses() {
    for (place, (room, used)) in ROOMS.iter().enumerate() {
        for used in *used {
            assert!(ROOMS[..place].iter().any(|(before, _)| before == used), "{room} -> {used}");
        }
    }
}

#[test]
fn arrows_pass_straight_and_through_others() {
    assert_eq!(count_found("whimbrel-stack", &["whimbrel-tcp", "whimbrel-wire", "bytes"]), 0);
    assert_eq!(count_found("whimbrel-cli", &["whimbrel", "whimbrel-io"]), 0);
}

#[test]
fn a_dependency_without_an_arrow_is_found() {
    assert_eq!(count_found("whimbrel-wire", &["whimbrel-tcp"]), 1);
    assert_eq!(count_found("whimbrel-io", &["whimbrel"]), 1);
    assert_eq!(count_found("whimbrel-posix", &["whimbrel-link"]), 1);
}

#[test]
fn what_a_program_links_uses_no_tool() {
    for tool in ["posix", "apps", "sim", "script", "lab", "kernel", "cli"] {
        let tool = format!("whimbrel-{tool}");
        assert_eq!(count_found("whimbrel-io", &[&tool]), 1, "{tool}");
        assert_eq!(count_found("whimbrel", &[&tool]), 1, "{tool}");
    }
}

#[test]
fn a_member_without_a_room_is_found() {
    let findings = judge(&[package("whimbrel-util", &[])]);
    assert_eq!(findings[0].file, "crates/x/Cargo.toml");
    assert!(findings[0].message.contains("`whimbrel-util` stands in no room"));
}

#[test]
fn metadata_yields_names_normal_dependencies_and_roots() {
    let text = r#"{ "workspace_root": "/tree", "packages": [{
        "name": "whimbrel-io", "manifest_path": "/tree/crates/io/Cargo.toml",
        "dependencies": [
            { "name": "whimbrel-wire", "kind": null },
            { "name": "cc", "kind": "build" },
            { "name": "whimbrel-cli", "kind": "dev" }],
        "targets": [
            { "kind": ["lib"], "src_path": "/tree/crates/io/src/lib.rs" },
            { "kind": ["test"], "src_path": "/tree/crates/io/tests/a.rs" }] }] }"#;
    let packages = parse_metadata(text).unwrap();
    assert_eq!(packages.len(), 1);
    assert_eq!(packages[0].name, "whimbrel-io");
    assert_eq!(packages[0].folder, "crates/io");
    assert_eq!(packages[0].dependencies, ["whimbrel-wire", "cc"]);
    assert_eq!(packages[0].roots, ["crates/io/src/lib.rs"]);
}

#[test]
fn io_and_what_uses_it_are_impure() {
    for (name, is_pure) in [
        ("whimbrel-sim", true),
        ("whimbrel-lab", true),
        ("whimbrel-io", false),
        ("whimbrel", false),
        ("whimbrel-kernel", false),
        ("whimbrel-cli", false),
        ("someone-else", false),
    ] {
        assert_eq!(package(name, &[]).is_pure(), is_pure, "{name}");
    }
}
