use super::*;

fn spread(shards: Option<u16>, wire: &str) -> Result<u16, Failure> {
    let options = ShardOptions { shards, pin: Vec::new() };
    options.spread(wire.parse().unwrap()).map(|wire| wire.queues())
}

#[test]
fn the_wire_gets_a_queue_for_each_shard() {
    assert_eq!(spread(Some(2), "tun:t,addr=10.9.0.2/24").unwrap(), 2);
    assert_eq!(spread(Some(2), "packet:e,addr=10.9.0.2/24,fanout=2").unwrap(), 2);
    assert_eq!(spread(None, "tun:t,addr=10.9.0.2/24,queues=3").unwrap(), 3);
    assert_eq!(spread(Some(1), "unix:/tmp/w,addr=10.9.0.2/24").unwrap(), 1);
}

#[test]
fn more_shards_than_queues_are_refused() {
    for (shards, wire) in [
        (2, "tun:t,addr=10.9.0.2/24,queues=3"),
        (2, "tap:t,addr=10.9.0.2/24"),
        (2, "unix:/tmp/w,addr=10.9.0.2/24"),
        (2, "kernel:"),
    ] {
        assert!(matches!(spread(Some(shards), wire), Err(Failure::Usage(_))), "{wire}");
    }
}

#[test]
fn a_count_is_a_number_or_auto() {
    assert_eq!(count("256"), Ok(256));
    assert!(count("auto").unwrap() >= 1);
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
