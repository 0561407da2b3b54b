//! Reports of routers, true and forged.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{Address, Mss, SeqNum};

use super::pair::{Pair, Which, pattern};
use crate::conn::{ActiveOpen, Connection, IcmpVerdict, Signals, State};
use crate::{CloseReason, Context, Counters, Tunables};
use whimbrel_base::packet::{IcmpError, Slices, SoftError};

const ISS: u32 = u32::MAX;

/// A connection whose SYN is out, told of `error` about the segment at `seq`.
fn opening(seq: u32, error: IcmpError) -> (Connection, IcmpVerdict, Counters) {
    opening_under(&Tunables::default(), seq, error)
}

fn opening_under(
    tunables: &Tunables,
    seq: u32,
    error: IcmpError,
) -> (Connection, IcmpVerdict, Counters) {
    let mut cx = Context::new(Instant::ZERO, tunables.clone());
    let open = ActiveOpen {
        remote: Address::from_v4_bytes([10, 0, 0, 2]),
        remote_port: 80,
        local_port: 4_000,
        local_index: 0,
        iss: SeqNum::new(ISS),
        timestamp_offset: 0,
        mss: Mss::new(1460),
    };
    let mut connection = Connection::connect(&mut cx, open);
    connection.poll_transmit(&mut cx, 0, &mut Slices::new()).expect("a SYN");
    let verdict = connection.on_icmp(&mut cx, SeqNum::new(seq), error);
    (connection, verdict, cx.env.counters)
}

fn tell(pair: &mut Pair, ahead: u32, error: IcmpError) -> IcmpVerdict {
    let seq = pair.client.connection.send_sequence().una + ahead;
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.on_icmp(cx, seq, error))
}

#[test]
fn a_hard_error_ends_an_attempt_to_open() {
    for (error, reason) in [
        (IcmpError::Refused, CloseReason::Refused),
        (IcmpError::Prohibited, CloseReason::Unreachable),
    ] {
        let (mut connection, verdict, counters) = opening(ISS, error);
        assert_eq!(verdict, IcmpVerdict::Closed(reason));
        assert_eq!((connection.state(), connection.closed()), (State::Closed, Some(reason)));
        assert!(connection.signals_mut().take(Signals::CLOSED));
        assert_eq!((counters.icmp_aborts, counters.attempt_fails), (1, 1));
        assert_eq!(connection.next_deadline(), Instant::NEVER);
    }
}

#[test]
fn a_soft_error_is_noted_and_the_attempt_goes_on() {
    let error = SoftError::HostUnreachable;
    let (connection, verdict, _) = opening(ISS, IcmpError::Soft(error));
    assert_eq!(verdict, IcmpVerdict::Noted);
    assert_eq!((connection.state(), connection.soft_error()), (State::SynSent, Some(error)));
}

#[test]
fn an_error_about_what_is_not_in_flight_is_discarded() {
    for seq in [ISS.wrapping_sub(1), ISS.wrapping_add(1), ISS.wrapping_add(2), ISS ^ (1 << 31)] {
        let (connection, verdict, counters) = opening(seq, IcmpError::Refused);
        assert_eq!(verdict, IcmpVerdict::OutOfWindow, "{seq}");
        assert_eq!(connection.state(), State::SynSent);
        assert_eq!(counters.icmp_out_of_window, 1);
    }
}

#[test]
fn synchronized_connection_outlives_all_icmp_errors() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, b"text");
    pair.run_for(Duration::from_millis(5));
    for (error, noted) in [
        (IcmpError::Refused, SoftError::Refused),
        (IcmpError::NoTcp, SoftError::NoTcp),
        (IcmpError::Prohibited, SoftError::Prohibited),
    ] {
        assert_eq!(tell(&mut pair, 0, error), IcmpVerdict::Noted);
        assert_eq!(pair.client.connection.state(), State::Established);
        assert_eq!(pair.client.connection.soft_error(), Some(noted));
        assert_eq!(pair.client.connection.take_soft_error(), Some(noted));
        assert_eq!(pair.client.connection.soft_error(), None);
    }
    assert_eq!(tell(&mut pair, 0, IcmpError::Refused), IcmpVerdict::Noted);
    pair.run_until_quiet();
    assert_eq!(pair.server.received, b"text");
    assert_eq!(pair.client.connection.soft_error(), None);
}

