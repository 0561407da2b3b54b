use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;
use whimbrel_base::{Instant, Micros, Secrets};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Address, Ecn, Endpoint, SeqNum};

use super::{Due, SynCache, SynCacheFull};
use crate::Tunables;
use crate::conn::FirstTrip;
use crate::table::{Families, ListenerId, Listeners, PassiveOpen, SynEntry};

/// A cache, and one listener that its entries are for.
struct Host {
    cache: SynCache,
    listeners: Listeners,
    listener: ListenerId,
}

impl Host {
    fn new(tunables: &Tunables) -> Self {
        let mut listeners = Listeners::new();
        let at = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 80);
        let listener = listeners.add(at, Families::Own, 1000).unwrap();
        Self { cache: SynCache::new(tunables, &Secrets::from_seed(1).flows), listeners, listener }
    }

    fn entry(&self, port: u16) -> SynEntry {
        let syn = TcpHeader { src_port: port, flags: TcpFlags::SYN, ..TcpHeader::default() };
        let open = PassiveOpen {
            remote: Address::from_v4_bytes([198, 51, 100, 7]),
            local_index: 0,
            listener: self.listener.index(),
            iss: SeqNum::new(1),
            scale_limit: 65_535,
            time_wait: None,
        };
        SynEntry::from_syn(&syn, open, &Tunables::default())
    }

    fn insert(&mut self, port: u16, millis: u64) -> Result<u32, SynCacheFull> {
        let entry = self.entry(port);
        self.cache.judge_room(entry.listener(), &self.listeners)?;
        Ok(self.cache.insert(entry, &mut self.listeners, Instant::from_millis(millis)))
    }

    fn pop(&mut self, millis: u64) -> Option<Due> {
        self.cache.pop_due(Instant::from_millis(millis), &mut self.listeners)
    }

    fn deadline_millis(&self) -> Option<u64> {
        self.cache.next_deadline().map(|at| at.as_nanos() / 1_000_000)
    }

    fn remove(&mut self, index: u32) -> Option<u16> {
        self.cache.remove(index, &mut self.listeners).map(|entry| entry.remote().port)
    }

    /// Time passes until every entry has expired.
    fn outlive(&mut self) {
        let mut millis = 0;
        while !self.cache.is_empty() {
            millis += 60_000;
            while self.pop(millis).is_some() {}
        }
    }

    /// The leak check that ends every story.
    fn assert_empty(&mut self) {
        assert!(self.cache.is_empty());
        assert_eq!(self.cache.next_deadline(), None);
        assert_eq!(self.cache.occupied, 0);
        assert_eq!(self.listeners.resolve(self.listener).map_or(0, |it| it.half_open()), 0);
        self.listeners.remove(self.listener);
        assert!(self.listeners.is_empty());
    }
}

fn expired_port(due: Option<Due>) -> Option<u16> {
    match due {
        Some(Due::Expired(_, entry)) => Some(entry.remote().port),
        _ => None,
    }
}

#[test]
fn unanswered_syn_ack_repeats_five_times_and_ends_after_63_s() {
    let mut host = Host::new(&Tunables::default());
    let index = host.insert(4000, 0).unwrap();
    for (retry, secs) in [1_u64, 3, 7, 15, 31].into_iter().enumerate() {
        assert_eq!(host.deadline_millis(), Some(secs * 1000));
        assert_eq!(host.pop(secs * 1000 - 1), None);
        assert_eq!(host.pop(secs * 1000), Some(Due::Repeat(index)));
        assert_eq!(host.pop(secs * 1000), None);
        assert_eq!(usize::from(host.cache.get(index).unwrap().retries()), retry + 1);
    }
    assert_eq!(host.pop(62_999), None);
    assert_eq!(expired_port(host.pop(63_000)), Some(4000));
    host.assert_empty();
}

#[test]
fn without_repetitions_the_first_time_out_ends_the_entry() {
    let mut host = Host::new(&Tunables { synack_retries: 0, ..Tunables::default() });
    host.insert(4000, 0).unwrap();
    assert_eq!(expired_port(host.pop(1000)), Some(4000));
    host.assert_empty();
}

