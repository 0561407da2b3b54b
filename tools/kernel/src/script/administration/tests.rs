use super::*;

#[test]
fn state_names_become_bits_and_none_means_all_but_close() {
    let filter =
        |states: &[&'static str]| SocketFilter { states: states.into(), ..Default::default() };
    assert_eq!(states(&filter(&[])), Ok(!(1 << 7 | 1 << 13)));
    assert_eq!(states(&filter(&["CLOSE"])), Ok(1 << 7 | 1 << 13));
    assert_eq!(states(&filter(&["ESTABLISHED", "LISTEN"])), Ok(1 << 1 | 1 << 10));
    assert!(
        matches!(states(&filter(&["OPEN"])), Err(SetError::Refused(text)) if text.contains("OPEN"))
    );
}