#[test]
fn segments_too_big_are_cut_anew_without_congestion_response() {
    for max_text in [0, 65_000] {
        let mut pair = Pair::established(&Tunables::default());
        pair.max_text = max_text;
        pair.lose = |_, flying| flying.text.len() > 988 * usize::from(flying.segs);
        let bytes = pattern(14_000);
        pair.write(Which::Client, &bytes);
        pair.run_for(Duration::from_millis(5));
        let cwnd = pair.client.connection.cwnd();
        let error = IcmpError::TooBig { mtu: 1_040 };
        assert_eq!(tell(&mut pair, 0, error), IcmpVerdict::Lowered);
        // Each lost segment is reported, and the answer to the first answers them all.
        assert_eq!(tell(&mut pair, 1_448, error), IcmpVerdict::Ignored);
        assert_eq!((pair.client.connection.mss(), pair.client.connection.cwnd()), (988, cwnd));
        pair.run_for(Duration::from_millis(100));
        assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
        assert_eq!(
            (pair.client.cx.counters.timeouts, pair.client.cx.counters.fast_retrans),
            (0, 0)
        );
        assert!(pair.client.connection.cwnd() >= cwnd);
        assert_eq!(pair.client.cx.counters.path_mtu_lowered, 1);
    }
}

#[test]
fn the_path_is_never_taken_to_be_wider_nor_absurdly_narrow() {
    let mut pair = Pair::established(&Tunables::default());
    let nothing_sent = tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 });
    assert_eq!(nothing_sent, IcmpVerdict::OutOfWindow);
    pair.write(Which::Client, &pattern(500));
    assert!(pair.poll(Which::Client).is_some(), "it is lost");
    let mss = pair.client.connection.mss();
    for mtu in [1_500, 9_000, u16::MAX] {
        assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu }), IcmpVerdict::Ignored);
        assert_eq!(pair.client.connection.mss(), mss);
    }
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 0 }), IcmpVerdict::Lowered);
    assert_eq!(pair.client.connection.mss(), 500);
    pair.run_until_quiet();
    assert_eq!(pair.server.received, pattern(500));
}

#[test]
fn below_least_path_mtu_full_segments_go_again_once() {
    for said in [68, 296, 551] {
        let mut pair = Pair::established(&Tunables::default());
        let bytes = pattern(14_000);
        // All of the first flight is too large for the link, and what follows may be fragmented.
        pair.lose = |_, _| true;
        pair.write(Which::Client, &bytes);
        pair.run_for(Duration::from_millis(5));
        assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 552 }), IcmpVerdict::Lowered);
        pair.run_for(Duration::from_millis(5));
        let error = IcmpError::TooBig { mtu: said };
        assert_eq!(tell(&mut pair, 0, error), IcmpVerdict::Lowered, "{said}");
        assert_eq!(tell(&mut pair, 500, error), IcmpVerdict::Ignored, "{said}");
        assert_eq!(pair.client.connection.mss(), 500);
        pair.lose = |_, _| false;
        pair.run_until_quiet();
        assert!(pair.server.received == bytes, "{} bytes", pair.server.received.len());
        let counters = &pair.client.cx.counters;
        assert_eq!((counters.timeouts, counters.path_mtu_lowered), (0, 2), "{said}");
    }
}

/// A client of which full segments were acknowledged and one is in flight, which `arrives` or not.
fn flowing(tunables: &Tunables, arrives: bool) -> Pair {
    let mut pair = Pair::established(tunables);
    pair.write(Which::Client, &pattern(1_448));
    pair.run_for(Duration::from_millis(100));
    pair.write(Which::Client, &pattern(1_448));
    if arrives {
        pair.run_for(Duration::from_millis(1));
    } else {
        assert!(pair.poll(Which::Client).is_some(), "it is lost");
    }
    pair
}

#[test]
fn that_what_arrives_is_too_big_is_held_and_forgotten() {
    let mut pair = flowing(&Tunables::default(), true);
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 }), IcmpVerdict::Held);
    assert_eq!(pair.client.connection.held_path_mtu(), Some(600));
    pair.run_until_quiet();
    let (connection, counters) = (&pair.client.connection, &pair.client.cx.counters);
    assert_eq!((connection.mss(), connection.held_path_mtu()), (1_448, None));
    assert_eq!((counters.path_mtu_held, counters.path_mtu_refuted), (1, 1));
    assert_eq!((counters.path_mtu_lowered, counters.timeouts), (0, 0));
}

#[test]
fn what_times_out_was_too_big() {
    let mut pair = flowing(&Tunables::default(), false);
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 }), IcmpVerdict::Held);
    pair.lose = |_, flying| flying.text.len() > 548;
    pair.run_until_quiet();
    let (connection, counters) = (&pair.client.connection, &pair.client.cx.counters);
    assert_eq!((connection.mss(), connection.held_path_mtu()), (548, None));
    assert_eq!((counters.path_mtu_held, counters.path_mtu_refuted), (1, 0));
    assert_eq!((counters.path_mtu_lowered, counters.timeouts), (1, 1));
    assert_eq!(pair.server.received.len(), 2 * 1_448);
    // What was believed counts as acknowledged: less must time out again.
    pair.lose = |_, _| false;
    pair.write(Which::Client, &pattern(1_448));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 560 }), IcmpVerdict::Held);
}

