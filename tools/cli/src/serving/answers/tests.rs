use whimbrel_base::Secrets;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, ShardConfig};
use whimbrel_wire::Address;

use super::*;
use crate::wrap::WIDTH;

/// A shard that received a segment without a listener.
fn shard() -> Shard {
    let addr = Address::from_v4_bytes([10, 9, 0, 2]);
    let config = ShardConfig {
        tunables: Default::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    let mut shard = Shard::new(config).unwrap();
    shard.rx(Instant::ZERO, &[RxFrame::new(&[0x45; 10], SegMeta::SINGLE)]);
    shard
}

fn answer(open: usize) -> Answer {
    let statistics = Statistics { open, requests: 7, ..Statistics::default() };
    let stack = StackTotals { accept_queue: (3, 4_096), ..StackTotals::default() };
    Answer::of(Totals { statistics, stack: Some(stack) }, Some(&shard()))
}

#[test]
fn the_table_has_states_queues_and_drops_and_fits_a_terminal() {
    let lines = LogLines { written: 7, lost: 2 };
    let text = text(Instant::from_millis(1_500), &answer(2), Some(lines));
    for said in [
        "up 1.5 s\n",
        "open       2 connections\n",
        "states     connections 0, time-wait 0\n",
        "queues     accept 3 of 4,096, half-open 0",
        "drops      1 ",
        "log        7 lines, 2 lost\n",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn answers_to_older_requests_are_ignored() {
    let answers = ShardAnswers::new(2, None);
    let number = answers.asked.fetch_add(1, Ordering::AcqRel) + 1;
    answers.answer(0, number, answer(1));
    answers.answer(1, number, answer(2));
    let open = |answer: Answer| (answer.totals.statistics.open, answer.missing);
    let drops = answers.collect(number).drops;
    assert!(drops.to_string().starts_with("2 "), "{drops}");
    assert_eq!(open(answers.collect(number)), (3, 0));
    answers.answer(1, number + 1, answer(3));
    assert_eq!(open(answers.collect(number + 1)), (3, 1), "the other one is busy elsewhere");
    let none = text(Instant::ZERO, &answers.collect(number + 2), None);
    assert!(none.contains("missing    2 shards, which did not answer in time\n"), "{none}");
    assert!(!none.contains("states"), "nothing is known of any: {none}");
}
