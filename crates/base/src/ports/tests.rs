use super::PortRange;

#[test]
fn no_range_holds_port_zero_or_nothing() {
    let ends = |range: PortRange| (range.first(), range.last(), range.count());
    assert_eq!(PortRange::new(0, 10), None);
    assert_eq!(PortRange::new(11, 10), None);
    assert_eq!(PortRange::new(10, 10).map(ends), Some((10, 10, 1)));
    assert_eq!(PortRange::new(1, u16::MAX).map(ends), Some((1, u16::MAX, 65_535)));
}
