extern crate std;

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::{Instant, Tick};
use whimbrel_wire::{Address, RawWindow, SeqNum, WindowScale};

use super::{Ended, Lifetimes, Opener, PathClass, TimeWait, TimeWaits};
use crate::table::{FlowHash, FlowTable, Kind, Record};
use crate::tunables::Tunables;

pub(super) const RCV_NXT: SeqNum = SeqNum::new(0xffff_ff00);
pub(super) const SND_NXT: SeqNum = SeqNum::new(5000);
pub(super) const TS_RECENT: u32 = 0xffff_ffff;

fn ended(ts_recent: Option<u32>) -> Ended {
    Ended {
        remote: Address::from_v4_bytes([192, 0, 2, 1]),
        remote_port: 40_000,
        local_port: 80,
        local_index: 3,
        generation: 9,
        snd_nxt: SND_NXT,
        rcv_nxt: RCV_NXT,
        window: RawWindow::new(2000),
        scale: WindowScale::new(7),
        ts_recent,
        opener: Opener::Peer,
        marking: 0xa5,
    }
}

pub(super) fn plain() -> TimeWait {
    TimeWait::new(ended(None), Tick::new(0))
}

pub(super) fn with_timestamps() -> TimeWait {
    TimeWait::new(ended(Some(TS_RECENT)), Tick::new(0))
}

pub(super) fn entered_at(millis: u32, port: u16) -> TimeWait {
    TimeWait::new(Ended { remote_port: port, ..ended(None) }, Tick::new(millis))
}

fn lifetimes() -> Lifetimes {
    Lifetimes::new(&Tunables::default())
}

#[test]
fn a_record_remembers_what_it_was_told() {
    for ts_recent in [None, Some(0), Some(77)] {
        assert_eq!(TimeWait::new(ended(ts_recent), Tick::new(5)).ended(), ended(ts_recent));
    }
    let remote = Address::from_v4_bytes([192, 0, 2, 1]);
    assert!(plain().is_flow(&remote, 40_000, 80, 3));
    assert!(!plain().is_flow(&remote, 40_000, 80, 4));
    assert!(!plain().is_flow(&remote, 80, 40_000, 3));
}

#[test]
fn a_record_lasts_two_msl_of_its_class_and_one_tick() {
    for (class, millis) in
        [(PathClass::Remote, 120_000), (PathClass::Link, 20_000), (PathClass::Loopback, 4_000)]
    {
        let mut waits = TimeWaits::new();
        let index = waits.enter(class, entered_at(1000, 1));
        let due = waits.next_expiry(Instant::from_millis(1000), &lifetimes());
        assert_eq!(due, Some(Instant::from_millis(1001 + millis)));
        let at = |millis: u64| Tick::new(1000 + millis as u32);
        assert_eq!(waits.pop_expired(at(millis), &lifetimes()), None);
        let (expired, _) = waits.pop_expired(at(millis + 1), &lifetimes()).unwrap();
        assert_eq!(expired, index);
        assert!(waits.is_empty() && waits.next_expiry(Instant::ZERO, &lifetimes()).is_none());
    }
}

#[test]
fn records_expire_in_order_where_ticks_wrap() {
    let (mut waits, start) = (TimeWaits::new(), u32::MAX - 60_000);
    let now = |millis: u32| Tick::new(start.wrapping_add(millis));
    for second in 0..120 {
        waits.enter(PathClass::Remote, entered_at(now(second * 1000).raw(), second as u16));
    }
    for second in 0..120 {
        let due = 120_001 + second * 1000;
        assert_eq!(waits.pop_expired(now(due - 1), &lifetimes()), None);
        let (_, record) = waits.pop_expired(now(due), &lifetimes()).unwrap();
        assert_eq!(record.ended().remote_port, second as u16);
    }
    assert!(waits.is_empty());
}

#[test]
fn a_shorter_msl_ends_those_who_wait_already() {
    let mut waits = TimeWaits::new();
    waits.enter(PathClass::Remote, entered_at(0, 1));
    waits.enter(PathClass::Remote, entered_at(3000, 2));
    let shorter = Tunables { msl_remote: Duration::from_secs(2), ..Tunables::default() };
    let shorter = Lifetimes::new(&shorter);
    assert_eq!(waits.pop_expired(Tick::new(5000), &lifetimes()), None);
    assert!(waits.pop_expired(Tick::new(5000), &shorter).is_some());
    assert_eq!(waits.pop_expired(Tick::new(5000), &shorter), None);
    assert_eq!(waits.len(), 1);
}

