//! Links whose MTU changes while the host runs.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_tcp::Tunables;
use whimbrel_udp::{Bind, Fragmenting, Local, SendOptions, SocketError};
use whimbrel_wire::{Address, Endpoint};

use super::hosts::{BOTH, Hosts, Over, client_addr, drain, host, send, server_addr, server_at};
use super::packets::{sent, tcp, too_big};
use crate::shard::{ConfigError, DatagramPathsSeen};
use crate::{SendTo, Shard, UdpError};

/// The MSS that the SYN to `over` announces.
fn announced(shard: &mut Shard, over: Over) -> u16 {
    let handle = shard.connect(server_at(over), None).expect("a free port");
    let syn = sent(shard).remove(0);
    shard.abort(handle);
    tcp(&syn).0.options.mss.expect("an MSS").get()
}

#[test]
fn new_connections_announce_mss_of_current_link() {
    let mut client = host(client_addr, 1, &Tunables::default());
    for mtu in [1_500, 1_280, 9_000, 65_535] {
        client.set_mtu(mtu).expect("in range");
        assert_eq!(client.mtu(), mtu);
        assert_eq!(announced(&mut client, Over::V4), mtu - 40);
        assert_eq!(announced(&mut client, Over::V6), mtu - 60);
    }
}

#[test]
fn text_in_flight_is_cut_anew_for_narrower_link() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        let text: Vec<u8> = (0..20_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
        send(&mut hosts.client, client, &text);
        // All of the first flight went into a link that is no more.
        assert!(!sent(&mut hosts.client).is_empty());
        hosts.client.set_mtu(1_280).expect("in range");
        let mut received = Vec::new();
        for _ in 0..50 {
            hosts.run(Duration::from_millis(2));
            received.extend(drain(&mut hosts.server, server).0);
        }
        assert!(received == text, "{} bytes of {over:?}", received.len());
        let counters = hosts.client.counters();
        assert_eq!((counters.timeouts, counters.path_mtu_lowered), (0, 1));
        assert_eq!(hosts.client.path_mtu(&server_addr(over)), None);
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn segments_waiting_to_be_cut_follow_narrower_link() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    let text = [9; 14_000];
    send(&mut hosts.client, client, &text);
    // A batch of one: the others wait behind it.
    let mut batch = crate::TxBatch::new(1);
    assert!(hosts.client.tx(&mut batch));
    hosts.client.set_mtu(1_280).expect("in range");
    hosts.run(Duration::from_millis(100));
    assert_eq!(drain(&mut hosts.server, server).0, text);
    assert_eq!(hosts.client.counters().timeouts, 0);
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn mtu_out_of_range_changes_nothing() {
    let mut client = host(client_addr, 1, &Tunables::default());
    for mtu in [0, 68, 1_279] {
        let error = client.set_mtu(mtu).expect_err("it has an address of IPv6");
        assert_eq!(error, ConfigError::Mtu { mtu, least: 1_280 });
        assert!(std::format!("{error}").contains("1280"), "{error}");
    }
    assert_eq!(client.mtu(), 1_500);
    client.remove_address(&client_addr(Over::V6)).expect("it has it");
    assert_eq!(client.set_mtu(67), Err(ConfigError::Mtu { mtu: 67, least: 68 }));
    client.set_mtu(68).expect("IPv4 needs no more");
    assert_eq!(announced(&mut client, Over::V4), 68 - 40);
}

#[test]
fn datagram_taken_for_wider_link_is_cut_or_refused() {
    let mut client = host(client_addr, 1, &Tunables::default());
    let socket = client.udp_bind(&Bind::new(Local::Both, 4_000)).expect("free");
    let to = server_at(Over::V4);
    client.udp_connect(socket, to).expect("a peer");
    let fragmenting = Fragmenting::Refused;
    let refused = Some(SendOptions::new().with_fragmenting(fragmenting));
    for (options, packets, discards) in [(None, 2, 0), (refused, 0, 1)] {
        client.set_mtu(1_500).expect("in range");
        let data = Bytes::from_static(&[1; 1_472]);
        let send = SendTo { options, ..SendTo::CONNECTED };
        client.udp_send(socket, data, &send).expect("it fits");
        client.set_mtu(1_400).expect("in range");
        assert_eq!(sent(&mut client).len(), packets);
        assert_eq!(client.udp().counters.out_discards, discards);
    }
    assert_eq!(client.udp_take_error(socket), Some(SocketError::TooBig { mtu: 1_400 }));
    let error = UdpError::TooLong { len: 1_472, most: 1_372 };
    let send = SendTo { options: refused, ..SendTo::CONNECTED };
    assert_eq!(client.udp_send(socket, Bytes::from_static(&[1; 1_472]), &send), Err(error));
}

#[test]
fn paths_of_datagrams_are_read_once() {
    let mut client = host(client_addr, 1, &Tunables::default());
    let socket = client.udp_bind(&Bind::new(Local::Both, 4_000)).expect("free");
    let mut seen = DatagramPathsSeen::default();
    assert!(client.datagram_paths(&mut seen).is_none());
    for last in [2, 3] {
        let to = Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), 9);
        client.udp_send(socket, Bytes::from_static(&[1; 1_472]), &SendTo::peer(to)).expect("sent");
        let packet = sent(&mut client).remove(0);
        let report = too_big(&packet, 1_300);
        let now = client.now();
        super::packets::exchange(&mut client, now, &report);
        let news = client.datagram_paths(&mut seen).expect("news");
        assert!(!news.forgets);
        let [path] = news.paths[..] else { panic!("{news:?}") };
        assert_eq!((path.remote, path.mtu, path.left.as_secs()), (to.addr, 1_300, 600));
        assert!(client.datagram_paths(&mut seen).is_none());
    }
    client.purge_paths();
    let news = client.datagram_paths(&mut seen).expect("news");
    assert!(news.forgets && news.paths.is_empty());
}
