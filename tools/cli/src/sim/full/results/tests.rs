use serde_json::json;

use super::*;

/// A file of this test only, with these contents.
fn file(name: &str, text: &str) -> PathBuf {
    let name = format!("whimbrel-results-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn appended_cell_is_known_to_the_next_run() {
    let path = file("known", "");
    fs::remove_file(&path).unwrap();
    let cell = json!({ "name": "a/b", "used": 97.5 });
    let results = Results::open(Some(&path)).unwrap();
    assert!(results.find("a/b").is_none());
    results.append(&cell).unwrap();
    let results = Results::open(Some(&path)).unwrap();
    assert_eq!((results.find("a/b"), results.path()), (Some(&cell), Some(path.as_path())));
    fs::remove_file(&path).unwrap();
}

#[test]
fn unfinished_last_line_is_written_over() {
    let path = file("unfinished", "{\"name\":\"a\"}\n{\"name\":\"b");
    let results = Results::open(Some(&path)).unwrap();
    assert!(results.find("a").is_some() && results.find("b").is_none());
    results.append(&json!({ "name": "c" })).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"name\":\"a\"}\n{\"name\":\"c\"}\n");
    fs::remove_file(&path).unwrap();
}

#[test]
fn other_file_is_refused_with_its_line() {
    let path = file("other", "{\"name\":\"a\"}\nhello\n");
    let Err(Failure::Usage(text)) = Results::open(Some(&path)) else { panic!("it was taken") };
    assert!(text.contains("line 2 is no cell") && text.contains("--results"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"name\":\"a\"}\nhello\n");
    fs::remove_file(&path).unwrap();
}
