use bytes::Bytes;

use super::{PIECE, next_answers};

#[test]
fn large_request_is_answered_in_pieces() {
    for len in [1, 256, 70_000, 200_000] {
        let answer = Bytes::from(vec![7; len]);
        let mut owed = u64::MAX;
        for room in [0, 1_000, usize::MAX] {
            let before = owed;
            let answers = next_answers(&answer, &mut owed, room);
            assert!(answers.len() <= room.min(PIECE).max(len), "{} bytes", answers.len());
            assert_eq!(before - owed, (answers.len() / len) as u64);
        }
    }
    assert_eq!(next_answers(&Bytes::from_static(b"answer"), &mut 0, PIECE), Bytes::new());
}
