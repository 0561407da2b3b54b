use std::boxed::Box;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

use super::{AddError, Algorithm, Algorithms};
use crate::cc::{CongestionAlgorithm, Reno};

#[test]
fn ours_are_found_by_the_names_that_linux_has() {
    let algorithms = Algorithms::default();
    assert_eq!(algorithms.find("reno"), Some(Algorithm::RENO));
    assert_eq!(algorithms.find("cubic"), Some(Algorithm::CUBIC));
    assert_eq!(algorithms.find("bbr"), Some(Algorithm::BBR));
    assert_eq!(algorithms.names().collect::<Vec<_>>(), ["reno", "cubic", "bbr"]);
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
    assert_eq!(algorithms.names().count(), 4);
}

#[test]
fn there_is_an_end_to_what_can_be_added() {
    let mut algorithms = Algorithms::default();
    for number in 0..253 {
        let added = algorithms.add(&number.to_string(), Arc::new(|| Box::new(Reno::default())));
        assert!(added.is_ok_and(|algorithm| !algorithm.is_ours()));
    }
    let more = algorithms.add("more", Arc::new(|| Box::new(Reno::default())));
    assert_eq!(more, Err(AddError::Full { most: 253 }));
}

#[test]
fn names_are_such_as_linux_has_and_ours_are_taken() {
    let mut algorithms = Algorithms::default();
    let mut add = |name: &str| algorithms.add(name, Arc::new(|| Box::new(Reno::default())));
    assert_eq!(add("reno"), Err(AddError::Ours("reno".into())));
    for name in ["", "sixteen-letters-", "two words", "dctcp\0", "größe"] {
        assert_eq!(add(name), Err(AddError::Name(name.into())));
    }
    assert!(add("fifteen_letters").is_ok());
    let unknown = algorithms.named("vegas").expect_err("it was not added");
    assert!(
        unknown.to_string().ends_with("give one of reno, cubic, bbr, fifteen_letters"),
        "{unknown}"
    );
}

#[test]
fn default_set_by_user_overrides_tunable() {
    let mut algorithms = Algorithms::default();
    let usual = |of: &Algorithms| {
        [CongestionAlgorithm::Cubic, CongestionAlgorithm::Reno].map(|it| of.usual(it))
    };
    assert_eq!(usual(&algorithms), [Algorithm::CUBIC, Algorithm::RENO]);
    let own = algorithms.add("own", Arc::new(|| Box::new(Reno::default()))).expect("there is room");
    algorithms.set_usual(own);
    assert_eq!(usual(&algorithms), [own, own]);
    assert_eq!(Algorithm::of_number(own.number()), own);
}
