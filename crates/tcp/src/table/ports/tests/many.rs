//! Many ports in use: maps, waiting ports, refusing peers, compared with a model that knows it all.
#![allow(clippy::disallowed_methods, reason = "an ignored test measures time")]

extern crate std;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use std::time::Instant;

use proptest::prelude::*;
use whimbrel_base::{PortRange, ReservedPorts, Tick};

use super::{HOST, range, server, with};
use crate::table::ports::known::{FEW, MAPS};
use crate::table::ports::{Destination, PortUse, Ports, PortsExhausted, Stamped};
use crate::tunables::PortOrder;
use crate::{Counters, Tunables};

/// One destination, and what a flow table would know of its ports.
struct Towards {
    ports: Ports,
    used: BTreeMap<u16, PortUse>,
    counters: Counters,
    now: u32,
}

const PEER: Destination = Destination { local: HOST, remote: server(1) };

impl Towards {
    fn new(range: PortRange, order: PortOrder) -> Self {
        let tunables = Tunables { port_order: order, ..Tunables::default() };
        let ports = with(1, range, &tunables);
        Self { ports, used: BTreeMap::new(), counters: Counters::default(), now: 0 }
    }

    fn open(&mut self) -> Result<u16, PortsExhausted> {
        let used = &self.used;
        let look = |port| used.get(&port).copied().unwrap_or(PortUse::Free);
        let port = self.ports.choose(&PEER, &mut self.counters, look)?;
        assert!(self.used.insert(port, PortUse::Ours).is_none(), "{port} was in use");
        Ok(port)
    }

    fn bind(&mut self, port: u16) {
        if !self.used.contains_key(&port) {
            self.ports.claim(&PEER, port, &mut self.counters);
            self.used.insert(port, PortUse::Ours);
        }
    }

    /// The connection of a port ends: in TIME-WAIT, if `stamped` is said.
    fn close(&mut self, port: u16, stamped: Option<Stamped>) {
        match stamped {
            None => {
                self.used.remove(&port);
                self.ports.release(&PEER, port);
            }
            Some(stamped) => {
                self.used.insert(port, self.waiting_since_now(stamped));
                self.ports.start_waiting(&PEER, port, stamped);
            }
        }
    }

    fn wait_anew(&mut self, port: u16) {
        if let Some(PortUse::Waiting { stamped, .. }) = self.used.get(&port).copied() {
            self.used.insert(port, self.waiting_since_now(stamped));
            self.ports.wait_anew(&PEER, port, stamped);
        }
    }

    fn expire(&mut self, port: u16) {
        if let Some(PortUse::Waiting { stamped, .. }) = self.used.get(&port).copied() {
            self.used.remove(&port);
            self.ports.stop_waiting(&PEER, port, stamped);
        }
    }

    fn waiting_since_now(&self, stamped: Stamped) -> PortUse {
        let entered = Tick::new(self.now);
        PortUse::Waiting { entered, spoke: entered, stamped }
    }

    /// One that waits answers something now.
    fn answer(&mut self, port: u16) {
        if let Some(PortUse::Waiting { spoke, .. }) = self.used.get_mut(&port) {
            *spoke = Tick::new(self.now);
        }
    }

    /// The ports that wait, the longest waiting first.
    fn waiting(&self, of: Stamped) -> Vec<(u32, u16)> {
        let mut waiting: Vec<_> = self
            .used
            .iter()
            .filter_map(|(port, found)| match found {
                PortUse::Waiting { entered, stamped, .. } if *stamped == of => {
                    Some((entered.raw(), *port))
                }
                _ => None,
            })
            .collect();
        waiting.sort_unstable();
        waiting
    }

    fn end(&mut self) {
        for (port, found) in self.used.clone() {
            match found {
                PortUse::Ours => self.close(port, None),
                _ => self.expire(port),
            }
        }
        assert_eq!(self.ports.destinations(), 0);
    }
}

