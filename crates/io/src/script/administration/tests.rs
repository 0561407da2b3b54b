use super::*;

#[test]
fn states_by_name_become_bits_and_none_means_all() {
    let filter =
        |states: &[&'static str]| SocketFilter { states: states.into(), ..Default::default() };
    assert_eq!(states(&filter(&[])), Ok(u32::MAX));
    assert_eq!(states(&filter(&["ESTABLISHED", "LISTEN"])), Ok(1 << 1 | 1 << 10));
    assert!(
        matches!(states(&filter(&["OPEN"])), Err(SetError::Refused(text)) if text.contains("OPEN"))
    );
}
