use super::*;

#[test]
fn a_processor_that_is_not_there_is_refused() {
    let options = |pin| ShardOptions { shards: None, pin };
    assert_eq!(options(vec![0, 0]).processors().unwrap(), [0, 0]);
    assert!(matches!(options(vec![100_000]).processors(), Err(Failure::Usage(_))));
}
