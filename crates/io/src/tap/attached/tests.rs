use super::*;

#[test]
fn full_queue_drops_and_counts_frames() {
    let queue = FrameQueue::new(u64::MAX);
    let frame = vec![7; 64 << 10];
    let fitting = FrameQueue::MOST_BYTES / frame.len();
    (0..fitting + 5).for_each(|_| queue.push(&frame));
    assert_eq!((queue.frames(), queue.dropped()), (fitting as u64, 5));
    assert_eq!(queue.take().concat().len(), FrameQueue::MOST_BYTES);
    queue.push(&frame);
    assert_eq!(
        (queue.frames(), queue.dropped(), queue.take()),
        (fitting as u64 + 1, 5, vec![frame])
    );
}

#[test]
fn limit_of_frames_ends_a_capture_without_drops() {
    let queue = FrameQueue::new(2);
    assert!(!queue.is_full());
    (0..9).for_each(|_| queue.push(b"frame"));
    assert!(queue.is_full());
    assert_eq!((queue.frames(), queue.dropped(), queue.take().concat().len()), (2, 0, 10));
}

#[test]
fn last_capture_to_be_detached_leaves_none() {
    let mut taps = None;
    let mut slot = TapSlot::new(&mut taps, Medium::Ip, None);
    let (first, second) = (FrameQueue::new(1), FrameQueue::new(1));
    let header = slot.attach(first.clone(), "one", 64, None);
    assert_eq!(slot.attach(second.clone(), "one", 64, None), header);
    slot.detach(&first);
    slot.detach(&first);
    assert_eq!(slot.taps.as_ref().map(|taps| taps.attached.len()), Some(1));
    slot.detach(&second);
    assert!(taps.is_none(), "frames cost what they did before");
}

#[test]
fn pieces_end_with_a_frame() {
    let queue = FrameQueue::new(u64::MAX);
    let lens = [FrameQueue::PIECE_BYTES - 1, 1, 1, 2 * FrameQueue::PIECE_BYTES, 5];
    lens.into_iter().for_each(|len| queue.push(&vec![1; len]));
    let pieces: Vec<_> = queue.take().iter().map(Vec::len).collect();
    assert_eq!(pieces, [lens[0] + 1, 1, lens[3], 5]);
}
