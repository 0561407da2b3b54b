//! How the window follows the receive buffer.

use super::pair::{Pair, Which};
use crate::Tunables;
use crate::tunables::ReceiveWindow;

#[test]
fn a_large_buffer_is_not_announced_before_anything_came() {
    let mut pair = Pair::established(&Tunables::default());
    assert_eq!(pair.server.counters.out_segs, 0, "the handshake is played, and nothing follows");
    assert_eq!(pair.server.connection.rcv.wnd(), 65_535);
    pair.write(Which::Client, &[7; 3_000]);
    pair.run_until_quiet();
    assert_eq!(pair.server.connection.rcv.wnd(), 256 << 10, "the acknowledgment announces it");
}

#[test]
fn a_window_of_full_segments_is_rounded_up_and_follows_each_octet() {
    let recv_window = ReceiveWindow::FullSegments;
    let tunables = Tunables { recv_buffer: 65_536, recv_window, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    assert_eq!(pair.client.connection.recv_size, 45 * 1_460);
    assert_eq!(pair.server.connection.recv_size, 45 * 1_460);
    pair.write(Which::Client, b"one");
    pair.run_until_quiet();
    let acked = &pair.server.connection.rcv;
    assert_eq!(acked.wnd(), 45 * 1_460, "165 octets more than the SYN-ACK said");
}

#[test]
fn by_the_rfc_a_window_does_not_grow_by_less_than_a_segment() {
    let tunables = Tunables { recv_buffer: 65_536, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.write(Which::Client, b"one");
    pair.run_until_quiet();
    let acked = &pair.server.connection.rcv;
    assert_eq!((acked.wnd(), pair.server.connection.recv_size), (65_535 - 3, 65_536));
}
