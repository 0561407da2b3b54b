use whimbrel_udp::Arrived;
use whimbrel_wire::{Address, Endpoint, TrafficClass};

use super::*;

fn received(len: usize) -> Received {
    let end = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), 53);
    let (from, to, data) = (end, end, &vec![7; len]);
    let (class, hop_limit, dont_fragment) = (TrafficClass(0), 64, true);
    Received::of(&Arrived { from, to, data, class, hop_limit, dont_fragment })
}

#[test]
fn small_datagram_burst_is_counted_and_freed_after_read() {
    let cell = UdpCell::new(SocketAddr::from(([10, 0, 0, 1], 53)));
    let mut state = cell.lock();
    while state.unread < CREDIT {
        state.unread += 1 + Received::OVERHEAD;
        state.outward.push_back(received(1));
    }
    let places = state.outward.capacity() * size_of::<Received>();
    assert!(places <= CREDIT + Received::OVERHEAD, "{places} bytes of places");
    while state.take_first().is_ok() {}
    assert_eq!((state.unread, state.outward.capacity()), (0, 0));
}