#[test]
fn thirty_repetitions_level_off_at_the_greatest_time_out() {
    let mut host = Host::new(&Tunables { synack_retries: 30, ..Tunables::default() });
    let index = host.insert(4000, 0).unwrap();
    let mut waits = Vec::new();
    let mut now = 0;
    while let Some(deadline) = host.deadline_millis() {
        waits.push((deadline - now) / 1000);
        now = deadline;
        if host.pop(now) != Some(Due::Repeat(index)) {
            break;
        }
    }
    assert_eq!(waits.len(), 31);
    assert_eq!(waits[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
    host.assert_empty();
}

#[test]
fn whoever_came_first_is_due_first_and_one_call_takes_one() {
    let mut host = Host::new(&Tunables::default());
    let first = host.insert(1, 0).unwrap();
    let second = host.insert(2, 10).unwrap();
    let third = host.insert(3, 10).unwrap();
    let due: Vec<_> = core::iter::from_fn(|| host.pop(1010)).collect();
    assert_eq!(due, [Due::Repeat(first), Due::Repeat(second), Due::Repeat(third)]);
    for index in [second, first, third] {
        assert!(host.remove(index).is_some());
    }
    host.assert_empty();
}

#[test]
fn a_time_out_is_never_early_and_less_than_a_millisecond_late() {
    let mut host = Host::new(&Tunables::default());
    let start = Instant::from_nanos(5_000_001);
    let index = host.cache.insert(host.entry(1), &mut host.listeners, start);
    assert_eq!(host.deadline_millis(), Some(1006));
    host.remove(index);
    host.assert_empty();
}

#[test]
fn round_trip_is_timed_only_if_one_syn_ack_was_sent() {
    let mut host = Host::new(&Tunables::default());
    let start = Instant::from_nanos(300_000);
    let index = host.cache.insert(host.entry(1), &mut host.listeners, start);
    let timed =
        |host: &Host, nanos| host.cache.get(index).unwrap().round_trip(Instant::from_nanos(nanos));
    assert_eq!(timed(&host, 300_000), FirstTrip::Took(Micros::default()));
    assert_eq!(timed(&host, 900_000), FirstTrip::Took(Micros::default()));
    assert_eq!(timed(&host, 70_300_000), FirstTrip::Took(Micros::from_millis(70)));
    assert_eq!(host.pop(1001), Some(Due::Repeat(index)));
    assert_eq!(timed(&host, 1_001_000_000), FirstTrip::Repeated);
    host.remove(index);
    host.assert_empty();
}

#[test]
fn entry_leaves_from_head_middle_and_tail_of_its_queue() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let mut host = Host::new(&Tunables::default());
        let indices = [0, 1, 2].map(|step| host.insert(step, u64::from(step) * 100).unwrap());
        let mut left: Vec<u64> = [1000, 1100, 1200].into();
        for which in order {
            assert_eq!(host.remove(indices[which]), Some(which as u16));
            left.retain(|deadline| *deadline != 1000 + 100 * which as u64);
            assert_eq!(host.deadline_millis(), left.first().copied(), "{order:?}");
        }
        host.assert_empty();
    }
}

#[test]
fn a_syn_that_the_peer_repeats_leaves_the_schedule_alone() {
    let mut host = Host::new(&Tunables::default());
    let index = host.insert(4000, 0).unwrap();
    let syn = TcpHeader { flags: TcpFlags::SYN, ..TcpHeader::default() };
    host.cache.get_mut(index).unwrap().on_repeated_syn(&syn, Ecn::NotEct);
    assert_eq!(host.deadline_millis(), Some(1000));
    host.remove(index);
    host.assert_empty();
}

#[test]
fn at_the_bound_in_all_a_syn_is_refused_and_told_the_knob() {
    let mut host = Host::new(&Tunables { max_syn_entries: 2, ..Tunables::default() });
    let first = host.insert(1, 0).unwrap();
    let second = host.insert(2, 0).unwrap();
    let refusal = host.insert(3, 0).unwrap_err();
    assert_eq!(refusal, SynCacheFull::InAll { limit: 2 });
    assert_eq!(
        refusal.to_string(),
        "SYN cache full: 2 half-open connections in all; raise max_syn_entries"
    );
    let listener = host.listeners.resolve(host.listener).unwrap();
    assert_eq!(listener.half_open(), 2);
    host.remove(first);
    assert!(host.insert(3, 0).is_ok_and(|index| host.remove(index) == Some(3)));
    host.remove(second);
    host.assert_empty();
}

