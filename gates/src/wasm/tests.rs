use super::imports_of;

fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    for (id, body) in sections {
        bytes.push(*id);
        bytes.push(u8::try_from(body.len()).unwrap());
        bytes.extend_from_slice(body);
    }
    bytes
}

#[test]
fn a_module_without_an_import_section_imports_nothing() {
    assert_eq!(imports_of(&module(&[(1, b"\0"), (3, b"\0")])), Some(vec![]));
}

#[test]
fn every_kind_of_import_is_named() {
    let mut body = vec![4];
    body.extend_from_slice(b"\x03env\x03now\x00\x05");
    body.extend_from_slice(b"\x03env\x01t\x01\x70\x01\x00\x80\x01");
    body.extend_from_slice(b"\x03env\x01m\x02\x00\x11");
    body.extend_from_slice(b"\x02js\x01g\x03\x7f\x01");
    let imports = imports_of(&module(&[(1, b"\0"), (2, &body)])).unwrap();
    assert_eq!(imports, ["env.now", "env.t", "env.m", "js.g"]);
}

#[test]
fn what_is_cut_short_or_no_module_is_refused() {
    assert_eq!(imports_of(b"\x7fELF"), None);
    let whole = module(&[(2, b"\x01\x03env\x03now\x00\x05")]);
    assert_eq!(imports_of(&whole[..whole.len() - 1]), None);
}

#[test]
fn a_number_of_more_than_five_bytes_is_refused() {
    assert_eq!(imports_of(b"\0asm\x01\0\0\0\x01\x80\x80\x80\x80\x80\x00"), None);
}
