use super::*;

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn pause_is_no_part_of_the_time_shown() {
    let mut watch = Stopwatch::default();
    assert_eq!((watch.at(at(100)), watch.when(at(150))), (at(100), at(150)));
    watch.stop(at(100));
    watch.stop(at(200));
    assert!(watch.is_stopped());
    assert_eq!((watch.at(at(400)), watch.paused(at(400))), (at(100), Duration::from_millis(300)));
    watch.go_on(at(400));
    watch.go_on(at(450));
    assert!(!watch.is_stopped());
    assert_eq!((watch.at(at(460)), watch.when(at(160))), (at(160), at(460)));
    watch.stop(at(500));
    watch.go_on(at(600));
    assert_eq!((watch.at(at(600)), watch.paused(at(700))), (at(200), Duration::from_millis(400)));
}
