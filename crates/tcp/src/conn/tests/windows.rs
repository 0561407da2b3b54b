//! The way in which the window follows the receive buffer.

use super::pair::{Pair, Which, fixed, pattern};
use crate::Tunables;
use crate::conn::{BufferSize, Nagle, SocketOptions};
use crate::tunables::ReceiveWindow;

#[test]
fn a_large_buffer_is_not_announced_before_anything_came() {
    let mut pair = Pair::established(&Tunables::default());
    assert_eq!(pair.server.cx.counters.out_segs, 0, "the handshake is played, and nothing follows");
    assert_eq!(pair.server.connection.recv_sequence().wnd(), 65_535);
    pair.write(Which::Client, &[7; 3_000]);
    pair.run_until_quiet();
    assert_eq!(
        pair.server.connection.recv_sequence().wnd(),
        256 << 10,
        "the acknowledgment announces it"
    );
}

#[test]
fn window_of_full_segments_rounds_up_and_follows_each_byte() {
    let recv_window = ReceiveWindow::FullSegments;
    let tunables = Tunables { recv_window, recv_buffer_max: 256 << 10, ..fixed(65_536, 65_536) };
    let mut pair = Pair::established(&tunables);
    assert_eq!(pair.client.connection.transfer.tcb.receiver.size(), 45 * 1_460);
    assert_eq!(pair.server.connection.transfer.tcb.receiver.size(), 45 * 1_460);
    pair.write(Which::Client, b"one");
    pair.run_until_quiet();
    let acked = pair.server.connection.recv_sequence();
    let in_units = (45_u32 * 1_460).next_multiple_of(8);
    assert_eq!(acked.wnd(), in_units, "169 bytes more than the SYN-ACK said");
}

#[test]
fn a_window_of_full_segments_stays_so_whatever_else_is_set() {
    let recv_window = ReceiveWindow::FullSegments;
    let tunables = Tunables { recv_buffer: 65_536, recv_window, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let now = pair.now;
    let options = SocketOptions { nagle: Nagle::Off, ..SocketOptions::default() };
    pair.server.with(now, |connection, cx| connection.set_options(cx, &options));
    assert_eq!(pair.server.connection.transfer.tcb.receiver.size(), 45 * 1_460);
}

#[test]
fn a_size_that_is_set_when_segments_are_known_is_not_rounded_up() {
    let recv_window = ReceiveWindow::FullSegments;
    let tunables = Tunables { recv_buffer: 65_536, recv_window, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let now = pair.now;
    let mut options = SocketOptions { recv_size: 100_000.into(), ..SocketOptions::default() };
    pair.server.with(now, |connection, cx| connection.set_options(cx, &options));
    assert_eq!(pair.server.connection.transfer.tcb.receiver.size(), 100_000);
    options.nagle = Nagle::Off;
    pair.server.with(now, |connection, cx| connection.set_options(cx, &options));
    assert_eq!(pair.server.connection.transfer.tcb.receiver.size(), 100_000);
}

#[test]
fn rounding_ends_at_the_maximum_and_skips_tiny_buffers() {
    let recv_window = ReceiveWindow::FullSegments;
    for (recv_buffer, expected) in [(1_460, 1_460), (1_461, 2_920), (1_000, 1_000)] {
        let tunables = Tunables { recv_buffer, recv_window, ..Tunables::default() };
        let pair = Pair::established(&tunables);
        assert_eq!(pair.server.connection.transfer.tcb.receiver.size(), expected);
    }
    let tunables = Tunables {
        recv_buffer: 65_536,
        recv_buffer_max: 65_600,
        recv_window,
        ..Tunables::default()
    };
    assert_eq!(Pair::established(&tunables).server.connection.transfer.tcb.receiver.size(), 65_600);
}

#[test]
fn window_of_full_segments_shrinks_by_unread_text() {
    let recv_window = ReceiveWindow::FullSegments;
    let recv_buffer_max = 2 << 20;
    let tunables =
        Tunables { recv_buffer: 65_536, recv_buffer_max, recv_window, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.server.reads = false;
    for sent in 1..=200_u32 {
        pair.write(Which::Client, b"x");
        pair.run_until_quiet();
        let server = &pair.server.connection;
        let field = u32::from(server.transfer.tcb.receiver.raw_window().get());
        assert_eq!(field, (45 * 1_460 - sent).div_ceil(64), "{sent} bytes are there");
        // The edge never lies a whole unit beyond what the buffer admits.
        assert!(server.recv_sequence().wnd() < 45 * 1_460 - sent + 64, "{sent} bytes are there");
    }
}

#[test]
fn by_the_rfc_a_window_does_not_grow_by_less_than_a_segment() {
    let tunables = Tunables { recv_buffer: 65_536, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.write(Which::Client, b"one");
    pair.run_until_quiet();
    let acked = pair.server.connection.recv_sequence();
    assert_eq!(
        (acked.wnd(), pair.server.connection.transfer.tcb.receiver.size()),
        (65_535 - 3, 65_536)
    );
}

#[test]
fn smaller_buffer_takes_announced_text_then_announces_less() {
    let mut pair = Pair::established(&Tunables::default());
    pair.server.reads = false;
    let (now, most) = (pair.now, 4_096);
    pair.server.with(now, |connection, cx| connection.set_recv_size(cx, BufferSize::Exact(most)));
    let edge = pair.server.connection.recv_sequence().edge;
    let bytes = pattern(60_000);
    assert_eq!(pair.write(Which::Client, &bytes), bytes.len());
    pair.run_until_quiet();
    assert_eq!(pair.server.connection.unread(), 60_000, "RFC 9293 3.8.6: nothing was taken back");
    assert_eq!(pair.server.connection.recv_sequence().edge, edge);
    let now = pair.now;
    pair.server.drain(now);
    pair.server.reads = true;
    pair.write(Which::Client, &bytes);
    for _ in 0..1_000 {
        pair.run_for(std::time::Duration::from_millis(100));
        let window = pair.server.connection.recv_sequence().wnd();
        assert!(
            window <= most.max(edge.offset_from(pair.server.connection.recv_sequence().nxt)),
            "{window}"
        );
        if pair.server.received.len() == 120_000 {
            break;
        }
    }
    assert!(pair.server.received[60_000..] == bytes);
    assert!(pair.server.connection.recv_sequence().wnd() <= most);
}
