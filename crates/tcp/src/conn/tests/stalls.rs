//! Nothing may stand still: closed windows on both sides, numbers that lie far behind, silence
//! that is answered.

use std::time::Duration;

use whimbrel_wire::WindowSize;
use whimbrel_wire::tcp::TcpFlags;

use super::pair::{Flying, Pair, Which, fixed, pattern};
use crate::conn::State;
use crate::{CloseReason, Counters, DropReason, Tunables, Verdict};

/// Both ends as they would be after the client sent 2^30 bytes more without a loss.
fn skip_a_gigabyte(pair: &mut Pair) {
    const FAR: u32 = 1 << 30;
    let (client, server) = (&mut pair.client.connection, &mut pair.server.connection);
    client.transfer.tcb.sender.skip(FAR, 0);
    server.transfer.tcb.receiver.skip(FAR);
    server.transfer.tcb.sender.skip(0, FAR);
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
    let tunables = fixed(4_000, 10_000);
    let mut pair = Pair::established(&tunables);
    let bytes = pattern(10_000);
    for which in [Which::Client, Which::Server] {
        pair.side(which).reads = false;
        assert_eq!(pair.write(which, &bytes), bytes.len());
    }
    pair.run_for(Duration::from_secs(30));
    // The server reads again; the client never does.
    let now = pair.now;
    pair.server.reads = true;
    pair.server.drain(now);
    pair.run_for(Duration::from_secs(120));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
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
    // In units of 8 bytes one is never announced, and taken all the same.
    let (recv_buffer_max, recv_auto) = (256 << 10, false);
    let tunables = Tunables { recv_buffer_max, recv_auto, ..fixed(4_001, 10_000) };
    let mut pair = Pair::established(&tunables);
    let bytes = pattern(10_000);
    for which in [Which::Client, Which::Server] {
        pair.side(which).reads = false;
        assert_eq!(pair.write(which, &bytes), bytes.len());
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
        assert!(side.received == bytes, "{} bytes", side.received.len());
        assert_eq!(side.connection.send_queued(), 0);
    }
}

#[test]
fn a_reset_while_a_closed_window_is_probed_is_acceptable() {
    let tunables = fixed(4_000, 10_000);
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
fn small_write_after_gigabytes_of_full_segments_leaves_at_once() {
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
    let bytes = pattern(14_600);
    pair.write(Which::Client, &bytes);
    pair.poll(Which::Client).expect("a segment that does not arrive");
    pair.run_for(Duration::from_millis(150));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
    assert_eq!((pair.client.cx.counters.fast_retrans, pair.client.cx.counters.timeouts), (1, 0));
}

#[test]
fn keep_alive_lets_a_connection_live_that_the_peer_half_closed() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.start_keep_alive(cx));
    pair.server.with(now, |connection, cx| connection.shutdown(cx));
    pair.run_for(Duration::from_secs(7_200 + 30 * 75));
    assert_eq!(pair.client.connection.state(), State::CloseWait);
    assert_eq!(pair.client.cx.counters.keep_alives, 1, "the peer answered the first");
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

/// The client's flight is lost, and the server answers every segment with a window of `wnd`
/// bytes from where it stands.
fn answer_with_a_window_of(pair: &mut Pair, wnd: u32, limit: Duration) {
    let end = pair.now + limit;
    while pair.now < end {
        while pair.poll(Which::Client).is_some() {
            let mut answer = pair.bare(Which::Server);
            answer.header.window =
                WindowSize::new(wnd).to_raw(pair.client.connection.transfer.tcb.sender.scale());
            let now = pair.now;
            assert_eq!(pair.client.take(now, &answer), Verdict::Accepted);
        }
        pair.now = pair.client.connection.next_deadline();
        let now = pair.now;
        pair.client.with(now, |connection, cx| connection.on_deadline(cx));
    }
}

#[test]
fn connection_waits_for_peer_that_shrank_window_and_answers() {
    let mut pair = Pair::established(&Tunables::default());
    let bytes = pattern(5_000);
    pair.write(Which::Client, &bytes);
    answer_with_a_window_of(&mut pair, 0, Duration::from_secs(24 * 3600));
    assert_eq!(pair.client.connection.state(), State::Established);
    let Counters { timeouts, window_probes, .. } = pair.client.cx.counters;
    assert_eq!(timeouts, 2, "what follows are probes");
    assert!((1_440..1_460).contains(&window_probes), "{window_probes}: one each minute");
    let opened = pair.bare(Which::Server);
    let now = pair.now;
    assert_eq!(pair.client.take(now, &opened), Verdict::Accepted);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
}

#[test]
fn connection_times_out_if_peer_shrank_window_and_is_silent() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(5_000));
    answer_with_a_window_of(&mut pair, 0, Duration::from_secs(3600));
    pair.lose = |_, _| true;
    pair.run_for(Duration::from_secs(20 * 60));
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut));
}

