use super::*;

#[test]
fn only_a_signal_that_comes_later_is_a_second_one() {
    let (_reader, writer) = io::pipe().unwrap();
    let first = FirstSignal::new(writer);
    let gap = Duration::from_millis(200);
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let second = [0, 0, 199, 200, 5_000].map(|now| first.take(at(now), gap));
    assert_eq!(second, [false, false, false, true, true]);
}
