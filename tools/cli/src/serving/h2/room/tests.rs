use std::sync::atomic::AtomicBool;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn streams_share_room_and_have_256_bytes_each() {
    let (flag, room) = (Arc::new(Flag::default()), Room::default());
    let waker = Waker::from(Arc::clone(&flag));
    let (greedy, modest) = (room.stream(), room.stream());
    let bytes = |count| Bytes::from(vec![0; count]);
    let all = greedy.hold(bytes(greedy.at_once(&waker).unwrap()));
    assert_eq!((all.len(), room.held()), (SHARED, SHARED));
    assert_eq!((greedy.at_once(&waker), room.at_once()), (None, LEAST));
    let little = modest.hold(bytes(modest.at_once(&waker).unwrap()));
    assert_eq!((little.len(), modest.at_once(&waker)), (LEAST, None));
    // A part of it keeps the whole.
    let part = all.slice(..1);
    drop(all);
    assert!(greedy.at_once(&waker).is_none() && !flag.0.load(Ordering::Relaxed));
    drop(part);
    assert!(flag.0.load(Ordering::Relaxed));
    assert_eq!(greedy.at_once(&waker), Some(SHARED - LEAST));
    drop(little);
    assert_eq!(room.held(), 0);
}
