//! Every way to close.

use std::time::Duration;

use whimbrel_wire::RawWindow;
use whimbrel_wire::tcp::{TcpFlags, Timestamps};

use super::pair::{Pair, Which, pattern};
use crate::conn::{Read, State};
use crate::tunables::RstInCloseWait;
use crate::{CloseReason, DropReason, Tunables, Verdict};

fn states(pair: &Pair) -> (State, State) {
    (pair.client.connection.state(), pair.server.connection.state())
}

#[test]
fn the_side_that_closes_first_waits_and_the_other_is_done() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(5_000));
    pair.close(Which::Client);
    pair.run_until_quiet();
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
    assert!(pair.server.ended);
    assert_eq!(pair.server.received, pattern(5_000));
    pair.close(Which::Server);
    pair.run_until_quiet();
    // The FIN's acknowledgment is the waiting record's to send; here it was not sent.
    assert_eq!(pair.client.connection.state(), State::TimeWait);
    assert_eq!(pair.client.connection.closed(), Some(CloseReason::Finished));
}

#[test]
fn both_closing_at_once_cross_in_closing() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    pair.close(Which::Server);
    pair.run_until_quiet();
    assert_eq!(states(&pair), (State::TimeWait, State::TimeWait));
}

#[test]
fn half_closed_streams_still_carry_data_the_other_way() {
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.shutdown(cx));
    pair.run_until_quiet();
    assert!(pair.server.ended);
    pair.write(Which::Server, &pattern(100_000));
    pair.run_until_quiet();
    assert_eq!(pair.client.received, pattern(100_000));
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
}

#[test]
fn data_after_close_is_refused_by_a_reset() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    pair.run_until_quiet();
    pair.write(Which::Server, b"too late");
    pair.run_until_quiet();
    assert_eq!(pair.client.connection.state(), State::Closed);
    assert_eq!(pair.client.cx.counters.abort_on_data, 1);
}

#[test]
fn text_after_full_shutdown_is_refused_or_taken_by_the_rule() {
    for (rule, state) in [("reset", State::Closed), ("take", State::FinWait2)] {
        let mut rules = Tunables::default();
        rules.set_by_name("shutdown.text", rule).expect("it is a tunable");
        let mut pair = Pair::established(&rules);
        pair.client.connection.shut_read();
        // While it may still write it may read, too.
        pair.write(Which::Server, b"in time");
        pair.run_until_quiet();
        assert_eq!(pair.client.connection.state(), State::Established);
        let now = pair.now;
        pair.client.with(now, |connection, cx| connection.shutdown(cx));
        pair.run_until_quiet();
        pair.write(Which::Server, b"too late");
        pair.run_until_quiet();
        assert_eq!(pair.client.connection.state(), state, "{rule}");
        let reset = Some(CloseReason::Reset).filter(|_| state == State::Closed);
        assert_eq!(pair.client.connection.closed(), reset, "{rule}");
        assert_eq!(pair.client.cx.counters.abort_on_data, u64::from(reset.is_some()), "{rule}");
    }
}

#[test]
fn window_closed_with_ack_of_our_fin_is_not_probed() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    let fin = pair.poll(Which::Client).expect("a FIN");
    let mut ack = pair.bare(Which::Server);
    ack.header.ack = fin.header.seq + 1;
    ack.header.window = RawWindow::new(0);
    let now = pair.now;
    assert_eq!(pair.client.take(now, &ack), Verdict::Accepted);
    assert_eq!(pair.client.connection.state(), State::FinWait2);
    let before = pair.client.cx.counters.out_segs;
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.cx.counters.out_segs, before);
}

#[test]
fn a_reset_bears_the_timestamps_of_its_connection() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    pair.run_until_quiet();
    pair.write(Which::Server, b"too late");
    let text = pair.poll(Which::Server).expect("text");
    let now = pair.now;
    let tsval = pair.bare(Which::Client).header.options.timestamps.expect("negotiated").val;
    let verdict = pair.client.take(now, &text);
    let Verdict::Reply(reset, DropReason::DataAfterClose) = verdict else {
        panic!("{verdict:?} is no reset");
    };
    // RFC 7323 3.2: without ACK, TSecr is zero.
    assert_eq!(reset.flags, TcpFlags::RST);
    assert_eq!(reset.timestamps, Some(Timestamps { val: tsval, ecr: 0 }));
    let aborted = pair.server.with(now, |connection, cx| connection.abort(cx)).expect("a reset");
    assert!(aborted.timestamps.is_some_and(|stamps| stamps.ecr != 0));
}

