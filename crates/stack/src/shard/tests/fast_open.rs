//! Fast Open: text in SYNs, cookies, and what is left when a middlebox swallows them.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Key;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::conn::{SocketOptions, State};
use whimbrel_tcp::table::FastOpens;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_tcp::{CloseReason, Counters, Tunables};
use whimbrel_wire::tcp::{FastOpen, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Endpoint, Mss, RawWindow, SeqNum};

use super::hosts::{
    BOTH, DELAY, Hosts, Over, Wire, client_addr, drain, events, host, send, server_addr, server_at,
};
use super::packets::{self, sent, tcp};
use crate::{Event, Handle, ListenerId, Recv, RxFrame, Shard};

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.0 204 No Content\r\n\r\n";

/// A server with Fast Open, and a client that has a cookie of its.
fn acquainted(over: Over) -> (Hosts, ListenerId) {
    acquaint(Hosts::new(), over)
}

fn acquaint(mut hosts: Hosts, over: Over) -> (Hosts, ListenerId) {
    let listener = hosts.listen(over, 16);
    assert!(hosts.server.set_fast_open(listener, 8));
    let (client, rest) = fast(&mut hosts, over, REQUEST);
    assert_eq!(rest, REQUEST.len(), "without a cookie nothing is taken");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a complete connection");
    hosts.client.abort(client);
    hosts.run_until_quiet();
    hosts.server.close(server);
    events(&mut hosts.client);
    events(&mut hosts.server);
    assert!(hosts.client.knows_fast_open_cookie(None, &server_at(over)));
    (hosts, listener)
}

/// Opens fast with `data`; returns how much is left of it.
fn fast(hosts: &mut Hosts, over: Over, data: &'static [u8]) -> (Handle, usize) {
    let mut data = Bytes::from_static(data);
    let options = SocketOptions::default();
    let opened = hosts.client.connect_fast(server_at(over), None, &options, &mut data);
    (opened.expect("a free port"), data.len())
}

fn counts(counters: &Counters) -> [u64; 4] {
    [
        counters.fast_open_active,
        counters.fast_open_active_fail,
        counters.fast_open_passive,
        counters.fast_open_passive_fail,
    ]
}

/// A segment of the client's reaches the server; what it answers.
fn tell(hosts: &mut Hosts, header: &TcpHeader, text: &[u8]) -> Vec<(TcpHeader, Vec<u8>)> {
    packets::tell(&mut hosts.server, hosts.now, client_addr(Over::V4), header, text)
}

fn syn(port: u16, fast_open: Option<FastOpen>) -> TcpHeader {
    TcpHeader {
        src_port: port,
        dst_port: 80,
        seq: SeqNum::new(1_000),
        flags: TcpFlags::SYN,
        window: RawWindow::new(65_535),
        options: TcpOptions {
            mss: Some(Mss::new(1_400)),
            sack_permitted: true,
            fast_open,
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    }
}

/// A server with Fast Open for `pending` at a time, and the cookie that it grants to the client.
fn server_for(pending: u32) -> (Hosts, ListenerId, FastOpen) {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 16);
    hosts.server.set_fast_open(listener, pending);
    let answers = tell(&mut hosts, &syn(999, Some(FastOpen::REQUEST)), &[]);
    let cookie = answers[0].0.options.fast_open.expect("a cookie");
    let reset = TcpHeader {
        seq: SeqNum::new(1_001),
        flags: TcpFlags::RST,
        options: TcpOptions::default(),
        ..syn(999, None)
    };
    assert_eq!(tell(&mut hosts, &reset, &[]), []);
    (hosts, listener, cookie)
}

