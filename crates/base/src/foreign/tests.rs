//! Escaped and unescaped characters, and limits of length.

use std::string::ToString;

use super::*;

#[test]
fn letters_acting_on_terminals_are_escaped() {
    let c0 = '\0'..' ';
    let c1 = '\u{7f}'..='\u{9f}';
    let bidi = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
    let marks =
        "\u{61c}\u{200e}\u{200f}\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{34f}\u{180e}";
    let lines = "\u{85}\u{2028}\u{2029}";
    let blanks = "\u{a0}\u{3000}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{fff9}\u{fe0f}\u{e0001}\u{e0041}";
    let private = "\u{e000}\u{10ffff}";
    let all = c0.chain(c1).chain(bidi);
    let all = all.chain([marks, lines, blanks, private].into_iter().flat_map(str::chars));
    for letter in all {
        let text = Foreign::new(letter.to_string()).to_string();
        assert!(text.starts_with('\\') && text.is_ascii(), "{letter:?}: {text}");
    }
}

#[test]
fn printable_text_stays_unchanged() {
    for text in ["", "a b", "\\n \"quoted\" 'too' ~", "café", "名前", "🦜", "Привет", "−…▌✓µ"]
    {
        assert_eq!(Foreign::new(text).to_string(), text);
        assert_eq!(printable(text), text);
    }
}

#[test]
fn bytes_not_utf8_are_shown_by_number() {
    let show = |bytes: &[u8]| Foreign::new(bytes).to_string();
    assert_eq!(show(b"a\x9bb\xff"), r"a\x9bb\xff");
    // A control character of C1, of two bytes, and one that is cut off.
    assert_eq!(show(b"\xc2\x9b\xc2"), r"\u009b\xc2");
    assert_eq!(show(b"\xed\xa0\x80"), r"\xed\xa0\x80");
    assert_eq!(show("\u{e0041}".as_bytes()), r"\udb40\udc41");
}

#[test]
fn length_is_bounded_and_escapes_are_whole() {
    let long = "x".repeat(MOST);
    assert_eq!(Foreign::new(&long).to_string(), long);
    let cut = Foreign::new(long.clone() + "y").to_string();
    assert_eq!((cut.chars().count(), cut.ends_with("x…")), (MOST, true));
    let escapes = Foreign::new("\x1b".repeat(10_000)).to_string();
    assert!(escapes.chars().count() <= MOST && escapes.ends_with(r"\u001b…"), "{escapes}");
    let show = |most: usize| std::format!("{:.most$}", Foreign::new("ab\x1bcd"));
    assert_eq!(
        [0, 1, 2, 3, 8, 9, 10].map(show),
        ["", "…", "a…", "ab…", "ab…", r"ab\u001b…", r"ab\u001bcd"]
    );
    assert_eq!(
        std::format!("{:>5.3}|{:<3}|", Foreign::new("abcd"), Foreign::new("é")),
        "  ab…|é  |"
    );
}

#[test]
fn lines_are_foreign_each() {
    let lines =
        |text: &str| Foreign::new(text).lines().map(|it| it.to_string()).collect::<Vec<_>>();
    assert_eq!(lines("a\r\n\nb\rc\n"), ["a", "", r"b\rc"]);
    assert_eq!(lines("a"), ["a"]);
    assert_eq!(lines(""), [""; 0]);
    assert_eq!(lines("\n"), [""]);
}

#[test]
fn output_keeps_its_lines_and_document_its_meaning() {
    assert_eq!(printable("a\tb\nc\x1b[2J\u{9b}\r\n"), "a\tb\nc\\u001b[2J\\u009b\\r\n");
    assert_eq!(printable("\"\u{202e}\u{e0041}\""), r#""\u202e\udb40\udc41""#);
}
