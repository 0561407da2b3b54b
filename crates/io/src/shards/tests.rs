use super::*;
use crate::WireSpec;

fn plan(count: ShardCount, wire: &str) -> Result<u16, ShardConfigError> {
    let plan = ShardPlan::new(wire.parse().unwrap(), count, None)?;
    let has_queues = !matches!(plan.wire, WireSpec::Mem(_));
    assert!(!has_queues || plan.wire.queues() == plan.shards, "{wire}");
    Ok(plan.shards)
}

const TWO: ShardCount = ShardCount::Exactly(2);

#[test]
fn the_wire_gets_a_queue_for_each_shard() {
    assert_eq!(plan(TWO, "tun:t,addr=10.9.0.2/24"), Ok(2));
    assert_eq!(plan(TWO, "packet:e,addr=10.9.0.2/24,fanout=2"), Ok(2));
    assert_eq!(plan(TWO, "mem:delay=1ms"), Ok(2));
    assert_eq!(plan(ShardCount::PerQueue, "tun:t,addr=10.9.0.2/24,queues=3"), Ok(3));
    assert_eq!(plan(ShardCount::Auto, "tun:t,addr=10.9.0.2/24,queues=3"), Ok(3));
    assert_eq!(plan(ShardCount::Exactly(1), "unix:/tmp/w,addr=10.9.0.2/24"), Ok(1));
    assert_eq!(plan(ShardCount::Auto, "unix:/tmp/w,addr=10.9.0.2/24"), Ok(1));
}

#[test]
fn more_shards_than_queues_are_refused() {
    for wire in [
        "tun:t,addr=10.9.0.2/24,queues=3",
        "tap:t,addr=10.9.0.2/24",
        "unix:/tmp/w,addr=10.9.0.2/24",
        "kernel:",
    ] {
        assert!(plan(TWO, wire).is_err(), "{wire}");
    }
}

#[test]
fn auto_gives_no_shard_that_has_nothing_to_do() {
    let wire = "mem:".parse().unwrap();
    assert_eq!(ShardPlan::new(wire, ShardCount::Auto, Some(1)).unwrap().shards, 1);
}

#[test]
fn a_count_is_a_number_or_auto() {
    assert_eq!("256".parse(), Ok(ShardCount::Exactly(256)));
    assert_eq!("auto".parse(), Ok(ShardCount::Auto));
    for wrong in ["0", "257", "-1", "two", ""] {
        let error = wrong.parse::<ShardCount>().unwrap_err().to_string();
        assert!(error.contains("1 to 256, or auto"), "{wrong}");
    }
}
