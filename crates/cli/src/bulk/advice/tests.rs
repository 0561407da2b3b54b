use super::*;

#[test]
fn a_size_is_named_as_it_is_typed() {
    assert_eq!(typed(0), "1k");
    assert_eq!(typed(65_535 * 2), "128k");
    assert_eq!(typed(600 << 10), "1M");
    assert_eq!(typed(u64::MAX), "1024M");
}