#[test]
fn report_on_timed_out_or_largest_segment_is_believed_at_once() {
    let mut pair = flowing(&Tunables::default(), false);
    pair.lose = |_, _| true;
    while pair.client.cx.counters.timeouts == 0 {
        pair.run_for(Duration::from_millis(10));
    }
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 }), IcmpVerdict::Lowered);

    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(500));
    pair.run_for(Duration::from_millis(100));
    pair.write(Which::Client, &pattern(1_448));
    assert!(pair.poll(Which::Client).is_some(), "it is lost");
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 551 }), IcmpVerdict::Held);
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 552 }), IcmpVerdict::Lowered);
}

#[test]
fn a_link_that_carries_all_in_flight_refused_none_of_it() {
    let mut pair = Pair::established(&Tunables::default());
    pair.write(Which::Client, &pattern(500));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 552 }), IcmpVerdict::Ignored);
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 551 }), IcmpVerdict::Lowered);
}

#[test]
fn where_routers_are_believed_at_once_nothing_is_held() {
    let mut tunables = Tunables::default();
    tunables.set_by_name("icmp.frag_needed", "immediate").expect("it is one");
    let mut pair = flowing(&tunables, true);
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 }), IcmpVerdict::Lowered);
    assert_eq!(pair.client.connection.held_path_mtu(), None);
    pair.run_until_quiet();
}

#[test]
fn a_report_about_a_fin_leaves_with_it() {
    let mut pair = flowing(&Tunables::default(), true);
    pair.run_until_quiet();
    let now = pair.now;
    pair.client.with(now, |connection, cx| connection.close(cx));
    assert!(pair.poll(Which::Client).is_some(), "it is lost");
    assert_eq!(tell(&mut pair, 0, IcmpError::TooBig { mtu: 600 }), IcmpVerdict::Ignored);
    assert_eq!(pair.client.connection.held_path_mtu(), None);
}

#[test]
fn a_closed_connection_hears_nothing() {
    let (mut connection, ..) = opening(ISS, IcmpError::Refused);
    let mut cx = Context::new(Instant::ZERO, Tunables::default());
    for error in [IcmpError::Prohibited, IcmpError::TooBig { mtu: 600 }] {
        let verdict = connection.on_icmp(&mut cx, SeqNum::new(ISS), error);
        assert_eq!(verdict, IcmpVerdict::Ignored);
    }
    assert_eq!(connection.closed(), Some(CloseReason::Refused));
}

#[test]
fn prohibited_and_time_exceeded_follow_the_rules() {
    let expired = IcmpError::Soft(SoftError::TimeExceeded);
    let in_parts = IcmpError::Soft(SoftError::FragmentsLost);
    let no_way = IcmpError::Soft(SoftError::HostUnreachable);
    let closed = IcmpVerdict::Closed;
    for (name, value, error, expected) in [
        ("icmp.prohibited", "unreachable", IcmpError::Prohibited, closed(CloseReason::Unreachable)),
        ("icmp.prohibited", "refused", IcmpError::Prohibited, closed(CloseReason::Refused)),
        ("icmp.time_exceeded", "soft", expired, IcmpVerdict::Noted),
        ("icmp.time_exceeded", "hard", expired, closed(CloseReason::Unreachable)),
        ("icmp.time_exceeded", "hard", in_parts, IcmpVerdict::Noted),
        ("icmp.unreachable", "hard", in_parts, IcmpVerdict::Noted),
        ("icmp.unreachable", "soft", no_way, IcmpVerdict::Noted),
        ("icmp.unreachable", "hard", no_way, closed(CloseReason::Unreachable)),
    ] {
        let mut rules = Tunables::default();
        rules.set_by_name(name, value).expect("it is a tunable");
        assert_eq!(opening_under(&rules, ISS, error).1, expected, "{name} = {value}");
        // An open connection outlives it.
        let mut pair = Pair::established(&rules);
        pair.write(Which::Client, &pattern(100));
        pair.poll(Which::Client).expect("text");
        assert_eq!(tell(&mut pair, 0, error), IcmpVerdict::Noted, "{name} = {value}");
        // And so does an attempt, where none is to end it.
        rules.icmp_aborts = false;
        assert_eq!(opening_under(&rules, ISS, error).1, IcmpVerdict::Noted, "{name} = {value}");
    }
}
