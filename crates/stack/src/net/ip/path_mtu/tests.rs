//! Tests of `path_mtu`.

use super::*;

fn remote(last: u16) -> Address {
    Address::from(core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
}

#[test]
fn a_path_is_remembered_for_ten_minutes_and_only_gets_narrower() {
    let mut paths = PathMtus::default();
    let start = Instant::from_millis(5);
    assert_eq!(paths.find(start, &remote(1)), None);
    paths.note(start, remote(1), 1_400);
    let later = start + Duration::from_secs(300);
    paths.note(later, remote(1), 1_450);
    assert_eq!(paths.find(later, &remote(1)), Some(1_400));
    assert_eq!(paths.find(later, &remote(2)), None);
    let aged = later + PathMtus::AGE;
    assert_eq!(paths.find(aged, &remote(1)), None);
    paths.note(aged, remote(1), 1_450);
    assert_eq!(paths.find(aged, &remote(1)), Some(1_450));
}

#[test]
fn at_the_bound_the_destination_longest_unheard_of_is_forgotten() {
    let mut paths = PathMtus::default();
    for last in 0..PathMtus::MOST as u16 {
        paths.note(Instant::ZERO, remote(last), 1_300);
    }
    paths.note(Instant::ZERO, remote(0), 1_300);
    paths.note(Instant::ZERO, remote(u16::MAX), 1_300);
    assert_eq!((paths.paths.len(), paths.by_age.len()), (PathMtus::MOST, PathMtus::MOST));
    assert_eq!(paths.find(Instant::ZERO, &remote(0)), Some(1_300));
    assert_eq!(paths.find(Instant::ZERO, &remote(1)), None);
}
