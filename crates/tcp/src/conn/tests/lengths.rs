//! The time for which a segment may be: what the window, the MSS and its own options leave.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_wire::tcp::{OptionOrder, TcpHeader};

use super::pair::{Flying, Pair, Which, fixed, pattern};
use crate::{Tunables, Verdict};

/// Everything that one side sends now.
fn burst(pair: &mut Pair, from: Which) -> Vec<Flying> {
    core::iter::from_fn(|| pair.poll(from)).collect()
}

#[test]
fn a_retransmission_is_not_filled_up_beyond_the_window() {
    let mut pair = Pair::established(&fixed(1_000, 256 << 10));
    pair.write(Which::Client, &pattern(1_000));
    assert_eq!(burst(&mut pair, Which::Client).len(), 1, "the window, less than a segment");
    pair.write(Which::Client, &pattern(400));
    pair.now = pair.now + Duration::from_secs(2);
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.on_deadline(cx));
    let again = burst(&mut pair, Which::Client);
    assert_eq!(again.iter().map(|flying| flying.text.len()).collect::<Vec<_>>(), [1_000]);
}

#[test]
fn text_and_sack_fit_into_one_packet_or_go_in_two() {
    for timestamps in [false, true] {
        let mut pair = Pair::established(&Tunables { timestamps, ..Tunables::default() });
        pair.write(Which::Client, &pattern(5_000));
        let now = pair.now;
        for flying in burst(&mut pair, Which::Client).iter().skip(1) {
            assert_eq!(pair.server.take(now, flying), Verdict::Accepted);
        }
        pair.write(Which::Server, &pattern(5_000));
        let sent = burst(&mut pair, Which::Server);
        let len = |flying: &Flying| {
            flying.header.header_len(OptionOrder::Linux) - TcpHeader::LEN + flying.text.len()
        };
        assert!(sent.iter().all(|flying| len(flying) <= 1_460), "timestamps {timestamps}");
        assert!(sent.iter().any(|flying| flying.text.len() >= 1_448), "and none is wasted");
        let named = sent.iter().filter(|flying| !flying.header.options.sack.is_empty());
        assert!(named.count() >= 2, "the gap is named for each segment that showed it");
    }
}

#[test]
fn ack_after_window_probe_lies_where_the_peer_accepts_it() {
    let mut pair = Pair::established(&fixed(1_000, 256 << 10));
    // The server's window closes: the client's text is taken and not read.
    pair.write(Which::Client, &pattern(1_400));
    let now = pair.now;
    for flying in burst(&mut pair, Which::Client) {
        assert_eq!(pair.server.take(now, &flying), Verdict::Accepted);
    }
    pair.now = pair.now + Duration::from_secs(2);
    let now = pair.now;
    pair.server.with(now, |connection, cx| connection.on_deadline(cx));
    for flying in burst(&mut pair, Which::Server) {
        assert_eq!(pair.client.take(now, &flying), Verdict::Accepted);
    }
    // The client probes; then it acknowledges what the server sends. Both cross.
    let deadline = pair.client.connection.next_deadline();
    pair.now = deadline;
    pair.client.with(deadline, |connection, cx| connection.on_deadline(cx));
    let probe = burst(&mut pair, Which::Client);
    assert_eq!((probe.len(), probe[0].text.len()), (1, 1), "a probe of one byte");
    pair.write(Which::Server, &pattern(1_000));
    for flying in burst(&mut pair, Which::Server) {
        assert_eq!(pair.client.take(deadline, &flying), Verdict::Accepted);
    }
    pair.client
        .with(deadline + Duration::from_secs(1), |connection, cx| connection.on_deadline(cx));
    let ack = burst(&mut pair, Which::Client).pop().expect("an acknowledgment");
    assert!(ack.text.is_empty());
    assert_eq!(pair.server.take(deadline, &ack), Verdict::Accepted);
    assert_eq!(pair.server.connection.send_queued(), 0, "it acknowledged everything");
}

#[test]
fn an_acknowledgment_that_was_sent_before_ours_arrived_is_heard() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.write(Which::Server, b"!");
    let probe = pair.poll(Which::Server).expect("one byte");
    pair.write(Which::Client, &pattern(3_000));
    for flying in burst(&mut pair, Which::Client) {
        assert_eq!(pair.server.take(now, &flying), Verdict::Accepted);
    }
    let mut ack = pair.poll(Which::Server).expect("an acknowledgment");
    // As a server sends it that believes the client's window to be closed.
    ack.header.seq = probe.header.seq;
    assert_eq!(pair.client.take(now, &probe), Verdict::Accepted);
    assert_eq!(pair.client.take(now, &ack), Verdict::Accepted);
    assert!(pair.client.connection.send_queued() < 3_000, "it acknowledged text");
}

#[test]
fn a_handshake_ends_without_a_window_update() {
    let mut pair = Pair::established(&Tunables::default());
    for which in [Which::Client, Which::Server] {
        assert!(pair.poll(which).is_none(), "{which:?} has nothing to say");
    }
}

#[test]
fn unscaled_windows_stay_within_their_field() {
    let tunables = Tunables { window_scaling: false, ..Tunables::default() };
    assert!(tunables.recv_buffer > 2 * 65_535);
    let mut pair = Pair::established(&tunables);
    for which in [Which::Client, Which::Server] {
        assert!(pair.poll(which).is_none(), "{which:?} has nothing to say");
        assert_eq!(pair.side(which).connection.recv_sequence().wnd(), 65_535);
    }
    pair.write(Which::Client, &pattern(100));
    pair.run_until_quiet();
    assert_eq!(pair.server.received.len(), 100);
    assert!(pair.server.connection.recv_sequence().wnd() <= 65_535);
}