#[test]
fn only_text_within_a_shrunk_window_is_sent_again() {
    let tunables = Tunables { window_scaling: false, loss_probe: false, ..Tunables::default() };
    let mut pair = Pair::established(&tunables);
    pair.write(Which::Client, &pattern(5_000));
    answer_with_a_window_of(&mut pair, 960, Duration::from_millis(1));
    let una = pair.client.connection.send_sequence().una;
    let again = pair.poll(Which::Client).expect("a retransmission");
    assert_eq!((again.header.seq, again.text.len()), (una, 1_448), "the first one is whole");
    answer_with_a_window_of(&mut pair, 960, Duration::from_millis(1));
    let again = pair.poll(Which::Client).expect("a retransmission");
    assert_eq!((again.header.seq, again.text.len()), (una, 960));
    assert!(pair.poll(Which::Client).is_none(), "nothing else lies in the window");
}

#[test]
fn rounded_down_window_field_does_not_hold_text_back() {
    // In units of 8 bytes the server's last 7 bytes of window look like none.
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, b"seven..");
    let lost = pair.poll(Which::Client).expect("text");
    pair.server.connection.transfer.tcb.receiver.set_first_window(WindowSize::new(7));
    answer_with_a_window_of(&mut pair, 0, Duration::from_secs(2));
    let probe = pair.poll(Which::Client).expect("a probe");
    assert_eq!((probe.header.seq, &probe.text), (lost.header.seq, &lost.text));
    let now = pair.now;
    assert_eq!(pair.server.take(now, &probe), Verdict::Accepted);
    assert_eq!(pair.server.connection.unread(), 7);
}

#[test]
fn orphan_with_closed_window_ends_though_probes_are_answered() {
    let tunables = fixed(4_000, 10_000);
    let mut pair = Pair::established(&tunables);
    pair.server.reads = false;
    pair.write(Which::Client, &pattern(10_000));
    pair.run_for(Duration::from_secs(3_600));
    assert_eq!(pair.client.connection.state(), State::Established, "its owner may wait");
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(61));
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut));
    assert_eq!(pair.client.cx.counters.abort_on_timeout, 1);
}

#[test]
fn orphan_has_time_to_deliver_into_a_closed_window() {
    let tunables = fixed(4_000, 10_000);
    let mut pair = Pair::established(&tunables);
    pair.server.reads = false;
    let bytes = pattern(10_000);
    pair.write(Which::Client, &bytes);
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(60));
    let now = pair.now;
    pair.server.reads = true;
    pair.server.drain(now);
    pair.run_for(Duration::from_secs(60));
    assert!(pair.server.received == bytes && pair.server.ended);
    assert_eq!(pair.client.cx.counters.abort_on_timeout, 0);
}

/// A client whose path takes so long in each direction, which closed with text that is lost, as all else.
fn orphan_behind_a_delay_of(delay: Duration) -> Pair {
    let mut pair = Pair::established(&Tunables::default());
    pair.delay = delay;
    for _ in 0..8 {
        pair.write(Which::Client, &pattern(5_000));
        pair.run_for(Duration::from_secs(60));
    }
    pair.lose = |_, _| true;
    pair.write(Which::Client, b"last words");
    pair.close(Which::Client);
    pair
}

#[test]
fn orphan_on_a_slow_path_ends_as_soon_as_on_a_fast_one() {
    // By their number alone, nine time-outs, the slow ones would be held for more than 400 s.
    for (delay, seconds) in [(0, 110), (4, 230), (20, 230)] {
        let mut pair = orphan_behind_a_delay_of(Duration::from_secs(delay));
        let before = pair.client.cx.counters.timeouts;
        pair.run_for(Duration::from_secs(102));
        assert_eq!(pair.client.connection.closed(), None, "it is given time: {delay} s");
        pair.run_for(Duration::from_secs(seconds - 102));
        let counters = &pair.client.cx.counters;
        assert_eq!(pair.client.connection.closed(), Some(CloseReason::TimedOut), "{delay} s");
        assert_eq!(counters.abort_on_timeout, 1);
        let timeouts = counters.timeouts - before;
        assert!(timeouts > 0, "{delay} s: it was not sent again");
        assert!(delay == 0 || timeouts < 8, "{delay} s: {timeouts}");
    }
}

#[test]
fn orphans_text_is_sent_again_once_however_long_it_waited() {
    let mut pair = Pair::established(&Tunables { retries: 30, ..Tunables::default() });
    pair.lose = |_, _| true;
    pair.write(Which::Client, b"last words");
    pair.run_for(Duration::from_secs(300));
    pair.close(Which::Client);
    assert_eq!(pair.client.connection.closed(), None, "not by the close itself");
    pair.run_for(Duration::from_secs(61));
    assert_eq!(
        pair.client.connection.closed(),
        Some(CloseReason::TimedOut),
        "by the next time-out"
    );
}
