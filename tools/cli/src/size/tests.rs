use super::*;

#[test]
fn sizes_are_binary() {
    for (text, bytes) in [("0", 0), ("128", 128), ("64k", 65_536), ("1M", 1 << 20), ("2G", 2 << 30)]
    {
        assert_eq!(parse(text), Ok(bytes), "{text}");
    }
}

#[test]
fn invalid_size_is_refused() {
    for text in
        ["", "k", "-1", "+1", "1.5M", "1 k", "1kB", "ä", "99999999999999999999", "99999999T"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_are_shown_with_one_digit() {
    assert_eq!(display(1_023), "1023 B");
    assert_eq!(display(1_536), "1.5 KiB");
    assert_eq!(display(5 << 30), "5.0 GiB");
    assert_eq!(display(u64::MAX), "16.0 EiB");
}
