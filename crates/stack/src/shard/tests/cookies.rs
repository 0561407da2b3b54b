//! SYN cookies: handshakes of which the server remembers nothing, and what does not pass for one.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::tunables::{MissingTimestamps, SynCookies};
use whimbrel_tcp::{DropReason, Tunables};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, Endpoint, Mss, RawWindow, SeqNum, WindowScale};

use super::hosts::{
    BOTH, Hosts, Over, client_addr, drain, events, host, send, server_addr, server_at,
};
use super::packets::{self, exchange, sent, tcp};
use crate::{Event, Handle, ListenerId, Shard};

const ALWAYS: SynCookies = SynCookies::Always;

fn server(syn_cookies: SynCookies) -> Shard {
    host(server_addr, 2, &Tunables { syn_cookies, ..Tunables::default() })
}

fn hosts(syn_cookies: SynCookies) -> Hosts {
    Hosts::of(host(client_addr, 1, &Tunables::default()), server(syn_cookies))
}

/// A segment from `src` reaches the server; what it answers.
fn tell(server: &mut Shard, now: Instant, src: Address, header: &TcpHeader) -> Vec<TcpHeader> {
    packets::tell(server, now, src, header, &[]).into_iter().map(|(answer, _)| answer).collect()
}

fn syn(port: u16) -> TcpHeader {
    TcpHeader {
        src_port: port,
        dst_port: 80,
        seq: SeqNum::new(1_000),
        flags: TcpFlags::SYN,
        window: RawWindow::new(65_535),
        options: TcpOptions {
            mss: Some(Mss::new(1_400)),
            window_scale: Some(WindowScale::new(9)),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 5_000, ecr: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    }
}

/// The third segment that answers a SYN-ACK, 30 ms after [`syn`].
fn third(syn_ack: &TcpHeader) -> TcpHeader {
    let echo = |stamps: Timestamps| Timestamps { val: 5_030, ecr: stamps.val };
    TcpHeader {
        src_port: syn_ack.dst_port,
        dst_port: syn_ack.src_port,
        seq: syn_ack.ack,
        ack: syn_ack.seq + 1,
        flags: TcpFlags::ACK,
        window: RawWindow::new(500),
        urgent: 0,
        options: TcpOptions {
            timestamps: syn_ack.options.timestamps.map(echo),
            ..TcpOptions::default()
        },
    }
}

/// So many SYNs that are not completed.
fn flood(server: &mut Shard, now: Instant, syns: u16) {
    for number in 0..syns {
        tell(server, now, Address::from_v4_bytes([10, 0, 0, 100]), &syn(20_000 + number));
    }
}

fn snapshot(shard: &Shard, handle: Handle) -> Snapshot {
    shard.snapshot(handle).expect("a connection")
}

#[test]
fn cookies_always_keep_options_without_record_until_ack() {
    for over in BOTH {
        let mut hosts = hosts(ALWAYS);
        let listener = hosts.listen(over, 8);
        let client = hosts.client.connect(server_at(over), None).expect("a free port");
        let [syn] = &sent(&mut hosts.client)[..] else { panic!("not one SYN") };
        let [syn_ack] = &exchange(&mut hosts.server, hosts.now, syn)[..] else {
            panic!("not one SYN-ACK")
        };
        assert_eq!(hosts.server.census().flows, 0);
        let [third] = &exchange(&mut hosts.client, hosts.now, syn_ack)[..] else {
            panic!("not one ACK")
        };
        assert!(exchange(&mut hosts.server, hosts.now, third).is_empty());
        let server = hosts.server.accept(listener).expect("a complete connection");
        let (here, there) = (snapshot(&hosts.server, server), snapshot(&hosts.client, client));
        assert_eq!(here.scales, there.scales.map(|(send, recv)| (recv, send)));
        assert!(here.scales.is_some() && here.sack && here.timestamps);
        send(&mut hosts.client, client, b"question");
        send(&mut hosts.server, server, b"answer");
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server).0, b"question");
        assert_eq!(drain(&mut hosts.client, client).0, b"answer");
        let counters = hosts.server.counters();
        assert_eq!((counters.cookies_sent, counters.cookies_received), (1, 1));
        assert_eq!((counters.passive_opens, counters.cookies_failed), (1, 0));
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn what_a_cookie_cannot_carry_without_timestamps_is_not_offered() {
    let mut server = server(ALWAYS);
    let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
    let mut syn = syn(4_000);
    syn.options.timestamps = None;
    let syn_ack = tell(&mut server, Instant::ZERO, client_addr(Over::V4), &syn)[0];
    let mss = syn_ack.options.mss;
    assert_eq!(syn_ack.options, TcpOptions { mss, ..TcpOptions::default() });
    tell(&mut server, Instant::ZERO, client_addr(Over::V4), &third(&syn_ack));
    let handle = server.accept(listener).expect("a complete connection");
    let snapshot = snapshot(&server, handle);
    assert_eq!((snapshot.mss, snapshot.scales, snapshot.sack), (1_400, None, false));
    assert_eq!(snapshot.snd.wnd.get(), 500);
}

#[test]
fn cookie_connection_has_initial_window_and_peers_scale() {
    let mut server = server(ALWAYS);
    let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
    let syn_ack = tell(&mut server, Instant::ZERO, client_addr(Over::V4), &syn(4_000))[0];
    tell(&mut server, Instant::from_millis(30), client_addr(Over::V4), &third(&syn_ack));
    let handle = server.accept(listener).expect("a complete connection");
    let snapshot = snapshot(&server, handle);
    assert_eq!(snapshot.mss, 1_400 - 12);
    assert!(snapshot.cwnd >= 10 * 1_388, "no SYN-ACK is known to be lost: {}", snapshot.cwnd);
    assert_eq!(snapshot.snd.wnd.get(), 500 << 9);
}

#[test]
fn full_syn_cache_sends_cookies_and_client_connects() {
    let mut hosts = hosts(SynCookies::Auto);
    let listener = hosts.listen(Over::V4, 8);
    flood(&mut hosts.server, hosts.now, 100);
    assert_eq!(hosts.server.census().syn_entries, 16);
    assert_eq!(hosts.server.counters().syn_cache_cookies, 84);
    let (client, server) = hosts.connected(Over::V4, listener);
    let counters = hosts.server.counters();
    assert_eq!((counters.cookies_received, counters.listen_drops), (1, 0));
    assert_eq!(hosts.server.census().syn_entries, 16);
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}

#[test]
fn with_cookies_off_a_full_syn_cache_makes_room_by_eviction() {
    let mut hosts = hosts(SynCookies::Off);
    let listener = hosts.listen(Over::V4, 8);
    flood(&mut hosts.server, hosts.now, 100);
    assert_eq!(hosts.server.census().syn_entries, 16);
    let counters = hosts.server.counters();
    assert_eq!((counters.syn_evictions, counters.syn_received), (84, 100));
    let (client, server) = hosts.connected(Over::V4, listener);
    assert_eq!(hosts.server.counters().cookies_sent, 0);
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}

#[test]
fn lowered_bound_shrinks_syn_cache_as_flows_reopen() {
    let lower: [fn(&mut Shard, ListenerId); 2] = [
        |server, listener| assert!(server.set_backlog(listener, 16)),
        |server, _| server.set_tunable("max_syn_entries", "20").expect("a value"),
    ];
    for lower in lower {
        let mut hosts = hosts(SynCookies::Auto);
        let listener = hosts.listen(Over::V4, 64);
        let (client, server) = hosts.connected(Over::V4, listener);
        let port = hosts.client.flow(client).expect("it is there").local;
        hosts.server.close(server);
        hosts.run_until_quiet();
        hosts.client.close(client);
        hosts.run_until_quiet();
        assert_eq!(hosts.server.census().time_wait, 1);
        flood(&mut hosts.server, hosts.now, 60);
        lower(&mut hosts.server, listener);
        let again = hosts.client.connect(server_at(Over::V4), Some(port)).expect("it is free");
        hosts.run_until_quiet();
        assert_eq!(hosts.client.state(again), Some(State::Established));
        let counters = hosts.server.counters();
        assert_eq!((counters.syn_evictions, counters.listen_drops), (2, 0));
        assert_eq!(hosts.server.census().syn_entries, 58);
        hosts.client.abort(again);
        let server = hosts.server.accept(listener).expect("complete");
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn syn_beyond_share_of_listener_is_dropped_and_counted() {
    let mut server = server(SynCookies::Off);
    let now = Instant::ZERO;
    server.listen(Endpoint::new(server_addr(Over::V4), 81), 20_000).expect("the port is free");
    let rare = server.listen(server_at(Over::V4), 1).expect("the port is free");
    let from = Address::from_v4_bytes([10, 0, 0, 100]);
    for port in 10_000..30_000 {
        tell(&mut server, now, from, &TcpHeader { dst_port: 81, ..syn(port) });
    }
    for port in 100..200 {
        tell(&mut server, now, from, &syn(port));
    }
    let counters = server.counters();
    assert!(counters.syn_cache_overflows > 50, "{}", counters.syn_cache_overflows);
    assert_eq!(counters.syn_cache_overflows, counters.dropped(DropReason::SynCacheFull));
    assert_eq!(counters.syn_cache_overflows, counters.listen_drops);
    assert_eq!(counters.listen_overflows, 0, "no accept queue was full");
    server.close_listener(rare);
}

#[test]
fn a_cookie_is_refused_and_counted_if_anything_of_it_is_changed() {
    let mut server = server(ALWAYS);
    server.listen(server_at(Over::V4), 8).expect("the port is free");
    let (now, client) = (Instant::from_millis(1_000), client_addr(Over::V4));
    let syn_ack = tell(&mut server, now, client, &syn(4_000))[0];
    let good = third(&syn_ack);
    let mangled = [
        TcpHeader { ack: good.ack + 1, ..good },
        TcpHeader { ack: good.ack + 32, ..good },
        TcpHeader { seq: good.seq + 1, ..good },
        TcpHeader { src_port: 4_001, ..good },
    ];
    for (number, header) in (1..).zip(&mangled) {
        let answer = tell(&mut server, now, client, header);
        assert_eq!((answer[0].flags, answer[0].seq), (TcpFlags::RST, header.ack));
        assert_eq!(server.counters().cookies_failed, number);
        assert_eq!(server.counters().dropped(DropReason::SynCookie), number);
    }
    assert_eq!(server.census().connections, 0);
    let elsewhere = Address::from_v4_bytes([10, 0, 0, 9]);
    assert_eq!(tell(&mut server, now, elsewhere, &good)[0].flags, TcpFlags::RST);
    assert!(tell(&mut server, now, client, &good).is_empty());
    assert_eq!(server.census().connections, 1);
}

#[test]
fn cookie_without_timestamps_is_taken_unless_rule_drops_it() {
    for (rule, connections) in [(MissingTimestamps::Take, 1), (MissingTimestamps::Drop, 0)] {
        let rules =
            Tunables { syn_cookies: ALWAYS, missing_timestamps: rule, ..Tunables::default() };
        let mut server = host(server_addr, 2, &rules);
        let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
        let (now, client) = (Instant::from_millis(1_000), client_addr(Over::V4));
        let syn_ack = tell(&mut server, now, client, &syn(4_000))[0];
        let bare = TcpHeader { options: TcpOptions::default(), ..third(&syn_ack) };
        assert!(tell(&mut server, now, client, &bare).is_empty());
        assert_eq!(server.census().connections, connections);
        let missing = server.counters().dropped(DropReason::TimestampMissing);
        assert_eq!((missing, server.counters().cookies_failed), (1 - connections as u64, 0));
        let Some(handle) = server.accept(listener) else { continue };
        let snapshot = snapshot(&server, handle);
        assert!(snapshot.timestamps && snapshot.scales.is_some() && !snapshot.sack);
        // The first timestamp that does come is taken, whatever it is.
        let mut next = TcpHeader { flags: TcpFlags::ACK | TcpFlags::PSH, ..third(&syn_ack) };
        next.options.timestamps = Some(Timestamps { val: 1 << 31 | 7, ecr: 0 });
        packets::tell(&mut server, now, client, &next, b"x");
        send(&mut server, handle, b"answer");
        let answer = tcp(&sent(&mut server)[0]).0;
        assert_eq!(answer.ack, next.seq + 1);
        assert_eq!(answer.options.timestamps.map(|stamps| stamps.ecr), Some(1 << 31 | 7));
    }
}

#[test]
fn a_cookie_older_than_two_minutes_is_refused() {
    let mut server = server(ALWAYS);
    server.listen(server_at(Over::V4), 8).expect("the port is free");
    let client = client_addr(Over::V4);
    let old = tell(&mut server, Instant::ZERO, client, &syn(4_000))[0];
    let later = Instant::ZERO + Duration::from_secs(120);
    let young = tell(&mut server, later, client, &syn(4_001))[0];
    assert_eq!(tell(&mut server, later, client, &third(&old))[0].flags, TcpFlags::RST);
    assert_eq!(server.counters().cookies_failed, 1);
    assert!(tell(&mut server, later, client, &third(&young)).is_empty());
    assert_eq!(server.counters().cookies_received, 1);
}

#[test]
fn a_listener_that_sent_no_cookie_lately_honours_none() {
    let (mut first, mut second) = (server(ALWAYS), server(ALWAYS));
    let client = client_addr(Over::V4);
    for server in [&mut first, &mut second] {
        server.listen(server_at(Over::V4), 8).expect("the port is free");
    }
    let syn_ack = tell(&mut first, Instant::ZERO, client, &syn(4_000))[0];
    let answer = tell(&mut second, Instant::ZERO, client, &third(&syn_ack));
    assert_eq!(answer[0].flags, TcpFlags::RST);
    assert_eq!(second.counters().dropped(DropReason::NoSocket), 1);
    assert_eq!(second.counters().cookies_failed, 0, "it was not looked at");
}

#[test]
fn cookie_is_honoured_beside_entry_of_its_syn_sent_again() {
    let mut server = server(ALWAYS);
    let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
    let (now, client) = (Instant::from_millis(1_000), client_addr(Over::V4));
    let by_cookie = tell(&mut server, Instant::ZERO, client, &syn(4_000))[0];
    server.set_tunable("net.ipv4.tcp_syncookies", "1").expect("a value");
    let by_entry = tell(&mut server, now, client, &syn(4_000))[0];
    assert_ne!(by_entry.seq, by_cookie.seq);
    let wrong = TcpHeader { ack: by_cookie.seq + 2, ..third(&by_cookie) };
    assert_eq!(tell(&mut server, now, client, &wrong)[0].flags, TcpFlags::RST);
    assert_eq!((server.census().syn_entries, server.counters().cookies_failed), (1, 0));
    assert!(tell(&mut server, now, client, &third(&by_cookie)).is_empty());
    assert_eq!(server.counters().cookies_received, 1);
    let census = server.census();
    assert_eq!((census.syn_entries, census.connections, census.flows), (0, 1, 1));
    server.accept(listener).expect("a complete connection");
}

#[test]
fn a_cookie_that_comes_again_meets_the_record_it_made() {
    let mut server = server(ALWAYS);
    let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
    let (now, client) = (Instant::from_millis(1_000), client_addr(Over::V4));
    let syn_ack = tell(&mut server, now, client, &syn(4_000))[0];
    let third = third(&syn_ack);
    for _ in 0..3 {
        tell(&mut server, now, client, &third);
    }
    let handle = server.accept(listener).expect("a complete connection");
    assert_eq!(server.accept(listener), None);
    // Closed by the server first: TIME-WAIT is a record, too.
    server.close(handle);
    sent(&mut server);
    let fin = TcpHeader { ack: third.ack + 1, flags: TcpFlags::FIN | TcpFlags::ACK, ..third };
    tell(&mut server, now, client, &fin);
    assert_eq!(server.census().time_wait, 1);
    tell(&mut server, now, client, &third);
    assert_eq!((server.census().connections, server.census().time_wait), (0, 1));
    assert_eq!(server.counters().cookies_received, 1);
}

#[test]
fn time_wait_is_reopened_by_entry_and_never_by_cookie() {
    let mut hosts = hosts(ALWAYS);
    let listener = hosts.listen(Over::V4, 8);
    let bound = Some(Endpoint::new(client_addr(Over::V4), 4_000));
    let client = hosts.client.connect(server_at(Over::V4), bound).expect("a free port");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a complete connection");
    hosts.server.close(server);
    hosts.run_until_quiet();
    hosts.client.close(client);
    hosts.run_until_quiet();
    assert_eq!(hosts.server.census().time_wait, 1);
    let again = hosts.client.connect(server_at(Over::V4), bound).expect("a free port");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a complete connection");
    let counters = hosts.server.counters();
    assert_eq!((counters.cookies_sent, counters.syn_received), (1, 1));
    hosts.client.abort(again);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}

#[test]
fn cookie_at_full_accept_queue_returns_with_request() {
    let mut hosts = hosts(ALWAYS);
    let listener = hosts.listen(Over::V4, 1);
    let first = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    let second = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    // Both SYN-ACKs had left before either third segment came.
    assert_eq!(hosts.client.state(second), Some(State::Established));
    assert_eq!(hosts.server.counters().dropped(DropReason::ListenOverflow), 1);
    let accepted = hosts.server.accept(listener).expect("the first");
    send(&mut hosts.client, second, b"request");
    hosts.run_until_quiet();
    let then = hosts.server.accept(listener).expect("the second");
    assert_eq!(drain(&mut hosts.server, then).0, b"request");
    for handle in [first, second] {
        hosts.client.abort(handle);
    }
    for handle in [accepted, then] {
        hosts.server.abort(handle);
    }
    hosts.assert_no_leaks();
}

#[test]
fn cookie_at_full_queue_gets_reset_by_abort_on_overflow() {
    let tunables = Tunables { syn_cookies: ALWAYS, abort_on_overflow: true, ..Tunables::default() };
    let mut server = host(server_addr, 2, &tunables);
    let listener = server.listen(server_at(Over::V4), 1).expect("the port is free");
    let (now, client) = (Instant::from_millis(1_000), client_addr(Over::V4));
    let thirds = [4_000, 4_001].map(|port| third(&tell(&mut server, now, client, &syn(port))[0]));
    assert!(tell(&mut server, now, client, &thirds[0]).is_empty());
    let reset = tell(&mut server, now, client, &thirds[1])[0];
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, thirds[1].ack));
    let counters = server.counters();
    assert_eq!((counters.listen_overflows, counters.listen_drops), (1, 1));
    assert_eq!((counters.cookies_received, counters.cookies_failed), (1, 0));
    assert_eq!(counters.dropped(DropReason::ListenOverflow), 1);
    let census = server.census();
    assert_eq!((census.connections, census.flows), (1, 1));
    assert!(server.accept(listener).is_some() && server.accept(listener).is_none());
}

#[test]
fn group_completes_cookies_and_continues_timestamps() {
    for stamped in [true, false] {
        let (mut first, mut second) = (server(ALWAYS), server(SynCookies::Auto));
        let client = client_addr(Over::V4);
        // The second has run for a day less.
        let (day, now) = (Instant::ZERO + Duration::from_secs(86_400), Instant::from_millis(500));
        first.set_now(day);
        second.set_now(now);
        let clock = Duration::from_secs(1_700_000_000);
        for server in [&mut first, &mut second] {
            server.join_group(clock);
        }
        first.listen(server_at(Over::V4), 8).expect("the port is free");
        let listener = second.listen(server_at(Over::V4), 8).expect("the port is free");
        let mut syn = syn(4_000);
        if !stamped {
            syn.options.timestamps = None;
        }
        let syn_ack = tell(&mut first, day, client, &syn)[0];
        assert!(tell(&mut second, now, client, &third(&syn_ack)).is_empty());
        assert_eq!(events(&mut second), [Event::Accepted(listener)]);
        let handle = second.accept(listener).expect("a complete connection");
        let snapshot = snapshot(&second, handle);
        assert_eq!((snapshot.scales.is_some(), snapshot.sack), (stamped, stamped));
        send(&mut second, handle, b"answer");
        let answer = tcp(&sent(&mut second)[0]).0;
        assert_eq!(answer.seq, syn_ack.seq + 1);
        let val = |header: &TcpHeader| header.options.timestamps.map(|stamps| stamps.val);
        assert_eq!(val(&answer), val(&syn_ack), "no time has passed");
        second.set_now(now + Duration::from_millis(7));
        send(&mut second, handle, b"more");
        second.close(handle);
        let more = sent(&mut second);
        let goes_on =
            more.iter().all(|packet| val(&tcp(packet).0) == val(&syn_ack).map(|at| at + 7));
        assert!(goes_on && !more.is_empty());
    }
}

#[test]
fn a_group_with_cookies_off_honours_none() {
    let (mut first, mut second) = (server(ALWAYS), server(SynCookies::Off));
    let client = client_addr(Over::V4);
    let listeners: Vec<ListenerId> = [&mut first, &mut second]
        .into_iter()
        .map(|server| {
            server.join_group(Duration::from_secs(1_700_000_000));
            server.listen(server_at(Over::V4), 8).expect("the port is free")
        })
        .collect();
    let syn_ack = tell(&mut first, Instant::ZERO, client, &syn(4_000))[0];
    assert_eq!(tell(&mut second, Instant::ZERO, client, &third(&syn_ack))[0].flags, TcpFlags::RST);
    assert_eq!(second.accept(listeners[1]), None);
}
