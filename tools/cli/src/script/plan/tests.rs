use super::*;

#[test]
fn definitions_are_words_with_or_without_a_value() {
    assert_eq!(definition("A=b=c").unwrap(), ("A".into(), "b=c".into()));
    assert_eq!(definition("DEBUG").unwrap(), ("DEBUG".into(), "DEBUG".into()));
    assert_eq!(definition("A=").unwrap(), ("A".into(), String::new()));
    for wrong in ["", "=1", "a-b=1"] {
        assert!(matches!(definition(wrong), Err(Failure::Usage(_))), "{wrong}");
    }
}
