//! Every way to close.

use std::time::Duration;

use super::pair::{Pair, Which, pattern};
use crate::conn::State;
use crate::{CloseReason, Tunables};

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
    // The FIN's acknowledgment is the waiting record's to send; here nobody sent it.
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
    assert_eq!(pair.client.counters.abort_on_data, 1);
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
    assert_eq!(pair.client.counters.abort_on_close, 1);
    assert_eq!(pair.client.pool.lent(), 0);
}

#[test]
fn fin_wait_2_without_an_owner_ends_by_itself() {
    let mut pair = Pair::established(&Tunables::default());
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(59));
    assert_eq!(pair.client.connection.state(), State::FinWait2);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.connection.state(), State::Closed);
    assert_eq!(pair.client.counters.abort_on_linger, 1);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut pair = Pair::established(&Tunables::default());
    pair.lose = |number, flying| flying.header.flags.is_fin() && number < 5;
    pair.close(Which::Client);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
    assert!(pair.client.counters.timeouts >= 1);
}
