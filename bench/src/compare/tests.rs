use std::collections::HashMap;
use std::time::Duration;

use super::{Cell, Comparison};
use crate::case::{Case, Kind, Limits, Measured, Spent};

const LIMITS: Limits =
    Limits { fill: Duration::from_secs(60), measure: Duration::from_secs(1), memory: 12 << 30 };

fn of(kind: Kind, scale: u32, cell: Cell) -> Comparison {
    let cells = HashMap::from([((Case { kind, scale }, "peer"), cell)]);
    Comparison { peers: Vec::new(), missing: Vec::new(), cells }
}

fn reached(scale: u64, cpu: u64) -> Cell {
    let seconds = Duration::from_secs(cpu);
    let spent = Spent { wall: seconds, cpu: seconds };
    Cell::Measured(vec![Measured { scale, spent, ..Measured::default() }])
}

fn why_not(comparison: &Comparison, kind: Kind, scale: u32) -> Option<String> {
    comparison.out_of_reach(Case { kind, scale }, "peer", &LIMITS)
}

#[test]
fn setup_limit_at_smaller_scale_applies_to_larger() {
    let slow = of(Kind::Churn, 100_000, reached(62_630, 61));
    let told = why_not(&slow, Kind::Churn, 1_000_000);
    assert_eq!(told.as_deref(), Some("it reached 62,630 in 60 s of CPU time"));
    assert_eq!(why_not(&slow, Kind::Churn, 100_000), None);
    assert_eq!(why_not(&slow, Kind::Idle, 1_000_000), None);
    let large = of(Kind::Idle, 1_000_000, reached(5_000, 3));
    let told = why_not(&large, Kind::Idle, 10_000_000).expect("out of reach");
    assert!(told.contains("12 GiB of memory"), "{told}");
    let whole = of(Kind::Churn, 100_000, reached(98_520, 20));
    assert_eq!(why_not(&whole, Kind::Churn, 1_000_000), None);
}

#[test]
fn who_could_not_take_all_ports_is_not_asked_to_again() {
    let slow = of(Kind::Ports, 50, Cell::Without("too slow".into()));
    assert_eq!(why_not(&slow, Kind::Ports, 99).as_deref(), Some("too slow"));
    assert_eq!(why_not(&slow, Kind::Ports, 0), None);
}

#[test]
fn what_takes_long_is_measured_once() {
    assert!(reached(1, 21).is_settled() && !reached(1, 19).is_settled());
    assert!(Cell::Without(String::new()).is_settled());
}