#[test]
fn last_free_port_is_found_and_the_longest_waiting_is_named() {
    for order in PortOrder::ALL {
        let mut towards = Towards::new(range(32_768, 35_767), *order);
        let mut opened = Vec::new();
        for _ in 0..3_000 {
            opened.push(towards.open().expect("a free port"));
        }
        assert_eq!(towards.open().unwrap_err().taken.in_use, 3_000, "{order:?}");
        for port in opened.iter().skip(5) {
            towards.now += 1;
            towards.close(*port, Some(Stamped::Yes));
        }
        let taken = towards.open().unwrap_err().taken;
        assert_eq!((taken.in_use, taken.waiting), (5, 2_995));
        assert_eq!(taken.longest, [Some(opened[5]), None]);
        towards.close(opened[0], None);
        for port in [opened[900], opened[2_999]] {
            towards.expire(port);
        }
        let mut last = [0; 3].map(|_| towards.open().expect("it came back"));
        last.sort_unstable();
        let mut expected = [opened[0], opened[900], opened[2_999]];
        expected.sort_unstable();
        assert_eq!(last, expected, "{order:?}");
        towards.end();
    }
}

#[test]
fn ports_that_waited_before_the_map_are_found_in_order() {
    let mut towards = Towards::new(range(1_000, 1_099), PortOrder::DoubleHash);
    let opened: Vec<_> = (0..FEW).map(|_| towards.open().expect("a free port")).collect();
    // Those opened last close first.
    for port in opened.iter().rev() {
        towards.now += 1;
        towards.close(*port, Some(Stamped::Yes));
    }
    while towards.open().is_ok() {}
    let mut expected = opened.iter().rev();
    while let Some(port) = towards.open().unwrap_err().taken.longest[0] {
        assert_eq!(Some(&port), expected.next());
        towards.expire(port);
        assert_eq!(towards.open(), Ok(port));
    }
    assert_eq!(expected.next(), None);
    towards.end();
}

#[test]
fn a_peer_that_refuses_gets_the_least_recently_used_port() {
    for order in PortOrder::ALL {
        let mut towards = Towards::new(range(1_000, 1_099), *order);
        towards.ports.on_refused(&PEER, &mut towards.counters);
        let opened: Vec<_> = (0..100).map(|_| towards.open().expect("a free port")).collect();
        let (early, late) = opened.split_at(40);
        for port in late.iter().chain(early) {
            towards.close(*port, None);
        }
        // An application bound one meanwhile: it has been used since, and comes last.
        towards.bind(late[0]);
        towards.close(late[0], None);
        let again: Vec<_> = (0..100).map(|_| towards.open().expect("a free port")).collect();
        let expected: Vec<_> = late.iter().chain(early).copied().collect();
        assert_eq!(again, expected, "{order:?}");
        towards.close(opened[7], None);
        assert_eq!(towards.open(), Ok(opened[7]));
        towards.end();
    }
}

#[test]
fn answering_record_keeps_no_other_from_being_named() {
    // Looked up one by one, and by a map.
    for count in [10, 200] {
        let mut towards = Towards::new(range(1_000, 999 + count), PortOrder::DoubleHash);
        let opened: Vec<_> = (0..count).map(|_| towards.open().expect("a free port")).collect();
        for port in &opened {
            towards.now += 1;
            towards.close(*port, Some(Stamped::Yes));
        }
        for answering in 1..=7 {
            towards.now += 1;
            for port in &opened[..answering] {
                towards.answer(*port);
            }
            let longest = towards.open().unwrap_err().taken.longest;
            assert_eq!(longest, [Some(opened[answering]), None], "{answering} of {count}");
        }
        // They are not forgotten: each has its turn when the others are gone.
        for port in &opened[7..] {
            towards.expire(*port);
            assert_eq!(towards.open(), Ok(*port));
        }
        let mut named = Vec::new();
        while let Some(port) = towards.open().unwrap_err().taken.longest[0] {
            towards.expire(port);
            towards.bind(port);
            named.push(port);
        }
        named.sort_unstable();
        let mut expected = opened[..7].to_vec();
        expected.sort_unstable();
        assert_eq!(named, expected);
        towards.end();
    }
}

