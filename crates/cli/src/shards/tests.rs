use super::*;

fn options(shards: Option<Count>) -> ShardOptions {
    ShardOptions { shards, pin: Vec::new() }
}

fn spread(shards: Option<Count>, wire: &str) -> Result<u16, Failure> {
    let spread = options(shards).spread(wire.parse().unwrap(), None)?;
    let has_queues = !matches!(spread.wire, WireSpec::Mem(_));
    assert!(!has_queues || spread.wire.queues() == spread.shards, "{wire}");
    Ok(spread.shards)
}

const TWO: Option<Count> = Some(Count::Exactly(2));

#[test]
fn the_wire_gets_a_queue_for_each_shard() {
    assert_eq!(spread(TWO, "tun:t,addr=10.9.0.2/24").unwrap(), 2);
    assert_eq!(spread(TWO, "packet:e,addr=10.9.0.2/24,fanout=2").unwrap(), 2);
    assert_eq!(spread(TWO, "mem:delay=1ms").unwrap(), 2);
    assert_eq!(spread(None, "tun:t,addr=10.9.0.2/24,queues=3").unwrap(), 3);
    assert_eq!(spread(Some(Count::Auto), "tun:t,addr=10.9.0.2/24,queues=3").unwrap(), 3);
    let one = Some(Count::Exactly(1));
    assert_eq!(spread(one, "unix:/tmp/w,addr=10.9.0.2/24").unwrap(), 1);
    assert_eq!(spread(Some(Count::Auto), "unix:/tmp/w,addr=10.9.0.2/24").unwrap(), 1);
}

#[test]
fn more_shards_than_queues_are_refused() {
    for wire in [
        "tun:t,addr=10.9.0.2/24,queues=3",
        "tap:t,addr=10.9.0.2/24",
        "unix:/tmp/w,addr=10.9.0.2/24",
        "kernel:",
    ] {
        assert!(matches!(spread(TWO, wire), Err(Failure::Usage(_))), "{wire}");
    }
}

#[test]
fn more_shards_than_work_are_refused_and_auto_gives_none_that_has_nothing_to_do() {
    let work = Some(Work { parts: 1, option: "--connections" });
    let mem = || "mem:".parse().unwrap();
    assert!(matches!(options(TWO).spread(mem(), work), Err(Failure::Usage(_))));
    assert_eq!(options(Some(Count::Auto)).spread(mem(), work).unwrap().shards, 1);
}

#[test]
fn a_count_is_a_number_or_auto() {
    assert_eq!(count("256"), Ok(Count::Exactly(256)));
    assert_eq!(count("auto"), Ok(Count::Auto));
    for wrong in ["0", "257", "-1", "two", ""] {
        assert!(count(wrong).unwrap_err().contains("1 to 256, or auto"), "{wrong}");
    }
}

#[test]
fn a_processor_that_is_not_there_is_refused() {
    let options = |pin| ShardOptions { shards: None, pin };
    assert_eq!(options(vec![0, 0]).processors().unwrap(), [0, 0]);
    assert!(matches!(options(vec![100_000]).processors(), Err(Failure::Usage(_))));
}
