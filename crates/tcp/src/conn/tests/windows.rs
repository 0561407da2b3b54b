//! How the window follows the receive buffer.

use super::pair::{Pair, Which, pattern};
use crate::Tunables;
use crate::conn::{Nagle, SocketOptions};
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
fn a_window_of_full_segments_stays_so_whatever_else_is_set() {
    let recv_window = ReceiveWindow::FullSegments;
    let tunables = Tunables { recv_buffer: 65_536, recv_window, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let now = pair.now;
    let options = SocketOptions { nagle: Nagle::Off, ..SocketOptions::default() };
    pair.server.with(now, |connection, cx| connection.set_options(cx, &options));
    assert_eq!(pair.server.connection.recv_size, 45 * 1_460);
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

#[test]
fn a_buffer_made_smaller_takes_what_was_announced_and_then_announces_less() {
    let mut pair = Pair::established(&Tunables::default());
    pair.server.reads = false;
    let (now, most) = (pair.now, 4_096);
    pair.server.with(now, |connection, cx| connection.set_recv_size(cx, most));
    let edge = pair.server.connection.rcv.edge;
    let octets = pattern(60_000);
    assert_eq!(pair.write(Which::Client, &octets), octets.len());
    pair.run_until_quiet();
    assert_eq!(pair.server.connection.unread(), 60_000, "RFC 9293 3.8.6: nothing was taken back");
    assert_eq!(pair.server.connection.rcv.edge, edge);
    let now = pair.now;
    pair.server.drain(now);
    pair.server.reads = true;
    pair.write(Which::Client, &octets);
    for _ in 0..1_000 {
        pair.run_for(std::time::Duration::from_millis(100));
        let window = pair.server.connection.rcv.wnd();
        assert!(window <= most.max(edge.offset_from(pair.server.connection.rcv.nxt)), "{window}");
        if pair.server.received.len() == 120_000 {
            break;
        }
    }
    assert!(pair.server.received[60_000..] == octets);
    assert!(pair.server.connection.rcv.wnd() <= most);
}
