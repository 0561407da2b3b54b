use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;
use whimbrel_wire::{Address, Endpoint};

use super::{AcceptQueueFull, EndpointInUse, Families, Listener, ListenerStats, Listeners};

const ANY_V4: Address = Address::from_v4_bytes([0; 4]);
const ANY_V6: Address = Address::from_bytes([0; 16]);
const HOST_V4: Address = Address::from_v4_bytes([192, 0, 2, 1]);
const OTHER_V4: Address = Address::from_v4_bytes([192, 0, 2, 2]);
const HOST_V6: Address =
    Address::from_bytes([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

fn at(addr: Address) -> Endpoint {
    Endpoint::new(addr, 80)
}

/// One listener at 192.0.2.1:80, its index included.
fn listening(backlog: u32) -> (Listeners, super::ListenerId) {
    let mut listeners = Listeners::new();
    let id = listeners.add(at(HOST_V4), Families::Own, backlog).unwrap();
    (listeners, id)
}

#[test]
fn an_exact_address_wins_over_the_unspecified_one() {
    let mut listeners = Listeners::new();
    let any = listeners.add(at(ANY_V4), Families::Own, 1).unwrap();
    let exact = listeners.add(at(HOST_V4), Families::Own, 1).unwrap();
    assert_eq!(listeners.find(&at(HOST_V4)), Some(exact.index()));
    assert_eq!(listeners.find(&at(OTHER_V4)), Some(any.index()));
    assert_eq!(listeners.find(&Endpoint::new(HOST_V4, 81)), None);
}

#[test]
fn an_unspecified_address_stands_for_its_own_family_only() {
    let mut listeners = Listeners::new();
    let v6 = listeners.add(at(ANY_V6), Families::Own, 1).unwrap();
    assert_eq!(listeners.find(&at(HOST_V6)), Some(v6.index()));
    assert_eq!(listeners.find(&at(HOST_V4)), None);
    let v4 = listeners.add(at(ANY_V4), Families::Own, 1).unwrap();
    assert_eq!(listeners.find(&at(HOST_V4)), Some(v4.index()));
}

#[test]
fn dual_stack_listener_takes_and_collides_with_both_families() {
    let mut listeners = Listeners::new();
    let dual = listeners.add(at(ANY_V6), Families::DualStack, 1).unwrap();
    assert_eq!(listeners.find(&at(HOST_V6)), Some(dual.index()));
    assert_eq!(listeners.find(&at(HOST_V4)), Some(dual.index()));
    let refusal = listeners.add(at(ANY_V4), Families::Own, 1);
    assert_eq!(refusal, Err(EndpointInUse { at: at(ANY_V4) }));
    listeners.remove(dual);
    assert_eq!(listeners.find(&at(HOST_V4)), None);
    listeners.add(at(ANY_V4), Families::Own, 1).unwrap();
    assert!(listeners.add(at(ANY_V6), Families::DualStack, 1).is_err());
    assert_eq!(listeners.find(&at(HOST_V6)), None, "a refused listener leaves no trace");
}

#[test]
fn a_second_listener_at_one_place_is_refused_and_told_where() {
    let (mut listeners, id) = listening(1);
    let refusal = listeners.add(at(HOST_V4), Families::DualStack, 1).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "address in use: another listener is at 192.0.2.1:80; choose another port or close it"
    );
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners.remove(id), Some([].into()));
    assert!(listeners.is_empty());
}

#[test]
fn connections_are_accepted_in_order_within_the_backlog() {
    let (mut listeners, id) = listening(2);
    let listener = listeners.resolve_mut(id).unwrap();
    assert_eq!(listener.push_accepted(7), Ok(()));
    assert!(!listener.is_accept_queue_full());
    assert_eq!(listener.push_accepted(5), Ok(()));
    assert!(listener.is_accept_queue_full());
    assert_eq!(listener.push_accepted(9), Err(AcceptQueueFull { backlog: 2 }));
    assert_eq!(listener.stats(), ListenerStats { accepted: 2, overflows: 1, ..Default::default() });
    assert_eq!(listener.pop_accepted(), Some(7));
    assert_eq!(listener.push_accepted(9), Ok(()));
    let rest: Vec<u32> = core::iter::from_fn(|| listener.pop_accepted()).collect();
    assert_eq!(rest, [5, 9]);
}

