use bytes::Bytes;

use super::{PIECE, next_answers};

#[test]
fn a_peer_that_asks_for_much_at_once_is_answered_a_piece_at_a_time() {
    for len in [1, 256, 70_000, 200_000] {
        let answer = Bytes::from(vec![7; len]);
        let mut owed = u64::MAX;
        let answers = next_answers(&answer, &mut owed);
        assert!(answers.len() <= PIECE.max(len), "{} bytes", answers.len());
        assert_eq!(u64::MAX - owed, (answers.len() / len) as u64);
    }
    assert_eq!(next_answers(&Bytes::from_static(b"answer"), &mut 0), Bytes::new());
}