#[test]
fn ports_of_another_shard_are_met_once_and_count_for_nothing() {
    for order in PortOrder::ALL {
        let tunables = Tunables { port_order: *order, ..Tunables::default() };
        let mut ports = with(1, range(1_000, 1_999), &tunables);
        let (mut counters, mut used) = (Counters::default(), BTreeMap::new());
        let is_home = |port: u16| (port >> 1).is_multiple_of(2);
        let open = |ports: &mut Ports, used: &mut BTreeMap<u16, PortUse>| {
            let mut looks = 0;
            let opened = ports.choose(&PEER, &mut Counters::default(), |port| {
                looks += 1;
                let found = used.get(&port).copied().unwrap_or(PortUse::Free);
                if is_home(port) { found } else { PortUse::Elsewhere }
            });
            if let Ok(port) = opened {
                assert!(used.insert(port, PortUse::Ours).is_none(), "{port} was in use");
            }
            (opened, looks)
        };
        // An application binds ports that come home elsewhere: before there is a map, and later.
        for bound in [1_002, 1_003] {
            ports.claim(&PEER, bound, &mut counters);
        }
        assert_eq!((0..500).filter(|_| open(&mut ports, &mut used).0.is_ok()).count(), 500);
        assert!(used.keys().copied().all(is_home));
        assert_eq!(open(&mut ports, &mut used).0.expect_err("all").taken.in_use, 500);
        ports.claim(&PEER, 1_006, &mut counters);
        ports.release(&PEER, 1_003);
        let (error, looks) = open(&mut ports, &mut used);
        let taken = error.expect_err("all are in use").taken;
        assert_eq!((taken.in_use, taken.waiting, looks), (501, 0, 0), "{order:?}");
        // With other rules all of them are judged again.
        ports.set_rules(range(1_000, 2_007), ReservedPorts::NONE);
        assert_eq!((0..4).map(|_| open(&mut ports, &mut used).0).filter(Result::is_ok).count(), 4);
        assert_eq!(open(&mut ports, &mut used).0.expect_err("all again").taken.in_use, 505);
        for port in used.into_keys().chain([1_002, 1_006]) {
            ports.release(&PEER, port);
        }
        assert_eq!(ports.destinations(), 0);
    }
}

#[test]
fn maps_are_bounded_and_those_that_are_idle_make_room() {
    let mut ports = with(1, range(1_000, 1_999), &Tunables::default());
    let mut counters = Counters::default();
    let towards = |number: usize| {
        let mut peer = PEER;
        peer.remote.port = number as u16 + 1;
        peer
    };
    for number in 0..=MAPS {
        for port in 0..=FEW as u16 {
            ports.claim(&towards(number), 1_000 + port, &mut counters);
        }
    }
    assert_eq!(counters.port_maps_refused, 1);
    assert_eq!(ports.destinations(), MAPS + 1);
    let look = |port| if port < 1_999 { PortUse::Ours } else { PortUse::Free };
    assert_eq!(ports.choose(&towards(MAPS), &mut counters, look), Ok(1_999));
    assert_eq!(counters.port_maps_refused, 2);
    // A peer that was known to refuse is forgotten first.
    ports.on_refused(&towards(0), &mut counters);
    for port in 0..=FEW as u16 {
        ports.release(&towards(0), 1_000 + port);
    }
    assert_eq!(ports.destinations(), MAPS);
    for _ in 0..2 * MAPS {
        ports.claim(&towards(MAPS), 1_998, &mut counters);
        ports.release(&towards(MAPS), 1_998);
    }
    let refused = counters.port_maps_refused;
    ports.claim(&towards(MAPS), 1_998, &mut counters);
    assert_eq!(counters.port_maps_refused, refused, "it has a map by now");
}

