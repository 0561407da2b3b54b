use alloc::vec::Vec;

use super::TxBatch;

#[test]
fn drain_hands_over_pending_segments_and_empties_places() {
    let mut batch = TxBatch::new(3);
    for len in 1..=3 {
        batch.fill(|segment| {
            segment.set_header_len(len);
            true
        });
    }
    batch.consume(1);
    let mut lengths = Vec::new();
    assert_eq!(batch.drain(|segment| lengths.push(segment.len())), 2);
    assert_eq!(lengths, [2, 3]);
    assert!(batch.is_empty() && !batch.is_full());
    assert!(batch.places.iter().all(super::TxSegment::is_empty));
    assert_eq!(batch.drain(|_| unreachable!("nothing is pending")), 0);
}
