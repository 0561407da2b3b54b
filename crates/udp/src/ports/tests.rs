//! Tests of `ports`.

use whimbrel_base::Secrets;
use whimbrel_wire::Family;

use super::*;
use crate::key::Local;

const KEY: Key = Key { local: Local::Every(Family::V4), remote: None };

#[test]
fn page_is_created_and_freed_with_its_first_and_last_port() {
    let mut table = PortTable::default();
    assert_eq!(table.memory(), 0);
    for port in [1, 255, 256, 65_535] {
        table.insert(port, u32::from(port), |_| Some(KEY));
    }
    assert_eq!(table.memory(), 3 * size_of::<Page>());
    assert!(size_of::<Page>() <= 4_096 + 8);
    for port in [255, 1, 65_535, 256] {
        assert_eq!(table.of(port), [u32::from(port)]);
        assert!(table.remove(port, u32::from(port), &KEY));
        assert!(table.of(port).is_empty());
    }
    assert_eq!(table.memory(), 0);
}

#[test]
fn a_port_that_only_one_has_left_is_found_without_a_map_again() {
    let mut table = PortTable::default();
    for index in 0..3 {
        table.insert(53, index, |_| Some(KEY));
    }
    assert!(matches!(table.port(53), Some(Port::Several(_))));
    assert!(!table.remove(53, 2, &KEY));
    assert!(!table.remove(53, 0, &KEY));
    assert!(matches!(table.port(53), Some(Port::One(1))));
    assert!(table.remove(53, 1, &KEY));
}

#[test]
fn draws_begin_anywhere_and_pass_over_what_is_taken_or_reserved() {
    let range = PortRange::new(1_000, 1_999).unwrap();
    let reserved = ReservedPorts::new(&[(1_100, 1_499)]).unwrap();
    let mut drawing = Drawing::new(&Secrets::from_seed(3), range, reserved);
    let mut drawn = Vec::new();
    while let Some(port) = drawing.draw() {
        drawing.claim(port);
        drawn.push(port);
    }
    assert_eq!(drawn.len(), 600);
    assert!(drawn.iter().all(|port| !reserved.contains(*port) && range.contains(*port)));
    // Of the first hundred few follow their predecessor: seeing one reveals little of the next.
    let follows = drawn[..100].windows(2).filter(|two| two[1] == two[0] + 1).count();
    assert!(follows < 30, "{follows} of 100 ports follow each other");
    drawing.release(1_700);
    assert_eq!(drawing.draw(), Some(1_700));
}