#[derive(Clone, Debug)]
enum Act {
    Open,
    Bind(u16),
    Close(usize, Option<bool>),
    Anew(usize),
    Expire(usize),
    Foreign(u16),
    Refuse,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Open),
        1 => (100_u16..300).prop_map(Act::Bind),
        5 => (any::<usize>(), any::<Option<bool>>()).prop_map(|(at, how)| Act::Close(at, how)),
        1 => any::<usize>().prop_map(Act::Anew),
        2 => any::<usize>().prop_map(Act::Expire),
        1 => (100_u16..300).prop_map(Act::Foreign),
        1 => Just(Act::Refuse),
    ]
}

fn nth(towards: &Towards, at: usize, wanted: fn(&PortUse) -> bool) -> Option<u16> {
    let found: Vec<_> = towards.used.iter().filter(|it| wanted(it.1)).map(|it| *it.0).collect();
    (!found.is_empty()).then(|| found[at % found.len()])
}

fn is_ours(found: &PortUse) -> bool {
    *found == PortUse::Ours
}

fn is_waiting(found: &PortUse) -> bool {
    matches!(found, PortUse::Waiting { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_free_ports_are_found_and_figures_are_right(
        acts in proptest::collection::vec(act(), 0..600),
        order in prop::sample::select(PortOrder::ALL),
    ) {
        let mut towards = Towards::new(range(100, 299), order);
        for act in acts {
            towards.now += 1;
            match act {
                Act::Open => {
                    let free = (100..300).any(|port| !towards.used.contains_key(&port));
                    let opened = towards.open();
                    prop_assert_eq!(opened.is_ok(), free);
                    if let Err(exhausted) = opened {
                        let (with, without) =
                            (towards.waiting(Stamped::Yes), towards.waiting(Stamped::No));
                        let taken = exhausted.taken;
                        prop_assert_eq!(taken.waiting as usize, with.len() + without.len());
                        prop_assert_eq!(taken.in_use + taken.waiting, 200);
                        let longest = [with, without].map(|all| all.first().map(|it| it.1));
                        prop_assert_eq!(taken.longest, longest);
                    }
                }
                Act::Bind(port) => towards.bind(port),
                Act::Close(at, how) => {
                    if let Some(port) = nth(&towards, at, is_ours) {
                        let stamped = |yes| if yes { Stamped::Yes } else { Stamped::No };
                        towards.close(port, how.map(stamped));
                    }
                }
                Act::Anew(at) => {
                    if let Some(port) = nth(&towards, at, is_waiting) {
                        towards.wait_anew(port);
                    }
                }
                Act::Expire(at) => {
                    if let Some(port) = nth(&towards, at, is_waiting) {
                        towards.expire(port);
                    }
                }
                Act::Foreign(port) => {
                    towards.used.entry(port).or_insert(PortUse::Foreign);
                }
                Act::Refuse => towards.ports.on_refused(&PEER, &mut towards.counters),
            }
        }
        towards.used.retain(|_, found| *found != PortUse::Foreign);
        towards.end();
    }
}

/// `cargo test --release -p whimbrel-tcp ports -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn what_a_choice_costs() {
    for (fill, kept) in [("0 %", 0), ("50 %", 14_116), ("99 %", 27_949), ("full", 28_232)] {
        let mut towards = Towards::new(range(32_768, 60_999), PortOrder::DoubleHash);
        let mut used = [PortUse::Free; 65_536];
        for port in 32_768..32_768 + kept as u16 {
            towards.bind(port);
            used[usize::from(port)] = PortUse::Ours;
        }
        let rounds = 200_000;
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let begin = Instant::now();
                for _ in 0..rounds {
                    let look = |port: u16| used[usize::from(port)];
                    let chosen = towards.ports.choose(&PEER, &mut towards.counters, look);
                    assert_eq!(chosen.is_ok(), kept < 28_232);
                    if let Ok(port) = chosen {
                        towards.ports.release(&PEER, port);
                    }
                }
                begin.elapsed().as_secs_f64() * 1e9 / f64::from(rounds)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        std::println!("{fill}: {:.0} ns ({:.0} to {:.0})", times[2], times[0], times[4]);
    }
}