#[test]
fn syn_at_bound_of_its_listener_is_refused_and_others_are_not() {
    let mut host = Host::new(&Tunables::default());
    let at = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 81);
    let busy =
        core::mem::replace(&mut host.listener, host.listeners.add(at, Families::Own, 1).unwrap());
    let indices: Vec<u32> = (0..16).map(|port| host.insert(port, 0).unwrap()).collect();
    assert_eq!(host.insert(16, 0), Err(SynCacheFull::Listener { limit: 16 }));
    let small = core::mem::replace(&mut host.listener, busy);
    let other = host.insert(16, 0).unwrap();
    for index in indices.into_iter().chain([other]) {
        host.remove(index);
    }
    host.listeners.remove(small);
    host.assert_empty();
}

#[test]
fn full_cache_evicts_oldest_of_drawn_entries_of_any_listener() {
    let mut host = Host::new(&Tunables { max_syn_entries: 4, ..Tunables::default() });
    for (port, millis) in [(1, 0), (2, 500), (3, 500), (4, 500)] {
        host.insert(port, millis).unwrap();
    }
    assert!(host.cache.evict(host.listener.index() + 1, &mut host.listeners).is_some());
    assert_eq!(host.cache.evict(host.listener.index(), &mut host.listeners), None, "there is room");
    host.outlive();
    host.assert_empty();
}

#[test]
fn eviction_prefers_old_entries_and_is_unpredictable() {
    let evicted = |seed| {
        let rules = Tunables { max_syn_entries: 1_000, ..Tunables::default() };
        let mut host = Host::new(&rules);
        host.cache = SynCache::new(&rules, &Secrets::from_seed(seed).flows);
        for port in 0..1_000 {
            host.insert(port, u64::from(port) / 2).unwrap();
        }
        let mut gone = Vec::new();
        for port in 1_000..1_200 {
            let (_, entry) = host.cache.evict(host.listener.index(), &mut host.listeners).unwrap();
            gone.push(entry.remote().port);
            host.insert(port, 500).unwrap();
        }
        host.outlive();
        host.assert_empty();
        gone
    };
    let (one, other) = (evicted(1), evicted(2));
    assert_ne!(one, other);
    assert_eq!(one, evicted(1));
    let young = one.iter().filter(|port| **port >= 500).count();
    assert!(young < 20, "{young} of 200 were of the younger half");
}

#[test]
fn at_the_bound_of_a_listener_one_of_its_own_makes_room() {
    let mut host = Host::new(&Tunables::default());
    host.insert(99, 0).unwrap();
    let at = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 81);
    let busy =
        core::mem::replace(&mut host.listener, host.listeners.add(at, Families::Own, 1).unwrap());
    for port in 0..16 {
        host.insert(port, 1).unwrap();
    }
    let (_, entry) = host.cache.evict(host.listener.index(), &mut host.listeners).unwrap();
    assert_ne!(entry.remote().port, 99, "older, but another's");
    assert!(host.insert(16, 2).is_ok());
    host.outlive();
    host.listeners.remove(busy);
    host.assert_empty();
}

#[test]
fn whoever_acknowledged_our_syn_is_not_evicted() {
    let mut host = Host::new(&Tunables { max_syn_entries: 1, ..Tunables::default() });
    let index = host.insert(1, 0).unwrap();
    host.cache.get_mut(index).unwrap().on_deferred(Instant::ZERO);
    assert_eq!(host.cache.evict(host.listener.index(), &mut host.listeners), None);
    host.remove(index);
    host.assert_empty();
}

#[test]
fn closed_listener_is_freed_as_its_entries_fall_due() {
    let mut host = Host::new(&Tunables::default());
    host.insert(1, 0).unwrap();
    host.insert(2, 0).unwrap();
    host.listeners.remove(host.listener);
    assert_eq!(host.listeners.len(), 1);
    for port in [1, 2] {
        let Some(Due::Orphaned(_, entry)) = host.pop(1000) else { panic!("nothing orphaned") };
        assert_eq!(entry.remote().port, port);
    }
    assert_eq!(host.pop(1000), None);
    host.assert_empty();
}

