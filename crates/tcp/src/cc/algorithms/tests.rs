use std::boxed::Box;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

use super::{Algorithm, Algorithms, Full};
use crate::cc::Reno;

#[test]
fn ours_are_found_by_the_names_that_linux_has() {
    let algorithms = Algorithms::default();
    assert_eq!(algorithms.find("reno"), Some(Algorithm::RENO));
    assert_eq!(algorithms.find("cubic"), Some(Algorithm::CUBIC));
    assert_eq!(algorithms.find("bbr"), None);
    assert_eq!(algorithms.names().collect::<Vec<_>>(), ["reno", "cubic"]);
    assert!(algorithms.make(Algorithm::CUBIC).is_none(), "they need no factory");
}

#[test]
fn one_that_is_added_is_found_made_and_changed_by_its_name() {
    let mut algorithms = Algorithms::default();
    let own = algorithms.add("own", Arc::new(|| Box::new(Reno::default()))).expect("there is room");
    assert!(!own.is_ours());
    assert_eq!((algorithms.find("own"), algorithms.name(own)), (Some(own), "own"));
    assert!(algorithms.make(own).is_some());
    assert_eq!(algorithms.add("own", Arc::new(|| Box::new(Reno::default()))), Ok(own));
    assert_eq!(algorithms.names().count(), 3);
}

#[test]
fn there_is_an_end_to_what_can_be_added() {
    let mut algorithms = Algorithms::default();
    for number in 0..254 {
        let added = algorithms.add(&number.to_string(), Arc::new(|| Box::new(Reno::default())));
        assert!(added.is_ok_and(|algorithm| !algorithm.is_ours()));
    }
    let more = algorithms.add("more", Arc::new(|| Box::new(Reno::default())));
    assert_eq!(more, Err(Full));
}