#[test]
fn syn_text_is_answered_before_handshake_ends() {
    for over in BOTH {
        let (mut hosts, listener) = acquainted(over);
        let (client, rest) = fast(&mut hosts, over, REQUEST);
        assert_eq!(rest, 0);
        hosts.run(DELAY);
        // One way, and the SYN is all that came.
        let server = hosts.server.accept(listener).expect("open at once");
        assert_eq!(hosts.server.state(server), Some(State::SynReceived));
        assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
        assert_eq!(send(&mut hosts.server, server, ANSWER), ANSWER.len());
        assert_eq!(hosts.server.census().fast_opens, 1);
        hosts.run(DELAY);
        assert_eq!(drain(&mut hosts.client, client), (ANSWER.to_vec(), Recv::Pending));
        hosts.run(DELAY);
        assert_eq!(hosts.server.state(server), Some(State::Established));
        assert_eq!(hosts.server.census().fast_opens, 0);
        let snapshots = [(&hosts.client, client), (&hosts.server, server)]
            .map(|(shard, handle)| shard.snapshot(handle).expect("a connection"));
        assert!(
            snapshots
                .iter()
                .all(|it| it.syn_data && !it.early && it.info_counts.total_retrans == 0)
        );
        assert_eq!(counts(hosts.client.counters()), [1, 0, 0, 0]);
        assert_eq!(counts(hosts.server.counters()), [0, 0, 1, 0]);
        assert_eq!(events(&mut hosts.client).first(), Some(&Event::Connected(client)));
        let server_events = events(&mut hosts.server);
        assert!(!server_events.contains(&Event::Connected(server)), "{server_events:?}");
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn listener_without_fast_open_ignores_option_and_text() {
    let (mut hosts, listener, cookie) = server_for(8);
    hosts.server.set_fast_open(listener, 0);
    for (port, option) in [(1, FastOpen::REQUEST), (2, cookie)] {
        let answers = tell(&mut hosts, &syn(port, Some(option)), REQUEST);
        assert_eq!(answers[0].0.ack, SeqNum::new(1_001));
        assert_eq!(answers[0].0.options.fast_open, None);
    }
    assert_eq!(counts(hosts.server.counters()), [0; 4]);
}

#[test]
fn a_host_whose_rules_forbid_it_ignores_the_option() {
    let (mut hosts, _, cookie) = server_for(8);
    hosts.server.set_tunable("net.ipv4.tcp_fastopen", "1").expect("a value");
    let answers = tell(&mut hosts, &syn(2, Some(cookie)), REQUEST);
    assert_eq!((answers[0].0.ack, answers[0].0.options.fast_open), (SeqNum::new(1_001), None));
}

#[test]
fn a_cookie_that_is_not_valid_is_answered_by_one_that_is() {
    let (mut hosts, _, cookie) = server_for(8);
    let forged = FastOpen::from_cookie(&[7; 8]).expect("a cookie");
    let answers = tell(&mut hosts, &syn(1, Some(forged)), REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001));
    assert_eq!(answers[0].0.options.fast_open, Some(cookie));
    assert_eq!(counts(hosts.server.counters()), [0, 0, 0, 1]);
    // An answer has the form of its question.
    let answers = tell(&mut hosts, &syn(2, Some(forged.into_experimental())), REQUEST);
    assert_eq!(answers[0].0.options.fast_open, Some(cookie.into_experimental()));
    let answers = tell(&mut hosts, &syn(3, Some(cookie.into_experimental())), REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
}

#[test]
fn repeated_syn_ack_has_neither_cookie_nor_text() {
    let (mut hosts, listener, cookie) = server_for(8);
    tell(&mut hosts, &syn(1, Some(FastOpen::REQUEST)), &[]);
    tell(&mut hosts, &syn(2, Some(cookie)), REQUEST);
    let server = hosts.server.accept(listener).expect("open at once");
    send(&mut hosts.server, server, ANSWER);
    let early = sent(&mut hosts.server);
    assert_eq!(tcp(&early[0]).1, ANSWER);
    hosts.now = hosts.now + Duration::from_millis(1_100);
    while hosts.server.advance(hosts.now, 64) {}
    let repeated = sent(&mut hosts.server);
    assert_eq!(repeated.len(), 2);
    for packet in repeated {
        let (header, text) = tcp(&packet);
        assert_eq!(header.flags, TcpFlags::SYN_ACK);
        assert_eq!((header.options.fast_open, text.len()), (None, 0));
    }
}

#[test]
fn repeated_syn_repeats_syn_ack_and_keeps_text_once() {
    let (mut hosts, listener, cookie) = server_for(8);
    let first = tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    let acked = SeqNum::new(1_001) + REQUEST.len() as u32;
    assert_eq!((first.len(), first[0].0.ack), (1, acked));
    // As the network repeats it, and as a client does whose SYN was not answered.
    let bare = TcpHeader {
        options: TcpOptions { mss: Some(Mss::new(1_400)), ..TcpOptions::default() },
        ..syn(1, None)
    };
    for (again, text) in [(syn(1, Some(cookie)), REQUEST), (bare, &[])] {
        let answers = tell(&mut hosts, &again, text);
        assert_eq!(answers.len(), 1);
        let header = &answers[0].0;
        assert_eq!(
            (header.flags, header.seq, header.ack),
            (TcpFlags::SYN_ACK, first[0].0.seq, acked)
        );
        assert_eq!(header.options.sack_permitted, !text.is_empty());
    }
    let server = hosts.server.accept(listener).expect("open at once");
    assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
    assert_eq!(hosts.server.accept(listener), None);
}

#[test]
fn beyond_the_limit_syns_are_ordinary_until_a_handshake_is_over() {
    let (mut hosts, _, cookie) = server_for(1);
    let first = tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    assert_eq!(first[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
    for (port, option) in [(2, cookie), (3, FastOpen::REQUEST)] {
        let answers = tell(&mut hosts, &syn(port, Some(option)), REQUEST);
        assert_eq!((answers[0].0.ack, answers[0].0.options.fast_open), (SeqNum::new(1_001), None));
    }
    assert_eq!(hosts.server.counters().fast_open_listen_overflows, 2);
    let third = TcpHeader {
        seq: first[0].0.ack,
        ack: first[0].0.seq + 1,
        flags: TcpFlags::ACK,
        options: TcpOptions::default(),
        ..syn(1, None)
    };
    assert_eq!(tell(&mut hosts, &third, &[]), []);
    let answers = tell(&mut hosts, &syn(4, Some(cookie)), REQUEST);
    assert_eq!(answers[0].0.ack, first[0].0.ack);
}

#[test]
fn early_reset_counts_against_fast_open_limit() {
    let (mut hosts, listener, cookie) = server_for(1);
    let first = tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    let server = hosts.server.accept(listener).expect("open at once");
    let reset = TcpHeader {
        seq: first[0].0.ack,
        flags: TcpFlags::RST,
        options: TcpOptions::default(),
        ..syn(1, None)
    };
    assert_eq!(tell(&mut hosts, &reset, &[]), []);
    assert_eq!(drain(&mut hosts.server, server).1, Recv::Closed(CloseReason::Reset));
    hosts.server.close(server);
    assert_eq!(hosts.server.census().fast_opens, 0);
    hosts.now = hosts.now + (FastOpens::RESET_COUNTS - Duration::from_nanos(1));
    let answers = tell(&mut hosts, &syn(2, Some(cookie)), REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001));
    hosts.now = hosts.now + Duration::from_nanos(1);
    let answers = tell(&mut hosts, &syn(3, Some(cookie)), REQUEST);
    assert_eq!(answers[0].0.ack, first[0].0.ack);
}

#[test]
fn one_that_its_own_application_resets_does_not() {
    let (mut hosts, listener, cookie) = server_for(1);
    for port in 1..5 {
        let answers = tell(&mut hosts, &syn(port, Some(cookie)), REQUEST);
        assert_eq!(answers[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
        let server = hosts.server.accept(listener).expect("open at once");
        hosts.server.abort(server);
        let (reset, _) = tcp(&sent(&mut hosts.server)[0]);
        assert_eq!(reset.flags, TcpFlags::RST | TcpFlags::ACK);
    }
}

#[test]
fn closed_listener_aborts_unaccepted_fast_opens() {
    let (mut hosts, listener, cookie) = server_for(8);
    tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    hosts.server.close_listener(listener);
    assert_eq!(tcp(&sent(&mut hosts.server)[0]).0.flags, TcpFlags::RST | TcpFlags::ACK);
    assert_eq!(hosts.server.census().fast_opens, 0);
}

#[test]
fn nobody_who_is_silent_keeps_a_place_for_ever() {
    let (mut hosts, listener, cookie) = server_for(1);
    tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    let server = hosts.server.accept(listener).expect("open at once");
    hosts.lose = |_| true;
    hosts.run(Duration::from_secs(64));
    assert_eq!(drain(&mut hosts.server, server).1, Recv::Closed(CloseReason::TimedOut));
    let answers = tell(&mut hosts, &syn(2, Some(cookie)), REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
    hosts.server.close(server);
}

#[test]
fn early_text_stays_within_the_initial_window() {
    let (mut hosts, listener, cookie) = server_for(8);
    tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    let server = hosts.server.accept(listener).expect("open at once");
    send(&mut hosts.server, server, &[7; 100_000]);
    let text: usize = sent(&mut hosts.server).iter().map(|packet| tcp(packet).1.len()).sum();
    // RFC 6928: ten segments of the MSS that the client announced; the SYN takes a number of one.
    assert!((9 * 1_400..=10 * 1_400).contains(&text), "{text}");
    hosts.server.shutdown(server);
    assert!(sent(&mut hosts.server).is_empty(), "FIN waits for the handshake");
}

#[test]
fn a_cookie_of_the_key_before_is_good_and_replaced() {
    let (mut hosts, listener) = acquainted(Over::V4);
    hosts.server.rotate_fast_open_key(&Key([9; 16]));
    for alt in [1, 1] {
        let (client, rest) = fast(&mut hosts, Over::V4, REQUEST);
        assert_eq!(rest, 0);
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("open at once");
        assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
        // The second brings what the first was given.
        assert_eq!(hosts.server.counters().fast_open_passive_alt_key, alt);
        hosts.client.abort(client);
        hosts.server.abort(server);
    }
    assert_eq!(counts(hosts.client.counters()), [2, 0, 0, 0]);
}

#[test]
fn listener_with_own_keys_uses_only_them() {
    let (mut hosts, _, of_stack) = server_for(8);
    let at = Endpoint::new(server_addr(Over::V4), 81);
    let own = hosts.server.listen(at, 16).expect("free");
    hosts.server.set_fast_open(own, 8);
    let [primary, backup] = [Key([8; 16]), Key([9; 16])];
    assert!(hosts.server.set_fast_open_keys(own, &primary, None));
    let answer = |hosts: &mut Hosts, port, dst_port, option| {
        let answers = tell(hosts, &TcpHeader { dst_port, ..syn(port, Some(option)) }, REQUEST);
        (answers[0].0.ack, answers[0].0.options.fast_open)
    };
    let (nothing, all) = (SeqNum::new(1_001), SeqNum::new(1_001) + REQUEST.len() as u32);
    let (taken, granted) = answer(&mut hosts, 1, 81, of_stack);
    let first = granted.expect("another cookie");
    assert!(taken == nothing && first != of_stack);
    assert_eq!(answer(&mut hosts, 2, 81, first), (all, None));
    assert_eq!(answer(&mut hosts, 3, 80, first), (nothing, Some(of_stack)));
    // The stack's key changes for the others alone.
    hosts.server.rotate_fast_open_key(&Key([7; 16]));
    assert_eq!(answer(&mut hosts, 4, 81, first), (all, None));
    hosts.server.set_fast_open_keys(own, &backup, Some(&primary));
    let (taken, renewed) = answer(&mut hosts, 5, 81, first);
    assert!(taken == all && renewed.is_some_and(|it| it != first));
    hosts.server.set_fast_open_keys(own, &backup, None);
    assert_eq!(answer(&mut hosts, 6, 81, first), (nothing, renewed));
    hosts.server.close_listener(own);
    assert!(!hosts.server.set_fast_open_keys(own, &primary, None));
}

#[test]
fn a_cookie_that_expired_costs_a_round_trip_and_no_text() {
    let (mut hosts, listener) = acquainted(Over::V4);
    hosts.server.rotate_fast_open_key(&Key([8; 16]));
    hosts.server.rotate_fast_open_key(&Key([9; 16]));
    for (count, expected) in [(1, [0, 1, 0, 0]), (2, [1, 1, 0, 0])] {
        let (client, _) = fast(&mut hosts, Over::V4, REQUEST);
        hosts.run(3 * DELAY);
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending), "{count}");
        assert_eq!(counts(hosts.client.counters()), expected);
        hosts.client.abort(client);
        hosts.server.abort(server);
        hosts.run_until_quiet();
    }
    assert_eq!(hosts.client.counters().fast_open_blackholes, 0);
}

#[test]
fn lost_syn_text_is_repeated_without_and_pauses_fast_open() {
    let (mut hosts, listener) = acquainted(Over::V4);
    // A middlebox swallows the first SYN.
    hosts.carried = 0;
    hosts.lose = |number| number == 1;
    let (client, rest) = fast(&mut hosts, Over::V4, REQUEST);
    assert_eq!(rest, 0);
    hosts.run(Duration::from_secs(2));
    let server = hosts.server.accept(listener).expect("a complete connection");
    assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
    assert_eq!(counts(hosts.server.counters())[2..], [0, 0]);
    assert_eq!(counts(hosts.client.counters()), [0, 1, 0, 0]);
    assert_eq!(hosts.client.counters().fast_open_blackholes, 1);
    assert!(!hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    let other_port = Endpoint::new(server_addr(Over::V4), 81);
    assert!(hosts.client.knows_fast_open_cookie(None, &other_port));
    hosts.run(Duration::from_secs(900));
    hosts.client.set_now(hosts.now);
    assert!(hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    hosts.client.purge_paths();
    assert!(!hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    hosts.client.abort(client);
    hosts.server.abort(server);
}

#[test]
fn a_server_that_never_answers_is_left_alone_too() {
    let (mut hosts, _) = acquainted(Over::V4);
    hosts.lose = |_| true;
    let (client, _) = fast(&mut hosts, Over::V4, REQUEST);
    hosts.run(Duration::from_secs(200));
    assert_eq!(hosts.client.recv(client), Recv::Closed(CloseReason::TimedOut));
    assert_eq!(hosts.client.counters().fast_open_blackholes, 1);
    assert!(!hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    hosts.client.close(client);
}

#[test]
fn a_server_that_stopped_to_take_text_is_not_asked_again_soon() {
    let (mut hosts, listener) = acquainted(Over::V4);
    hosts.server.set_fast_open(listener, 0);
    for taken in [REQUEST.len(), 0] {
        let (client, rest) = fast(&mut hosts, Over::V4, REQUEST);
        assert_eq!(REQUEST.len() - rest, taken);
        if rest > 0 {
            send(&mut hosts.client, client, REQUEST);
        }
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
        hosts.client.abort(client);
        hosts.server.abort(server);
    }
    assert_eq!(counts(hosts.client.counters()), [0, 1, 0, 0]);
}

#[test]
fn a_syn_holds_no_more_than_the_server_announced() {
    let (mut hosts, listener) = acquainted(Over::V4);
    let mut data = Bytes::from(vec![7; 5_000]);
    let options = SocketOptions::default();
    let client = hosts
        .client
        .connect_fast(server_at(Over::V4), None, &options, &mut data)
        .expect("a free port");
    // 1,460 less what options can take at most.
    assert_eq!(5_000 - data.len(), 1_420);
    assert_eq!(hosts.client.send(client, &mut data), Ok(3_580));
    let packets = sent(&mut hosts.client);
    assert_eq!((packets.len(), packets[0].len()), (1, 1_492));
    hosts.server.rx(hosts.now, &[RxFrame::new(&packets[0], SegMeta::SINGLE)]);
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("open at once");
    assert_eq!(drain(&mut hosts.server, server).0, [7; 5_000]);
    hosts.client.abort(client);
    hosts.server.abort(server);
}

#[test]
fn while_cookies_answer_syns_there_is_no_fast_open() {
    let tunables = Tunables { syn_cookies: SynCookies::Always, ..Tunables::default() };
    let server = host(server_addr, 2, &tunables);
    let (mut plain, _, cookie) = server_for(8);
    let mut hosts = Hosts::of(host(client_addr, 1, &Tunables::default()), server);
    let listener = hosts.listen(Over::V4, 16);
    hosts.server.set_fast_open(listener, 8);
    let answers = tell(&mut hosts, &syn(1, Some(cookie)), REQUEST);
    assert_eq!((answers[0].0.ack, answers[0].0.options.fast_open), (SeqNum::new(1_001), None));
    assert_eq!(hosts.server.census().connections, 0);
    // The same cookie opens where they do not.
    let answers = tell(&mut plain, &syn(1, Some(cookie)), REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
}

/// The server's end of a connection from port 1 in TIME-WAIT.
fn server_in_time_wait(stamps: Option<Timestamps>) -> (Hosts, ListenerId, FastOpen) {
    let (mut hosts, listener, cookie) = server_for(8);
    let stamped = |header: TcpHeader| TcpHeader {
        options: TcpOptions { timestamps: stamps, ..header.options },
        ..header
    };
    let first = tell(&mut hosts, &stamped(syn(1, Some(cookie))), REQUEST);
    let server = hosts.server.accept(listener).expect("open at once");
    drain(&mut hosts.server, server);
    let acks = |more: u32, flags: TcpFlags| {
        let options = TcpOptions { timestamps: stamps, ..TcpOptions::default() };
        let ack = first[0].0.seq + more;
        TcpHeader { seq: first[0].0.ack, ack, flags, options, ..syn(1, None) }
    };
    tell(&mut hosts, &acks(1, TcpFlags::ACK), &[]);
    hosts.server.close(server);
    assert!(tcp(&sent(&mut hosts.server)[0]).0.flags.is_fin());
    tell(&mut hosts, &acks(2, TcpFlags::ACK), &[]);
    tell(&mut hosts, &acks(2, TcpFlags::FIN | TcpFlags::ACK), &[]);
    assert_eq!(hosts.server.census().time_wait, 1);
    (hosts, listener, cookie)
}

#[test]
fn a_newer_timestamp_opens_a_flow_in_time_wait_at_once() {
    let stamps = |val| Some(Timestamps { val, ecr: 0 });
    let (mut hosts, listener, cookie) = server_in_time_wait(stamps(5_000));
    let mut again = syn(1, Some(cookie));
    again.options.timestamps = stamps(5_001);
    let answers = tell(&mut hosts, &again, REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(1_001) + REQUEST.len() as u32);
    assert_eq!(hosts.server.census().time_wait, 0);
    let server = hosts.server.accept(listener).expect("open at once");
    assert_eq!(drain(&mut hosts.server, server).0, REQUEST);
    hosts.server.abort(server);
}

#[test]
fn syn_new_by_number_only_finishes_handshake() {
    let (mut hosts, listener, cookie) = server_in_time_wait(None);
    let again = TcpHeader { seq: SeqNum::new(100_000), ..syn(1, Some(cookie)) };
    let answers = tell(&mut hosts, &again, REQUEST);
    assert_eq!(answers[0].0.ack, SeqNum::new(100_001));
    assert_eq!(hosts.server.census().time_wait, 1);
    assert_eq!(hosts.server.accept(listener), None);
}

#[test]
fn a_new_cookie_has_the_form_of_the_one_that_it_replaces() {
    let (mut hosts, _, old) = server_for(8);
    hosts.server.rotate_fast_open_key(&Key([9; 16]));
    let new = tell(&mut hosts, &syn(1, Some(old)), REQUEST)[0].0.options.fast_open;
    let new = new.filter(|new| *new != old).expect("a new cookie");
    let answers = tell(&mut hosts, &syn(2, Some(old.into_experimental())), REQUEST);
    assert_eq!(answers[0].0.options.fast_open, Some(new.into_experimental()));
}

#[test]
fn cookie_opens_nothing_if_deferred_or_table_full() {
    // Whether the SYN with a valid cookie opened a connection.
    let opens = |prepare: &dyn Fn(&mut Hosts, ListenerId), text| {
        let (mut hosts, listener, cookie) = server_for(8);
        prepare(&mut hosts, listener);
        tell(&mut hosts, &syn(1, Some(cookie)), text);
        hosts.server.census().fast_opens == 1
    };
    let as_it_is = |_: &mut Hosts, _| {};
    assert!(opens(&as_it_is, REQUEST) && opens(&as_it_is, &[]));
    // Who is to be told of connections with text alone is not told of one without.
    let deferring = |hosts: &mut Hosts, listener| {
        let options = SocketOptions { defer_accept: 1, ..SocketOptions::default() };
        assert!(hosts.server.set_listener_options(listener, &options));
    };
    assert!(opens(&deferring, REQUEST) && !opens(&deferring, &[]));
    let full = |hosts: &mut Hosts, _| {
        hosts.server.set_tunable("max_connections", "1").expect("a value");
        let remote = Endpoint::new(client_addr(Over::V4), 9);
        hosts.server.connect(remote, None).expect("room for one");
    };
    assert!(!opens(&full, REQUEST));
}

#[test]
fn a_syn_with_fin_waits_for_its_handshake_whatever_its_cookie() {
    let (mut hosts, listener, cookie) = server_for(8);
    hosts.server.set_tunable("drop_synfin", "off").expect("a switch");
    let flags = TcpFlags::SYN | TcpFlags::FIN;
    let answers = tell(&mut hosts, &TcpHeader { flags, ..syn(1, Some(cookie)) }, REQUEST);
    assert_eq!((answers[0].0.flags, answers[0].0.ack), (TcpFlags::SYN_ACK, SeqNum::new(1_001)));
    assert_eq!((hosts.server.census().syn_entries, hosts.server.accept(listener)), (1, None));
}

#[test]
fn crossing_syns_with_text_open_one_connection() {
    let (mut hosts, _) = acquainted(Over::V4);
    // The server gets a cookie of the client's.
    let client_at = Endpoint::new(client_addr(Over::V4), 80);
    let listener = hosts.client.listen(client_at, 1).expect("the port is free");
    hosts.client.set_fast_open(listener, 1);
    let options = SocketOptions::default();
    let none = &mut Bytes::new();
    let handle = hosts.server.connect_fast(client_at, None, &options, none).expect("a free port");
    hosts.run_until_quiet();
    hosts.server.abort(handle);
    hosts.run_until_quiet();
    hosts.client.close_listener(listener);
    let ends =
        [client_addr(Over::V4), server_addr(Over::V4)].map(|addr| Endpoint::new(addr, 7_000));
    let [client, server] = [(0, REQUEST), (1, ANSWER)].map(|(own, text)| {
        let mut text = Bytes::from_static(text);
        let shard = if own == 0 { &mut hosts.client } else { &mut hosts.server };
        let opened = shard.connect_fast(ends[1 - own], Some(ends[own]), &options, &mut text);
        assert!(text.is_empty());
        opened.expect("a free port")
    });
    hosts.run_until_quiet();
    assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
    assert_eq!(drain(&mut hosts.client, client), (ANSWER.to_vec(), Recv::Pending));
    for (shard, handle) in [(&hosts.client, client), (&hosts.server, server)] {
        let snapshot = shard.snapshot(handle).expect("a connection");
        assert_eq!((snapshot.state, snapshot.syn_data), (State::Established, false));
        assert_eq!(shard.counters().fast_open_blackholes, 0);
    }
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn whichever_packet_is_lost_both_sides_read_all_of_it_once() {
    // Of what the two exchange, any one packet, or any two that follow each other.
    let losers: [fn(u64) -> bool; 12] = [
        |n| n == 1,
        |n| n == 2,
        |n| n == 3,
        |n| n == 4,
        |n| n == 5,
        |n| n == 6,
        |n| n == 1 || n == 2,
        |n| n == 2 || n == 3,
        |n| n == 3 || n == 4,
        |n| n == 4 || n == 5,
        |n| n <= 3,
        |n| n % 3 == 0,
    ];
    for (case, lose) in losers.into_iter().enumerate() {
        let (mut hosts, listener) = acquainted(Over::V4);
        hosts.carried = 0;
        hosts.lose = lose;
        let (client, _) = fast(&mut hosts, Over::V4, REQUEST);
        hosts.client.shutdown(client);
        let mut read = Vec::new();
        let mut server = None;
        // The application answers as soon as the request arrives, within the handshake if it can.
        for _ in 0..20_000 {
            hosts.run(DELAY);
            server = server.or_else(|| hosts.server.accept(listener));
            let Some(server) = server else { continue };
            let before = read.len();
            let (more, end) = drain(&mut hosts.server, server);
            read.extend(more);
            if before < REQUEST.len() && read.len() == REQUEST.len() {
                send(&mut hosts.server, server, ANSWER);
            }
            if end == Recv::End {
                hosts.server.shutdown(server);
                break;
            }
        }
        hosts.run(Duration::from_secs(30));
        assert_eq!(read, REQUEST, "case {case}");
        assert_eq!(drain(&mut hosts.client, client), (ANSWER.to_vec(), Recv::End), "case {case}");
        hosts.client.close(client);
        hosts.server.close(server.expect("it was accepted"));
        hosts.lose = |_| false;
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_client_that_lets_go_during_the_handshake_leaves_nothing() {
    let (mut hosts, listener) = acquainted(Over::V4);
    let (client, _) = fast(&mut hosts, Over::V4, REQUEST);
    assert_eq!(hosts.client.census().fast_opens, 1);
    hosts.client.close(client);
    assert_eq!(hosts.client.census().fast_opens, 0);
    let (client, _) = fast(&mut hosts, Over::V4, REQUEST);
    hosts.run(DELAY);
    hosts.client.abort(client);
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("open at once");
    assert_eq!(drain(&mut hosts.server, server).1, Recv::Closed(CloseReason::Reset));
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn full_accept_queue_drops_syn_with_cookie() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 1);
    let (mut hosts, listener) = {
        hosts.server.set_fast_open(listener, 8);
        (hosts, listener)
    };
    let answers = tell(&mut hosts, &syn(1, Some(FastOpen::REQUEST)), &[]);
    let cookie = answers[0].0.options.fast_open;
    assert_eq!(tell(&mut hosts, &syn(2, cookie), REQUEST).len(), 1);
    assert_eq!(tell(&mut hosts, &syn(3, cookie), REQUEST), []);
    assert_eq!(hosts.server.counters().listen_overflows, 1);
    let server = hosts.server.accept(listener).expect("open at once");
    assert_eq!(tell(&mut hosts, &syn(3, cookie), REQUEST).len(), 1);
    hosts.server.abort(server);
}

#[test]
fn shards_do_not_share_what_they_know() {
    let (hosts, _) = acquainted(Over::V4);
    let other: Shard = host(client_addr, 3, &Tunables::default());
    assert!(hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    assert!(!other.knows_fast_open_cookie(None, &server_at(Over::V4)));
}

#[test]
fn the_option_means_nothing_without_syn() {
    let (mut hosts, listener, cookie) = server_for(8);
    let answers = tell(&mut hosts, &syn(1, None), REQUEST);
    let third = TcpHeader {
        seq: SeqNum::new(1_001),
        ack: answers[0].0.seq + 1,
        flags: TcpFlags::ACK,
        options: TcpOptions { fast_open: Some(cookie), ..TcpOptions::default() },
        ..syn(1, None)
    };
    assert_eq!(tell(&mut hosts, &third, REQUEST), []);
    let server = hosts.server.accept(listener).expect("a complete connection");
    assert_eq!(drain(&mut hosts.server, server), (REQUEST.to_vec(), Recv::Pending));
    // Nor does a stray one with a cookie open anything.
    let stray = TcpHeader { src_port: 2, ..third };
    let answers = tell(&mut hosts, &stray, REQUEST);
    assert_eq!(answers[0].0.flags, TcpFlags::RST);
    assert_eq!(counts(hosts.server.counters()), [0; 4]);
    hosts.server.abort(server);
}

#[test]
fn syn_text_too_big_for_path_is_repeated_without() {
    let (mut hosts, listener) = acquainted(Over::V4);
    hosts.wire = Wire::Narrow(1_000);
    let mut data = Bytes::from(vec![7; 1_400]);
    let options = SocketOptions::default();
    let opened = hosts.client.connect_fast(server_at(Over::V4), None, &options, &mut data);
    let client = opened.expect("a free port");
    assert!(data.is_empty());
    // To the router and back, a handshake, and half of a round trip.
    hosts.run(6 * DELAY);
    let server = hosts.server.accept(listener).expect("a complete connection");
    assert_eq!(drain(&mut hosts.server, server), (vec![7; 1_400], Recv::Pending));
    assert_eq!(hosts.client.counters().timeouts, 0);
    hosts.client.abort(client);
    hosts.server.abort(server);
}
