use std::fs;

use super::*;

/// 1994-11-06 08:49:37 UTC.
fn stamp() -> Stamp {
    Stamp(HttpDate::from_unix_seconds(784_111_777))
}

#[test]
fn saved_screen_has_a_new_name() {
    let folder = std::env::temp_dir().join(format!("whim-keep-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let names = ["first", "second"].map(|text| keep(&folder, &stamp(), text).unwrap());
    let expected = ["19941106-084937.html", "19941106-084937-2.html"];
    for ((name, expected), text) in names.iter().zip(expected).zip(["first", "second"]) {
        assert_eq!(name, Path::new(&format!("whimbrel-load-{expected}")));
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), text);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn unwritable_folder_is_reported() {
    let error = keep(Path::new("/nowhere/at/all"), &stamp(), "").unwrap_err();
    assert!(error.starts_with("whimbrel-load-19941106-084937.html: "), "{error}");
}
