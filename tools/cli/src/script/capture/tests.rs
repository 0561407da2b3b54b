use super::*;

#[test]
fn capture_lies_below_its_folder_for_any_script_path() {
    let place = |script: &str| place(Path::new("out"), Path::new(script)).display().to_string();
    assert_eq!(place("rfc9293/listen.pkt"), "out/rfc9293/listen.pcapng");
    assert_eq!(place("/a/../../b.pkt"), "out/a/b.pcapng");
    assert_eq!(place("./plain"), "out/plain.pcapng");
}
