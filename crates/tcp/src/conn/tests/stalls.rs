//! Nothing may stand still: closed windows on both sides, numbers that lie far behind, silence
//! that is answered.

use std::time::Duration;

use whimbrel_wire::tcp::TcpFlags;

use super::pair::{Flying, Pair, Which, pattern};
use crate::conn::State;
use crate::{CloseReason, DropReason, Tunables, Verdict};

/// Both ends as they would be after the client sent 2^30 octets more without a loss.
fn skip_a_gigabyte(pair: &mut Pair) {
    const FAR: u32 = 1 << 30;
    let (client, server) = (&mut pair.client.connection, &mut pair.server.connection);
    for number in [&mut client.snd.una, &mut client.snd.nxt, &mut client.snd.max] {
        *number += FAR;
    }
    client.snd.wl2 += FAR;
    for number in [&mut server.rcv.nxt, &mut server.rcv.edge, &mut server.rcv.last_ack] {
        *number += FAR;
    }
    server.snd.wl1 += FAR;
}

/// The client sends gigabytes in full segments.
fn send_gigabytes(pair: &mut Pair) {
    let mss = usize::from(pair.client.connection.mss());
    for _ in 0..3 {
        skip_a_gigabyte(pair);
        assert_eq!(pair.write(Which::Client, &pattern(mss)), mss);
        pair.run_until_quiet();
    }
    pair.server.received.clear();
}

#[test]
fn two_hosts_that_probe_each_other_hear_the_answers() {
    let tunables = Tunables { recv_buffer: 4_000, send_buffer: 10_000, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let octets = pattern(10_000);
    for which in [Which::Client, Which::Server] {
        pair.side(which).reads = false;
        assert_eq!(pair.write(which, &octets), octets.len());
    }
    pair.run_for(Duration::from_secs(30));
    // The server reads again; the client never does.
    let now = pair.now;
    pair.server.reads = true;
    pair.server.drain(now);
    pair.run_for(Duration::from_secs(120));
    assert!(pair.server.received == octets, "{} octets", pair.server.received.len());
    assert_eq!(pair.client.connection.send_queued(), 0, "and all is acknowledged");
}

/// Both time out, and what they send crosses on the wire.
fn cross(pair: &mut Pair) -> [Flying; 2] {
    let both = [Which::Client, Which::Server];
    let due = both.map(|which| pair.side(which).connection.next_deadline());
    let now = due[0].max(due[1]);
    pair.now = now;
    let sent = both.map(|which| {
        pair.side(which).with(now, |connection, cx| connection.on_deadline(cx));
        pair.poll(which).expect("something waits")
    });
    for (which, flying) in both.into_iter().zip(&sent) {
        assert_eq!(pair.side(which.other()).take(now, flying), Verdict::Accepted);
    }
    sent
}

#[test]
fn two_hosts_that_take_each_others_probes_hear_of_it() {
    // In units of 8 octets one is never announced, and taken all the same.
    let tunables = Tunables { recv_buffer: 4_001, send_buffer: 10_000, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    let octets = pattern(10_000);
    for which in [Which::Client, Which::Server] {
        pair.side(which).reads = false;
        assert_eq!(pair.write(which, &octets), octets.len());
    }
    pair.run_for(Duration::from_millis(150));
    // What fits the window first, then a probe, each from both at once.
    for len in [1_104, 1] {
        for flying in cross(&mut pair) {
            assert_eq!(flying.text.len(), len);
        }
        pair.run_for(Duration::from_millis(50));
    }
    for which in [Which::Client, Which::Server] {
        let now = pair.now;
        let side = pair.side(which);
        assert_eq!(side.connection.unread(), 4_001);
        side.reads = true;
        side.drain(now);
    }
    pair.run_for(Duration::from_secs(120));
    for side in [&pair.client, &pair.server] {
        assert!(side.received == octets, "{} octets", side.received.len());
        assert_eq!(side.connection.send_queued(), 0);
    }
}

#[test]
fn a_reset_while_a_closed_window_is_probed_is_acceptable() {
    let tunables = Tunables { recv_buffer: 4_000, send_buffer: 10_000, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.server.reads = false;
    pair.write(Which::Client, &pattern(10_000));
    pair.run_for(Duration::from_secs(30));
    let mut flying = pair.bare(Which::Client);
    let now = pair.now;
    let reset = pair.client.with(now, |connection, cx| connection.abort(cx)).expect("a reset");
    (flying.header.seq, flying.header.flags) = (reset.seq, reset.flags);
    assert_eq!(pair.server.take(now, &flying), Verdict::Closed(CloseReason::Reset));
}

#[test]
fn a_small_write_after_gigabytes_in_full_segments_leaves_at_once() {
    let mut pair = Pair::established(&Tunables::default());
    send_gigabytes(&mut pair);
    pair.write(Which::Client, b"small");
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.server.received, b"small");
}

#[test]
fn a_loss_after_gigabytes_is_mended_within_a_round_trip() {
    let mut pair = Pair::established(&Tunables::default());
    send_gigabytes(&mut pair);
    let octets = pattern(14_600);
    pair.write(Which::Client, &octets);
    pair.poll(Which::Client).expect("a segment that nobody receives");
    pair.run_for(Duration::from_millis(150));
    assert!(pair.server.received == octets, "{} octets", pair.server.received.len());
    assert_eq!((pair.client.counters.fast_retrans, pair.client.counters.timeouts), (1, 0));
}

#[test]
fn keep_alive_lets_a_connection_live_that_the_peer_half_closed() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.start_keep_alive(cx));
    pair.server.with(now, |connection, cx| connection.shutdown(cx));
    pair.run_for(Duration::from_secs(7_200 + 30 * 75));
    assert_eq!(pair.client.connection.state(), State::CloseWait);
    assert_eq!(pair.client.counters.keep_alives, 1, "the peer answered the first");
}

#[test]
fn a_fin_behind_text_that_is_held_already_is_not_lost_with_it() {
    let mut pair = Pair::established(&Tunables::default());
    let start = pair.server.connection.recv_sequence().nxt;
    let now = pair.now;
    let mut flying = pair.bare(Which::Client);
    flying.header.flags = TcpFlags::ACK;
    flying.header.seq = start + 100;
    flying.text = pattern(200)[100..].to_vec();
    assert_eq!(pair.server.take(now, &flying), Verdict::Accepted);
    assert_eq!(pair.server.take(now, &flying), Verdict::Drop(DropReason::OldData));
    flying.header.flags = TcpFlags::ACK | TcpFlags::FIN;
    assert_eq!(pair.server.take(now, &flying), Verdict::Accepted);
    flying.header.flags = TcpFlags::ACK;
    flying.header.seq = start;
    flying.text = pattern(100);
    assert_eq!(pair.server.take(now, &flying), Verdict::Accepted);
    assert_eq!(pair.server.connection.state(), State::CloseWait);
}
