//! Links that carry little: nothing loops, nothing overflows, and nothing exceeds them.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::SocketOptions;
use whimbrel_wire::{IpHeader, Protocol};

use super::hosts::{Hosts, Over, client_addr, config, drain, send, server_addr, server_at};
use super::packets::{exchange, packet};
use crate::Shard;

/// A host whose link carries `mtu` bytes; below 1,280 it has no IPv6.
fn host(addr: fn(Over) -> whimbrel_wire::Address, seed: u64, mtu: u16, rules: &Tunables) -> Shard {
    let mut config = config(addr, seed, rules);
    (config.capabilities.mtu, config.capabilities.max_super) = (mtu, u32::from(mtu));
    if mtu < 1_280 {
        config.addresses.truncate(1);
    }
    Shard::new(config).expect("a valid configuration")
}

#[test]
fn streams_cross_the_narrowest_links_with_and_without_loss() {
    for (mtu, over) in [(68, Over::V4), (88, Over::V4), (296, Over::V4), (576, Over::V4)]
        .into_iter()
        .chain([(1_280, Over::V4), (1_280, Over::V6)])
    {
        for (timestamps, lose) in [(true, 0), (false, 0), (true, 11)] {
            let rules = Tunables { timestamps, ..Tunables::default() };
            let mut hosts =
                Hosts::of(host(client_addr, 1, mtu, &rules), host(server_addr, 2, mtu, &rules));
            let listener = hosts.listen(over, 8);
            let (client, server) = hosts.connected(over, listener);
            if lose > 0 {
                hosts.lose = |number| number % 11 == 0;
            }
            let text: Vec<u8> = (0..20_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
            send(&mut hosts.client, client, &text);
            send(&mut hosts.server, server, &text);
            let (mut there, mut back) = (Vec::new(), Vec::new());
            // A segment holds 16 bytes on the narrowest: the losses take it 7 s, of 17 time-outs.
            for _ in 0..600 {
                hosts.run(Duration::from_millis(100));
                there.extend(drain(&mut hosts.server, server).0);
                back.extend(drain(&mut hosts.client, client).0);
            }
            assert!(there == text && back == text, "{mtu} {over:?} {timestamps} {lose}");
            hosts.client.close(client);
            hosts.server.close(server);
            hosts.assert_no_leaks();
        }
    }
}

#[test]
fn fast_open_exceeds_no_link_however_narrow() {
    for (mtu, timestamps) in (68..=88).flat_map(|mtu| [(mtu, true), (mtu, false)]) {
        let rules = Tunables { timestamps, ..Tunables::default() };
        let mut hosts =
            Hosts::of(host(client_addr, 1, mtu, &rules), host(server_addr, 2, mtu, &rules));
        let listener = hosts.listen(Over::V4, 8);
        assert!(hosts.server.set_fast_open(listener, 8));
        for text in
            [&b"asks for a cookie"[..], b"has one, and much to say in the first of segments"]
        {
            let mut rest = Bytes::from_static(text);
            let options = SocketOptions::default();
            let opened = hosts.client.connect_fast(server_at(Over::V4), None, &options, &mut rest);
            let client = opened.expect("a free port");
            hosts.run_until_quiet();
            let server = hosts.server.accept(listener).expect("a complete connection");
            send(&mut hosts.client, client, &rest);
            hosts.run(Duration::from_secs(5));
            assert_eq!(drain(&mut hosts.server, server).0, text, "{mtu} {timestamps}");
            hosts.client.close(client);
            hosts.server.close(server);
        }
        hosts.assert_no_leaks();
    }
}

#[test]
fn narrowest_link_is_crossed_without_sack() {
    let rules = Tunables { sack: false, ..Tunables::default() };
    let mut hosts = Hosts::of(host(client_addr, 1, 68, &rules), host(server_addr, 2, 68, &rules));
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.lose = |number| number % 9 == 0;
    let text: Vec<u8> = (0..20_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    send(&mut hosts.client, client, &text);
    send(&mut hosts.server, server, &text);
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let begun = hosts.now;
    while (there.len() < text.len() || back.len() < text.len())
        && hosts.now.since(begun) < Duration::from_secs(600)
    {
        hosts.run(Duration::from_millis(100));
        there.extend(drain(&mut hosts.server, server).0);
        back.extend(drain(&mut hosts.client, client).0);
    }
    let took = hosts.now.since(begun);
    assert!(there == text && back == text, "{took:?}");
    // It took minutes while echoes from before a time-out were measured as round trips.
    assert!(took < Duration::from_secs(60), "{took:?}");
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn an_error_quotes_no_more_than_fits_the_link() {
    for (mtu, len) in [(68, 68), (296, 296), (576, 576), (1_500, 576)] {
        let mut server = host(server_addr, 2, mtu, &Tunables::default());
        let refused = packet(Over::V4, Protocol(200), &[0; 1_000]);
        let replies = exchange(&mut server, Instant::ZERO, &refused);
        assert_eq!(replies.iter().map(Vec::len).collect::<Vec<_>>(), [len]);
        let (_, payload) = IpHeader::parse(&replies[0]).expect("an IP packet");
        assert!(refused.starts_with(&payload[8..]));
    }
}
