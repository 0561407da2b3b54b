//! Files that stay, and those that go.

use serde_json::json;

use super::*;

#[test]
fn links_lead_from_the_folder_of_the_page() {
    for (from, to, way) in [
        ("/a/b", "/a/b/c.pcapng", "c.pcapng"),
        ("/a/b", "/a/c/d.pcapng", "../c/d.pcapng"),
        ("/", "/x", "x"),
    ] {
        assert_eq!(relative(Path::new(from), Path::new(to)), Path::new(way));
    }
}

#[test]
fn unwritten_page_leaves_old_file_or_none() {
    let path = std::env::temp_dir().join(format!("whimbrel-page-{}.html", std::process::id()));
    let option = PageOption { html: Some(path.clone()) };
    drop(option.open().unwrap());
    assert!(!path.exists());
    option.open().unwrap().unwrap().write(&json!({ "target": "10.0.0.2:80" })).unwrap();
    drop(option.open().unwrap());
    assert!(fs::read_to_string(&path).unwrap().contains("10.0.0.2:80"));
    fs::remove_file(&path).unwrap();
}
