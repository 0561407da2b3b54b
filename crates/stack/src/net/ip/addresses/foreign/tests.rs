//! Numbers are given, held and taken back.

use std::collections::BTreeMap;

use proptest::prelude::*;
use whimbrel_wire::Address;

use super::ForeignAddresses;

fn addr(number: u32) -> Address {
    Address::from_v4_bytes(number.to_be_bytes())
}

#[test]
fn number_returns_with_sweep_after_last_reference() {
    let mut others = ForeignAddresses::new(2);
    let index = others.intern(addr(1)).expect("a number");
    assert_eq!(index, 2);
    others.hold(index);
    others.sweep();
    others.release(index);
    assert_eq!(others.intern(addr(1)), Some(index), "it is as it was");
    assert_eq!(others.intern(addr(2)), Some(index + 1), "and no other's");
    others.sweep();
    assert_eq!(others.len(), 0);
    assert_eq!(others.intern(addr(2)), Some(2));
}

#[test]
fn as_many_have_a_number_as_there_are() {
    let mut others = ForeignAddresses::new(65_531);
    let given: Vec<_> = (0..4).map(|number| others.intern(addr(number))).collect();
    assert_eq!(given, [Some(65_531), Some(65_532), Some(65_533), None]);
    assert_eq!(others.spare(), 0);
}

proptest! {
    /// Against a table of addresses and how often each is held.
    #[test]
    fn it_is_a_table_of_counts(steps in proptest::collection::vec((0u8..4, 0u32..12), 0..200)) {
        let mut others = ForeignAddresses::new(65_524);
        let mut model: BTreeMap<u32, (u16, u32)> = BTreeMap::new();
        for (step, number) in steps {
            match step {
                0 => match others.intern(addr(number)) {
                    Some(index) => {
                        let known = model.entry(number).or_insert((index, 0));
                        prop_assert_eq!(known.0, index);
                    }
                    None => prop_assert!(model.len() >= 10 && !model.contains_key(&number)),
                },
                1 => if let Some((index, held)) = model.get_mut(&number) {
                    others.hold(*index);
                    *held += 1;
                },
                2 => if let Some((index, held)) = model.get_mut(&number).filter(|it| it.1 > 0) {
                    others.release(*index);
                    *held -= 1;
                },
                _ => {
                    others.sweep();
                    model.retain(|_, (_, held)| *held > 0);
                }
            }
            prop_assert_eq!(others.len(), model.len());
            for (number, (index, _)) in &model {
                prop_assert_eq!(others.get(*index), Some(&addr(*number)));
                prop_assert_eq!(others.index_of(&addr(*number)), Some(*index));
            }
        }
    }
}
