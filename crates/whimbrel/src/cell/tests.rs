use whimbrel_tcp::Tunables;

use super::*;

#[test]
fn outward_chunks_come_in_order_and_leave_empty_queues() {
    let cell = StreamCell::new(settings());
    let mut state = cell.lock();
    for chunk in ["whim", "brel", "!"] {
        state.push_outward(Bytes::from_static(chunk.as_bytes()));
    }
    let mut peeked = [0; 6];
    assert_eq!(state.peek(&mut peeked), 6);
    assert_eq!(&peeked, b"whimbr");

    let mut places = [const { Bytes::new() }; 4];
    assert_eq!(state.take_outward(6, &mut places), 2);
    assert_eq!((&places[0][..], &places[1][..]), (&b"whim"[..], &b"br"[..]));
    assert_eq!(state.unread, 3);
    assert_eq!(state.take_outward(usize::MAX, &mut places), 2);
    assert_eq!((&places[0][..], &places[1][..]), (&b"el"[..], &b"!"[..]));
    assert!(state.queues.is_none(), "an idle cell holds no queues");
}

#[test]
fn what_the_shard_has_no_room_for_waits_and_takes_credit() {
    let cell = StreamCell::new(settings());
    let mut state = cell.lock();
    assert_eq!(
        state.leave(Bytes::from(vec![7; 1_000])),
        PostAction::None,
        "the shard knows it not yet"
    );
    assert_eq!(state.room().unwrap(), (256 << 10) - 1_000);
    state.settings.set_send_size(10_000);
    assert_eq!(state.room().unwrap(), 9_000, "as much again as the send buffer");
    state.drain_inward(|chunk| chunk.split_to(600).len());
    assert_eq!(state.unsent, 400);
    state.drain_inward(|chunk| chunk.split_to(chunk.len()).len());
    assert_eq!(state.unsent, 0);
    assert!(state.queues.is_none(), "an idle cell holds no queues");
}

#[test]
fn single_bytes_stay_within_piece_limit() {
    let cell = StreamCell::new(settings());
    let mut state = cell.lock();
    let byte = || Bytes::from_static(b"x");
    for _ in 0..PIECES {
        assert!(state.room().unwrap() > 0 && state.recv_room() > 0);
        let _ = state.leave(byte());
        state.push_outward(byte());
    }
    assert_eq!((state.room().unwrap(), state.recv_room()), (0, 0));
    state.drain_inward(|chunk| chunk.split_to(chunk.len()).len());
    assert_eq!(state.room().unwrap(), 256 << 10);

    let mut places = [const { Bytes::new() }; PIECES / 2];
    assert_eq!(state.take_outward(PIECES / 2 - 1, &mut places), PIECES / 2 - 1);
    assert!(!state.has_half_read() && state.recv_room() > 0);
    assert_eq!(state.take_outward(1, &mut places), 1);
    assert!(state.has_half_read());
}

#[test]
fn an_error_is_told_once_and_then_the_pipe_is_broken() {
    let cell = StreamCell::new(settings());
    let mut state = cell.lock();
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    state.on_over(Some(reset), &mut Vec::new());
    assert_eq!(state.room().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(state.room().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

fn settings() -> Settings {
    Settings::new(&Tunables::default())
}
