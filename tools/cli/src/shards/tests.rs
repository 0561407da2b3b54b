use super::*;

#[test]
fn missing_processor_is_refused() {
    let options = |pin| ShardOptions { shards: None, pin };
    assert_eq!(options(vec![0, 0]).processors().unwrap(), [0, 0]);
    assert!(matches!(options(vec![100_000]).processors(), Err(Failure::Usage(_))));
}

#[test]
fn more_shards_than_work_are_refused() {
    let options = ShardOptions { shards: Some(ShardCount::Exactly(2)), pin: Vec::new() };
    let work = Work { parts: 1, option: "--connections" };
    let Err(Failure::Usage(text)) = options.plan("mem:".parse().unwrap(), Some(work)) else {
        panic!("one of them would have nothing to do")
    };
    assert!(text.contains("--connections gives work for only 1"), "{text}");
}