#[test]
fn new_rules_hold_for_entries_that_wait() {
    let mut host = Host::new(&Tunables::default());
    host.insert(1, 0).unwrap();
    host.cache.set_rules(&Tunables {
        initial_rto: Micros::from_millis(100),
        synack_retries: 0,
        ..Tunables::default()
    });
    assert_eq!(host.deadline_millis(), Some(100));
    assert_eq!(expired_port(host.pop(100)), Some(1));
    host.assert_empty();
}

#[test]
fn deadlines_hold_across_the_wrap_of_the_tick() {
    let wrap = 1_u64 << 32;
    let mut host = Host::new(&Tunables::default());
    let index = host.insert(1, wrap - 500).unwrap();
    assert_eq!(host.deadline_millis(), Some(wrap + 500));
    assert_eq!(host.pop(wrap + 499), None);
    assert_eq!(host.pop(wrap + 500), Some(Due::Repeat(index)));
    assert_eq!(host.deadline_millis(), Some(wrap + 2500));
    host.remove(index);
    host.assert_empty();
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    let mut host = Host::new(&Tunables::default());
    assert_eq!(host.remove(0), None);
    let index = host.insert(1, 0).unwrap();
    assert_eq!(host.remove(index), Some(1));
    assert_eq!(host.remove(index), None);
    host.assert_empty();
}

#[test]
fn an_entry_costs_64_bytes_and_little_more() {
    let mut host = Host::new(&Tunables { max_syn_entries: 65_536, ..Tunables::default() });
    host.listeners.remove(host.listener);
    let at = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 80);
    host.listener = host.listeners.add(at, Families::Own, 65_536).unwrap();
    let indices: Vec<u32> = (0..10_240).map(|port| host.insert(port, 0).unwrap()).collect();
    let each = host.cache.memory() / 10_240;
    assert!((64..=70).contains(&each), "{each} bytes");
    for index in indices {
        host.remove(index);
    }
    host.assert_empty();
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert,
    Remove(usize),
    Wait(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => Just(Op::Insert),
        2 => any::<usize>().prop_map(Op::Remove),
        3 => (0_u64..4_000).prop_map(Op::Wait),
    ];
    proptest::collection::vec(op, 1..200)
}

/// The expected state of an entry, kept the slow way: its index, retries and deadline.
struct Expected {
    index: u32,
    retries: u32,
    deadline: u64,
}

proptest! {
    #[test]
    fn the_queues_agree_with_a_list_that_is_searched(
        ops in ops(),
        start in prop_oneof![Just(0_u64), (1_u64 << 32) - 5_000..1 << 32],
    ) {
        let mut host = Host::new(&Tunables { synack_retries: 3, ..Tunables::default() });
        let mut model: Vec<Expected> = Vec::new();
        let mut now = start;
        for op in ops {
            match op {
                Op::Insert => {
                    let index = host.insert(1, now).unwrap();
                    model.push(Expected { index, retries: 0, deadline: now + 1000 });
                }
                Op::Remove(which) if !model.is_empty() => {
                    let gone = model.swap_remove(which % model.len());
                    prop_assert!(host.remove(gone.index).is_some());
                }
                Op::Remove(_) => {}
                Op::Wait(millis) => {
                    now += millis;
                    let mut due: Vec<u32> =
                        model.iter().filter(|it| it.deadline <= now).map(|it| it.index).collect();
                    let mut popped = Vec::new();
                    while let Some(step) = host.pop(now) {
                        let index = match step {
                            Due::Repeat(index) => {
                                let it = model.iter_mut().find(|it| it.index == index).unwrap();
                                it.retries += 1;
                                it.deadline = now + (1000 << it.retries);
                                index
                            }
                            Due::Expired(..) | Due::Orphaned(..) => {
                                let place = model
                                    .iter()
                                    .position(|it| host.cache.get(it.index).is_none())
                                    .unwrap();
                                let gone = model.swap_remove(place);
                                prop_assert_eq!(gone.retries, 3);
                                gone.index
                            }
                        };
                        popped.push(index);
                    }
                    due.sort_unstable();
                    popped.sort_unstable();
                    prop_assert_eq!(popped, due);
                }
            }
            let expected = model.iter().map(|it| it.deadline).min();
            prop_assert_eq!(host.deadline_millis(), expected);
            prop_assert_eq!(host.cache.len(), model.len());
        }
        for it in model {
            host.remove(it.index);
        }
        host.assert_empty();
    }
}