#[test]
fn a_restarted_record_waits_again_behind_the_others() {
    let mut waits = TimeWaits::new();
    let first = waits.enter(PathClass::Link, with_timestamps());
    waits.enter(PathClass::Link, entered_at(10, 2));
    let moved = waits.restart(first, Tick::new(5000), Some(TS_RECENT.wrapping_add(3))).unwrap();
    assert_ne!(moved, first);
    assert_eq!(waits.get(first), None);
    let record = waits.get(moved).unwrap();
    assert_eq!((record.entered(), record.ts_recent()), (Tick::new(5000), Some(2)));
    assert!(waits.pop_expired(Tick::new(20_011), &lifetimes()).is_some());
    assert_eq!(waits.pop_expired(Tick::new(20_011), &lifetimes()), None);
    assert_eq!(waits.pop_expired(Tick::new(25_001), &lifetimes()).unwrap().0, moved);
    assert_eq!(waits.restart(moved, Tick::new(0), None), None);
}

#[test]
fn at_the_bound_the_oldest_of_all_classes_goes() {
    let mut waits = TimeWaits::new();
    let b = waits.enter(PathClass::Remote, entered_at(2, 2));
    let a = waits.enter(PathClass::Loopback, entered_at(1, 1));
    let c = waits.enter(PathClass::Link, entered_at(3, 3));
    assert!(waits.is_full(3) && !waits.is_full(4));
    for expected in [a, b, c] {
        assert_eq!(waits.recycle_oldest().unwrap().0, expected);
    }
    assert_eq!(waits.recycle_oldest(), None);
}

#[test]
fn an_index_says_its_class() {
    let mut waits = TimeWaits::new();
    for class in PathClass::ALL {
        let index = waits.enter(class, plain());
        assert!(index < 1 << 30);
        assert_eq!(TimeWaits::class(index), Some(class));
        assert_eq!(waits.len_of(class), 1);
        assert!(waits.get_mut(index).is_some());
        assert!(waits.remove(index).is_some() && waits.remove(index).is_none());
    }
    assert_eq!(TimeWaits::class(u32::MAX), None);
    assert_eq!(waits.get(u32::MAX), None);
}

#[test]
fn a_million_records_cost_48_bytes_each() {
    let mut waits = TimeWaits::new();
    for number in 0..1_000_000_u32 {
        waits.enter(PathClass::Remote, entered_at(number / 100, number as u16));
    }
    let each = waits.memory() as f64 / 1e6;
    assert!(each < 48.3, "{each}");
}

/// Flows in TIME-WAIT, each with its record and its slot in the flow table.
#[derive(Default)]
struct Waiting {
    waits: TimeWaits,
    flows: FlowTable,
    /// By flow: the index of its record.
    indices: Vec<u32>,
    random: u64,
}

impl Waiting {
    fn hash(flow: usize) -> FlowHash {
        let mixed = (flow as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        FlowHash(((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32)
    }

    fn enter(&mut self, flow: usize) -> u32 {
        let index = self.waits.enter(PathClass::Remote, entered_at(0, 0));
        self.flows.insert(Self::hash(flow), Record::new(Kind::TimeWait, index));
        index
    }

    fn grow(&mut self, count: usize) {
        while self.indices.len() < count {
            let index = self.enter(self.indices.len());
            self.indices.push(index);
        }
    }

    /// Ports come back at random: each record leaves its place `times` times on average.
    fn reuse(&mut self, times: usize) {
        for _ in 0..times * self.indices.len() {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let flow = (self.random >> 33) as usize % self.indices.len();
            let old = self.indices[flow];
            self.waits.remove(old);
            self.flows.remove(Self::hash(flow), Record::new(Kind::TimeWait, old));
            self.indices[flow] = self.enter(flow);
        }
    }

    fn bytes_each(&self) -> f64 {
        (self.waits.memory() + self.flows.memory()) as f64 / self.indices.len() as f64
    }
}

#[test]
fn record_and_slot_cost_64_bytes_at_most_under_random_reuse() {
    let mut waiting = Waiting::default();
    waiting.grow(150_000);
    waiting.reuse(10);
    // Once round all sizes of the flow table: it grows by an eighth.
    for count in (150_000..=170_000).step_by(2_500) {
        waiting.grow(count);
        waiting.reuse(1);
        let each = waiting.bytes_each();
        assert!(each <= 64.0, "{each:.2} bytes at {count}");
    }
}