#[test]
fn closing_with_data_unread_resets() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Server, b"unread");
    let flying = pair.poll(Which::Server).expect("data");
    let now = pair.now;
    let _ = pair.client.take(now, &flying);
    let reset = pair.client.with(now, |connection, cx| connection.close(cx));
    assert!(reset.is_some_and(|reset| reset.flags.is_rst()));
    assert_eq!(pair.client.connection.state(), State::Closed);
    assert_eq!(pair.client.cx.counters.abort_on_close, 1);
    assert_eq!(pair.client.cx.pool.lent(), 0);
}

#[test]
fn fin_wait_2_without_an_owner_ends_by_itself() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(59));
    assert_eq!(pair.client.connection.state(), State::FinWait2);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.connection.state(), State::Closed);
    assert_eq!(pair.client.cx.counters.abort_on_linger, 1);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = |number, flying| flying.header.flags.is_fin() && number < 4;
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
    assert!(pair.client.cx.counters.timeouts >= 1);
}

/// The client closed behind the server's FIN; `text` and its own FIN are lost. Then the server's
/// host resets.
fn reset_in_last_ack(text: &[u8]) -> Pair {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Server);
    pair.run_until_quiet();
    let mut reset = pair.bare(Which::Server);
    pair.write(Which::Client, text);
    pair.close(Which::Client);
    while pair.poll(Which::Client).is_some() {}
    assert_eq!(pair.client.connection.state(), State::LastAck);
    reset.header.flags = TcpFlags::RST;
    let now = pair.now;
    assert!(matches!(pair.client.take(now, &reset), Verdict::Closed(_)));
    assert_eq!(pair.client.connection.state(), State::Closed);
    pair
}

#[test]
fn reset_in_last_ack_is_reported_and_earlier_end_stays() {
    for text in [&b"never heard"[..], b""] {
        let mut pair = reset_in_last_ack(text);
        assert_eq!(pair.client.connection.closed(), Some(CloseReason::Reset));
        assert_eq!(pair.client.cx.counters.estab_resets, 0, "it was established no more");
        let now = pair.now;
        let read = pair.client.with(now, |connection, cx| connection.read(cx));
        assert_eq!(read, Read::End);
    }
}

#[test]
fn a_reset_in_closing_is_told() {
    for text in [&b"lost"[..], b""] {
        let mut pair = Pair::established(&Tunables::default());
        pair.write(Which::Client, text);
        pair.close(Which::Client);
        while pair.poll(Which::Client).is_some() {}
        pair.close(Which::Server);
        let now = pair.now;
        let fin = pair.poll(Which::Server).expect("a FIN");
        assert_eq!(pair.client.take(now, &fin), Verdict::Accepted);
        assert_eq!(pair.client.connection.state(), State::Closing);
        let mut reset = pair.bare(Which::Server);
        reset.header.flags = TcpFlags::RST;
        assert_eq!(pair.client.take(now, &reset), Verdict::Closed(CloseReason::Reset));
        assert_eq!(pair.client.cx.counters.estab_resets, 0);
    }
}

#[test]
fn a_reset_in_close_wait_means_what_the_rule_says() {
    for (rst_close_wait, reason) in [
        (RstInCloseWait::Pipe, CloseReason::BrokenPipe),
        (RstInCloseWait::Reset, CloseReason::Reset),
    ] {
        let mut pair = Pair::established(&Tunables { rst_close_wait, ..Tunables::default() });
        pair.close(Which::Server);
        pair.run_until_quiet();
        let mut reset = pair.bare(Which::Server);
        reset.header.flags = TcpFlags::RST;
        let now = pair.now;
        assert_eq!(pair.client.take(now, &reset), Verdict::Closed(reason));
        assert_eq!(pair.client.cx.counters.estab_resets, 1);
    }
}

#[test]
fn repeated_fin_that_acknowledges_ours_counts_and_is_answered() {
    for both_at_once in [true, false] {
        let mut pair = Pair::established(&Tunables::default());
        pair.close(Which::Server);
        let mut fin = pair.poll(Which::Server).expect("a FIN");
        let now = pair.now;
        if both_at_once {
            pair.close(Which::Client);
            while pair.poll(Which::Client).is_some() {}
        }
        assert_eq!(pair.client.take(now, &fin), Verdict::Accepted);
        pair.close(Which::Client);
        while pair.poll(Which::Client).is_some() {}
        let remains = pair.client.connection.remains();
        fin.header.ack = remains.snd_nxt;
        let verdict = pair.client.take(now, &fin);
        let Verdict::Reply(ack, DropReason::OldData) = verdict else {
            panic!("{verdict:?} answers nothing");
        };
        assert_eq!(
            (ack.seq, ack.ack, ack.flags),
            (remains.snd_nxt, remains.rcv_nxt, TcpFlags::ACK)
        );
        let state = if both_at_once { State::TimeWait } else { State::Closed };
        assert_eq!(pair.client.connection.state(), state);
        assert_eq!(pair.client.connection.closed(), Some(CloseReason::Finished));
    }
}
