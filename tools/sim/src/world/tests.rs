//! The world itself: its time, its verdicts, its captures.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::{Handle, Shard};
use whimbrel_wire::Family;

use super::Limits;
use crate::host::Application;
use crate::pair::{Pair, PairConfig, server_at};

/// Connects to an address without a host, and waits for ever or for a while.
#[derive(Default)]
struct Caller {
    calls: bool,
    handle: Option<Handle>,
    wakes: u64,
}

impl Application for Caller {
    fn on_wake(&mut self, shard: &mut Shard, _: Instant) {
        self.wakes += 1;
        if self.calls && self.handle.is_none() {
            self.handle = shard.connect(server_at(Family::V4, 80), None).ok();
        }
    }

    fn is_done(&self) -> bool {
        false
    }

    fn dump(&self) -> String {
        format!("  woken {} times\n", self.wakes)
    }
}

fn pair(calls: bool, links: &str) -> Pair<Caller> {
    let link: whimbrel_link::LinkConfig = links.parse().expect("valid");
    let config = PairConfig { links: [link.clone(), link], ..PairConfig::default() };
    let caller = Caller { calls, ..Caller::default() };
    Pair::new(&config, [caller, Caller::default()]).expect("valid")
}

#[test]
fn stuck_run_is_reported_with_all_state() {
    let stuck = pair(false, "").world.run(&Limits::default()).expect_err("no application is done");
    assert_eq!(stuck.why, "nothing is due and not every application is done");
    assert!(stuck.dump.contains("woken 1 times"), "{}", stuck.dump);
}

#[test]
fn run_without_progress_is_called_stuck() {
    let mut pair = pair(true, "loss=100%");
    let limits = Limits { idle: Duration::from_secs(10), ..Limits::default() };
    let stuck = pair.world.run(&limits).expect_err("no host answers");
    assert_eq!(stuck.why, "no progress for 10s");
    let few = Limits { steps: 0, ..Limits::default() };
    let stuck = pair.world.run(&few).expect_err("a limit");
    assert!(stuck.why.starts_with("no end after "), "{}", stuck.why);
}

#[test]
fn silent_minutes_take_one_step_for_each_event() {
    let mut pair = pair(true, "delay=35ms,loss=100%");
    pair.world.start().expect("all is well");
    pair.world.run_to_silence(&Limits::default()).expect("the connection times out");
    assert!(pair.world.now() > Instant::from_millis(120_000), "{:?}", pair.world.now());
    assert!(pair.world.steps() < 60, "{} steps", pair.world.steps());
    assert_eq!(pair.world.link(pair.up).counters().lost_random, 7, "SYNs");
}

#[test]
fn capture_shows_sent_and_lost_packets() {
    let mut pair = pair(true, "loss=100%");
    pair.world.start_capture();
    pair.world.start().expect("all is well");
    let file = Bytes::from(pair.world.take_capture().expect("a capture"));
    let comment = b"lost: random loss";
    assert!(file.windows(comment.len()).any(|bytes| bytes == comment));
    assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
}
