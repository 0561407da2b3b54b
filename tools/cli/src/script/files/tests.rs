use super::*;

#[test]
fn folders_are_walked_in_order_and_only_for_scripts() {
    let folder = std::env::temp_dir().join(format!("whimbrel-files-{}", std::process::id()));
    for name in ["b/2.pkt", "a.pkt", "b/1.pkt", "b/notes.txt", "c.sh"] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    std::os::unix::fs::symlink(&folder, folder.join("b/loop")).unwrap();
    let found = find(&[folder.clone(), folder.join("c.sh")]).unwrap();
    let texts: Vec<_> = found.iter().map(|file| file.text.as_str()).collect();
    assert_eq!(texts, ["a.pkt", "b/1.pkt", "b/2.pkt", "c.sh"]);
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(find(&[folder]), Err(Failure::Run(text)) if text.contains("use a script")));
}