#[test]
fn a_backlog_of_zero_counts_as_one() {
    let (mut listeners, id) = listening(0);
    let listener = listeners.resolve_mut(id).unwrap();
    assert_eq!((listener.backlog(), listener.is_accept_queue_full()), (1, false));
    assert_eq!(listener.push_accepted(1), Ok(()));
    assert!(listener.is_accept_queue_full());
}

#[test]
fn closing_hands_back_who_was_never_accepted() {
    let (mut listeners, id) = listening(8);
    for connection in [3, 1, 2] {
        listeners.resolve_mut(id).unwrap().push_accepted(connection).unwrap();
    }
    assert_eq!(listeners.remove(id), Some([3, 1, 2].into()));
    assert_eq!(listeners.remove(id), None);
    assert!(listeners.is_empty());
}

#[test]
fn an_old_id_names_nothing_after_its_place_was_taken() {
    let (mut listeners, old) = listening(1);
    listeners.remove(old);
    let new = listeners.add(at(HOST_V4), Families::Own, 1).unwrap();
    assert_eq!(old.index(), new.index());
    assert!(listeners.resolve(old).is_none());
    assert_eq!(listeners.resolve(new).map(Listener::id), Some(new));
    assert_eq!(listeners.remove(old), None);
    assert_eq!(listeners.find(&at(HOST_V4)), Some(new.index()));
}

#[test]
fn half_open_entries_are_bounded_by_backlog_or_sixteen() {
    for (backlog, limit) in [(1, 16), (16, 16), (17, 17), (1000, 1000)] {
        let (mut listeners, id) = listening(backlog);
        for _ in 0..limit {
            assert!(!listeners.resolve(id).unwrap().is_half_open_full());
            listeners.admit_half_open(id.index());
        }
        let listener = listeners.resolve(id).unwrap();
        assert_eq!((listener.half_open(), listener.half_open_limit()), (limit, limit));
        assert!(listener.is_half_open_full());
        listeners.release_half_open(id.index());
        assert!(!listeners.resolve(id).unwrap().is_half_open_full());
    }
}

#[test]
fn closed_listener_keeps_its_index_until_its_last_entry_goes() {
    let (mut listeners, old) = listening(1);
    listeners.admit_half_open(old.index());
    listeners.admit_half_open(old.index());
    listeners.remove(old);
    assert_eq!(listeners.find(&at(HOST_V4)), None);
    assert!(listeners.get(old.index()).is_none());
    assert!(listeners.get_mut(old.index()).is_none());

    let new = listeners.add(at(HOST_V4), Families::Own, 1).unwrap();
    assert_ne!(old.index(), new.index());
    listeners.release_half_open(old.index());
    assert_eq!(listeners.len(), 2);
    listeners.release_half_open(old.index());
    assert_eq!(listeners.len(), 1);
    listeners.remove(new);
    assert!(listeners.is_empty());
}

proptest! {
    #[test]
    fn whatever_is_added_and_removed_the_nearest_listener_is_found(
        steps in proptest::collection::vec((0..5_usize, 0..4_u16, any::<bool>()), 1..60),
    ) {
        let addresses = [ANY_V4, ANY_V6, HOST_V4, OTHER_V4, HOST_V6];
        let mut listeners = Listeners::new();
        let mut open = Vec::new();
        for (which, port, adds) in steps {
            let here = Endpoint::new(addresses[which], port);
            if adds {
                match listeners.add(here, Families::Own, 1) {
                    Ok(id) => open.push((here, id)),
                    Err(_) => prop_assert!(open.iter().any(|(at, _)| *at == here)),
                }
            } else if let Some(place) = open.iter().position(|(at, _)| *at == here) {
                prop_assert!(listeners.remove(open.remove(place).1).is_some());
            }
            let any = if here.addr.is_v4() { ANY_V4 } else { ANY_V6 };
            let expected = [here, Endpoint::new(any, port)]
                .iter()
                .find_map(|at| open.iter().find(|(place, _)| place == at))
                .map(|(_, id)| id.index());
            prop_assert_eq!(listeners.find(&here), expected);
        }
        for (_, id) in open {
            listeners.remove(id);
        }
        prop_assert!(listeners.is_empty() && listeners.places.is_empty());
    }
}
