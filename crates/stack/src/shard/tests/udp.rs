//! Datagrams between two shards, and what the path says of them.

use std::net::Ipv6Addr;
use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum};
use whimbrel_tcp::Tunables;
use whimbrel_udp::{
    Arrived, Bind, BindError, Fragmenting, Local, QueueError, Received, SendOptions, SocketError,
};
use whimbrel_wire::{
    Address, Endpoint, Family, IpHeader, Protocol, TrafficClass, UdpHeader, UdpView,
};

use super::hosts::{
    BOTH, Device, Hosts, Over, Wire, client_addr, config, host, host_on, may_be_cut, server_addr,
};
use super::packets::{exchange, packet, packet_from, sent, too_big, unreachable};
use crate::ip::FrameDrop;
use crate::{Event, RxFrame, SendTo, Shard, TxBatch, UdpError, UdpHandle};

const PORT: u16 = 53;

fn everywhere(port: u16) -> Bind {
    Bind::new(Local::Both, port)
}

fn at(over: Over) -> Endpoint {
    Endpoint::new(server_addr(over), PORT)
}

/// Two hosts, a socket of the client's, and one at the server's port.
fn pair() -> (Hosts, UdpHandle, UdpHandle) {
    let mut hosts = Hosts::new();
    let client = hosts.client.udp_bind(&everywhere(0)).expect("a free port");
    let server = hosts.server.udp_bind(&everywhere(PORT)).expect("a free port");
    (hosts, client, server)
}

fn send(shard: &mut Shard, socket: UdpHandle, data: &[u8], to: Endpoint) -> Result<(), UdpError> {
    shard.udp_send(socket, Bytes::copy_from_slice(data), &SendTo::peer(to))
}

/// A datagram from the client's host to the server's port, as a packet.
fn datagram(over: Over, from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; data.len() + UdpHeader::LEN];
    let header = UdpHeader { src_port: from, dst_port: to };
    header.emit_datagram(client_addr(over), server_addr(over), data, &mut bytes);
    packet(over, Protocol::UDP, &bytes)
}

/// Reads a packet and the datagram in it.
fn read(packet: &[u8]) -> (IpHeader, UdpHeader, Vec<u8>) {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    let view = UdpView::parse(ip.src, ip.dst, payload).expect("a datagram");
    (ip, view.header, view.data.to_vec())
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at >> 3) as u8).collect()
}

#[test]
fn a_datagram_arrives_with_its_ends_and_is_answered() {
    for over in BOTH {
        let (mut hosts, client, server) = pair();
        send(&mut hosts.client, client, b"query", at(over)).expect("sent");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.poll_event(), Some(Event::Udp(server)));
        let port = hosts.client.udp().local(client).expect("bound").port;
        let query = hosts.server.udp_recv(server).expect("received");
        let class = TrafficClass::default();
        let from = Endpoint::new(client_addr(over), port);
        let (to, data, hop_limit, dont_fragment) = (at(over), &b"query"[..], 64, true);
        let expected = Received::of(&Arrived { from, to, data, class, hop_limit, dont_fragment });
        assert_eq!(query, expected);
        assert_eq!(hosts.server.udp_recv(server), None);
        // An empty datagram is one, too.
        send(&mut hosts.server, server, b"", query.from).expect("sent");
        hosts.run_until_quiet();
        let answer = hosts.client.udp_recv(client).expect("received");
        assert_eq!((answer.from, answer.data.len()), (at(over), 0));
        let counters = hosts.client.udp().counters.clone();
        assert_eq!((counters.in_datagrams, counters.out_datagrams), (1, 1));
        assert!(hosts.client.udp_close(client) && hosts.server.udp_close(server));
        hosts.assert_no_leaks();
    }
}

#[test]
fn an_answer_leaves_from_the_address_that_was_asked() {
    let tunables = Tunables::default();
    let mut config = config(server_addr, 2, &tunables);
    let second = Address::from_v4_bytes([10, 0, 0, 77]);
    config.addresses.push(crate::InterfaceAddress { addr: second, prefix_len: 24 });
    let mut hosts = Hosts::of(host(client_addr, 1, &tunables), Shard::new(config).expect("valid"));
    let client = hosts.client.udp_bind(&everywhere(0)).expect("free");
    let server = hosts.server.udp_bind(&everywhere(PORT)).expect("free");
    hosts.client.udp_connect(client, Endpoint::new(second, PORT)).expect("a peer");
    hosts.client.udp_send(client, Bytes::from_static(b"?"), &SendTo::CONNECTED).expect("sent");
    hosts.run_until_quiet();
    let query = hosts.server.udp_recv(server).expect("received");
    assert_eq!(query.to.addr, second);
    // By the route it would leave from the first address, which the client did not ask.
    send(&mut hosts.server, server, b"stranger", query.from).expect("sent");
    let answer = SendTo { source: Some(query.to.addr), ..SendTo::peer(query.from) };
    hosts.server.udp_send(server, Bytes::from_static(b"!"), &answer).expect("sent");
    hosts.run_until_quiet();
    let received = hosts.client.udp_recv(client).expect("received");
    assert_eq!((received.from.addr, &received.data[..]), (second, &b"!"[..]));
    assert_eq!(hosts.client.udp_recv(client), None);
    let foreign = SendTo { source: Some(client_addr(Over::V4)), ..answer };
    let refused = hosts.server.udp_send(server, Bytes::new(), &foreign);
    assert_eq!(refused, Err(UdpError::NotLocal(client_addr(Over::V4))));
}

#[test]
fn closed_udp_port_errs_once_at_connected_socket() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let client = hosts.client.udp_bind(&everywhere(0)).expect("free");
        hosts.client.udp_connect(client, at(over)).expect("a peer");
        hosts.client.udp_send(client, Bytes::new(), &SendTo::CONNECTED).expect("sent");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.udp().counters.no_ports, 1);
        assert_eq!(hosts.server.ip_counters().dropped(FrameDrop::UdpPort), 1);
        assert_eq!(hosts.client.poll_event(), Some(Event::Udp(client)));
        let error = hosts.client.udp_take_error(client);
        assert_eq!(error, Some(SocketError::PortUnreachable));
        assert_eq!(hosts.client.udp_take_error(client), None);
        // The socket goes on.
        let server = hosts.server.udp_bind(&everywhere(PORT)).expect("free");
        hosts.client.udp_send(client, Bytes::new(), &SendTo::CONNECTED).expect("sent");
        hosts.run_until_quiet();
        assert!(hosts.server.udp_recv(server).is_some());
    }
}

#[test]
fn router_errors_reach_quoted_connected_sockets() {
    let cases = [
        (Over::V4, 0, SocketError::NetworkUnreachable),
        (Over::V4, 1, SocketError::HostUnreachable),
        (Over::V4, 2, SocketError::ProtocolUnreachable),
        (Over::V4, 3, SocketError::PortUnreachable),
        (Over::V4, 13, SocketError::Prohibited),
        (Over::V6, 0, SocketError::NetworkUnreachable),
        (Over::V6, 1, SocketError::Prohibited),
        (Over::V6, 3, SocketError::HostUnreachable),
        (Over::V6, 4, SocketError::PortUnreachable),
    ];
    for (over, code, expected) in cases {
        let mut client = host(client_addr, 1, &Tunables::default());
        let socket = client.udp_bind(&everywhere(0)).expect("free");
        send(&mut client, socket, b"x", at(over)).expect("sent");
        let packet = sent(&mut client).remove(0);
        // Who sends to many could not tell whom it is about.
        exchange(&mut client, Instant::ZERO, &unreachable(&packet, code));
        assert_eq!(client.udp_take_error(socket), None);
        client.udp_connect(socket, at(over)).expect("a peer");
        let mut other = packet.clone();
        let udp = if over == Over::V4 { 20 } else { 40 };
        other[udp] ^= 1;
        exchange(&mut client, Instant::ZERO, &unreachable(&other, code));
        assert_eq!(client.udp_take_error(socket), None, "another port");
        assert_eq!(client.ip_counters().dropped(FrameDrop::IcmpNoSocket), 1);
        exchange(&mut client, Instant::ZERO, &unreachable(&packet, code));
        assert_eq!(client.udp_take_error(socket), Some(expected), "{over:?} {code}");
        assert_eq!(client.udp().counters.icmp_errors, 1);
    }
}

#[test]
fn datagrams_beyond_the_mtu_cross_in_fragments_both_ways() {
    for over in BOTH {
        let (mut hosts, client, server) = pair();
        for len in [1_452, 1_453, 1_473, 8_000, UdpHeader::most_data(client_addr(over).family())] {
            let text = text(len);
            send(&mut hosts.client, client, &text, at(over)).expect("sent");
            hosts.run_until_quiet();
            let there = hosts.server.udp_recv(server).expect("received");
            assert!(there.data == text, "{len} bytes became {}", there.data.len());
            send(&mut hosts.server, server, &text, there.from).expect("sent");
            hosts.run_until_quiet();
            let back = hosts.client.udp_recv(client).expect("received");
            assert!(back.data == text, "{len} bytes became {}", back.data.len());
        }
        let whole = if over == Over::V4 { 2 } else { 1 };
        let ip = hosts.client.ip_counters();
        assert_eq!((ip.fragmented, ip.out_requests), (5 - whole, 5));
        assert_eq!(hosts.client.udp().counters.out_datagrams, 5);
        let most = UdpHeader::most_data(client_addr(over).family());
        let refused = send(&mut hosts.client, client, &text(most + 1), at(over));
        assert_eq!(refused, Err(UdpError::TooLong { len: most + 1, most }));
    }
}

#[test]
fn unfragmentable_datagram_is_refused_with_path_mtu() {
    for (over, headers) in [(Over::V4, 28), (Over::V6, 48)] {
        let (mut hosts, client, server) = pair();
        hosts.wire = Wire::Narrow(1_300);
        let fragmenting = Fragmenting::Refused;
        hosts.client.udp_set_options(client, SendOptions::new().with_fragmenting(fragmenting));
        hosts.client.udp_connect(client, at(over)).expect("a peer");
        let send = |hosts: &mut Hosts, len| {
            hosts.client.udp_send(client, text(len).into(), &SendTo::CONNECTED)
        };
        let most = 1_500 - headers;
        assert_eq!(hosts.client.udp_whole(&server_addr(over)), most);
        let refused = UdpError::TooLong { len: most + 1, most };
        assert_eq!(send(&mut hosts, most + 1), Err(refused));
        send(&mut hosts, most).expect("it fits the link");
        hosts.run_until_quiet();
        // The router said what the path carries: the sender hears of it, and so does its next call.
        assert_eq!(hosts.server.udp_recv(server), None);
        let error = hosts.client.udp_take_error(client);
        assert_eq!(error, Some(SocketError::TooBig { mtu: 1_300 }));
        let most = 1_300 - headers;
        assert_eq!(send(&mut hosts, most + 1), Err(UdpError::TooLong { len: most + 1, most }));
        send(&mut hosts, most).expect("it fits the path");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.udp_recv(server).expect("received").data.len(), most);
        // Others may be cut, and are, at what the path carries.
        let options = Some(SendOptions::new());
        let to = SendTo { options, ..SendTo::CONNECTED };
        hosts.client.udp_send(client, text(4_000).into(), &to).expect("sent");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.udp_recv(server).expect("received").data.len(), 4_000);
        // Segments do not believe what was said of datagrams.
        assert_eq!(hosts.client.path_mtu(&server_addr(over)), None);
        hosts.client.purge_paths();
        assert_eq!(hosts.client.udp_whole(&server_addr(over)), 1_500 - headers);
    }
}

#[test]
fn path_mtu_counts_only_for_datagrams_of_own_sockets() {
    let mut client = host(client_addr, 1, &Tunables::default());
    let socket = client.udp_bind(&everywhere(4_000)).expect("free");
    send(&mut client, socket, &text(1_472), at(Over::V4)).expect("sent");
    let packet = sent(&mut client).remove(0);
    client.udp_close(socket);
    exchange(&mut client, Instant::ZERO, &too_big(&packet, 600));
    assert_eq!(client.udp_whole(&server_addr(Over::V4)), 1_472);
    let socket = client.udp_bind(&everywhere(4_000)).expect("free");
    exchange(&mut client, Instant::ZERO, &too_big(&packet, 600));
    assert_eq!(client.udp_whole(&server_addr(Over::V4)), 572);
    assert_eq!(client.udp_take_error(socket), None, "it is not connected");
}

#[test]
fn segments_not_to_be_cut_are_compared_one_by_one() {
    let (mut hosts, client, server) = pair();
    let fragmenting = Fragmenting::Refused;
    let options = Some(SendOptions::new().with_fragmenting(fragmenting));
    let send = |hosts: &mut Hosts, len: usize, segment: u16| {
        let to = SendTo { segment: Some(segment), options, ..SendTo::peer(at(Over::V4)) };
        hosts.client.udp_send(client, text(len).into(), &to)
    };
    send(&mut hosts, 4_000, 1_000).expect("each fits");
    send(&mut hosts, 1_000, 2_000).expect("it is one");
    hosts.run_until_quiet();
    for _ in 0..5 {
        assert_eq!(hosts.server.udp_recv(server).expect("received").data.len(), 1_000);
    }
    let too_long = |len| Err(UdpError::TooLong { len, most: 1_472 });
    assert_eq!(send(&mut hosts, 4_000, 1_473), too_long(1_473));
    assert_eq!(send(&mut hosts, 1_473, 1_473), too_long(1_473));
}

#[test]
fn datagrams_to_path_below_least_may_be_fragmented() {
    for (mtu, is_narrow) in [(551, true), (552, false)] {
        let (mut hosts, client, server) = pair();
        send(&mut hosts.client, client, &text(1_000), at(Over::V4)).expect("sent");
        let packet = sent(&mut hosts.client).remove(0);
        exchange(&mut hosts.client, hosts.now, &too_big(&packet, mtu));
        let fragmenting = Fragmenting::Refused;
        let refused = Some(SendOptions::new().with_fragmenting(fragmenting));
        for (options, may) in [(None, is_narrow), (refused, false)] {
            let to = SendTo { options, ..SendTo::peer(at(Over::V4)) };
            hosts.client.udp_send(client, text(524).into(), &to).expect("it fits");
            let packet = sent(&mut hosts.client).remove(0);
            assert_eq!((packet.len(), may_be_cut(&packet)), (552, may), "{mtu}");
            assert_eq!(packet[4..6] != [0, 0], may, "a number of its own");
        }
        hosts.wire = Wire::Narrow(mtu);
        send(&mut hosts.client, client, &text(4_000), at(Over::V4)).expect("sent");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.udp_recv(server).expect("received").data, text(4_000));
    }
}

#[test]
fn packets_say_what_their_socket_or_their_datagram_asks_for() {
    for over in BOTH {
        let (mut hosts, client, server) = pair();
        let options = SendOptions::new().with_hop_limit(3).with_class(TrafficClass(0xb9));
        hosts.client.udp_set_options(client, options);
        let once = options.with_hop_limit(9).with_class(TrafficClass(0x20));
        let peer = SendTo::peer(at(over));
        let with = SendTo { options: Some(once), ..peer };
        for (send, options) in [(peer, options), (with, once), (peer, options)] {
            for len in [5, 3_000] {
                hosts.client.udp_send(client, text(len).into(), &send).expect("sent");
                hosts.run_until_quiet();
                let received = hosts.server.udp_recv(server).expect("received");
                let said = (Some(received.hop_limit), received.class);
                assert_eq!(said, (options.hop_limit, options.class), "{len} bytes");
            }
        }
    }
}

#[test]
fn whole_datagrams_have_dont_fragment_and_checksum() {
    for offload in [false, true] {
        let device = Device { mtu: 1_500, offload };
        let mut client = host_on(device, client_addr, 1, &Tunables::default());
        let socket = client.udp_bind(&everywhere(4_000)).expect("free");
        send(&mut client, socket, b"text", at(Over::V4)).expect("sent");
        let packet = sent(&mut client).remove(0);
        assert_eq!(packet[6..8], [0x40, 0], "Don't Fragment");
        if !offload {
            let (ip, header, data) = read(&packet);
            assert_eq!((ip.src, ip.dst), (client_addr(Over::V4), server_addr(Over::V4)));
            assert_eq!(header, UdpHeader { src_port: 4_000, dst_port: PORT });
            assert_eq!(data, b"text");
            assert_ne!(packet[26..28], [0, 0], "a checksum");
        }
    }
}

#[test]
fn datagrams_to_groups_are_refused_by_reason() {
    let (mut hosts, client, _) = pair();
    let to = |bytes| Endpoint::new(Address::from_v4_bytes(bytes), PORT);
    let group = Address::from(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
    let cases = [
        (to([224, 0, 0, 251]), UdpError::Multicast(to([224, 0, 0, 251]).addr)),
        (Endpoint::new(group, PORT), UdpError::Multicast(group)),
        (to([255; 4]), UdpError::Broadcast(to([255; 4]).addr)),
        (to([10, 0, 0, 255]), UdpError::Broadcast(to([10, 0, 0, 255]).addr)),
        (to([0; 4]), UdpError::NotAPeer(to([0; 4]))),
        (
            Endpoint { port: 0, ..at(Over::V4) },
            UdpError::NotAPeer(Endpoint { port: 0, ..at(Over::V4) }),
        ),
        (to([127, 0, 0, 2]), UdpError::NoRoute(to([127, 0, 0, 2]))),
        (to([192, 0, 2, 1]), UdpError::NoRoute(to([192, 0, 2, 1]))),
    ];
    for (to, error) in cases {
        assert_eq!(send(&mut hosts.client, client, b"", to), Err(error));
        assert_eq!(hosts.client.udp_connect(client, to), Err(error));
    }
    let undirected = hosts.client.udp_send(client, Bytes::new(), &SendTo::CONNECTED);
    assert_eq!(undirected, Err(UdpError::NotConnected));
    let bind = Bind::new(Local::Address(group), PORT);
    assert_eq!(hosts.client.udp_bind(&bind), Err(UdpError::Multicast(group)));
    let bind = Bind::new(Local::Address(server_addr(Over::V4)), PORT);
    assert_eq!(hosts.client.udp_bind(&bind), Err(UdpError::NotLocal(server_addr(Over::V4))));
    let v4 = hosts.client.udp_bind(&Bind::new(Local::Every(Family::V4), 99)).expect("free");
    let refused = send(&mut hosts.client, v4, b"", at(Over::V6));
    assert_eq!(refused, Err(UdpError::Family(at(Over::V6))));
    let in_use = BindError::InUse(Endpoint::new(Local::Both.address(), 99));
    assert_eq!(hosts.client.udp_bind(&everywhere(99)), Err(UdpError::Bind(in_use)));
    assert!(sent(&mut hosts.client).is_empty(), "nothing of it left");
}

#[test]
fn received_group_datagrams_are_dropped_and_counted() {
    let (mut hosts, _, _) = pair();
    for dst in [[224, 0, 0, 251], [255; 4], [10, 0, 0, 255]].map(Address::from_v4_bytes) {
        let mut bytes = [0; 12];
        let header = UdpHeader { src_port: PORT, dst_port: PORT };
        header.emit_datagram(client_addr(Over::V4), dst, b"all!", &mut bytes);
        let packet = packet_from(client_addr(Over::V4), dst, Protocol::UDP, &bytes);
        assert!(exchange(&mut hosts.server, Instant::ZERO, &packet).is_empty());
    }
    assert_eq!(hosts.server.udp().counters.ignored_multi, 3);
    assert_eq!(hosts.server.ip_counters().dropped(FrameDrop::UdpGroup), 3);
}

#[test]
fn broken_datagrams_are_dropped_in_silence_and_counted() {
    for over in BOTH {
        let (mut hosts, _, server) = pair();
        let whole = datagram(over, 4_000, PORT, b"text");
        let udp = if over == Over::V4 { 20 } else { 40 };
        let mut mangled = whole.clone();
        *mangled.last_mut().expect("bytes") ^= 1;
        let mut long = whole.clone();
        long[udp + 5] += 1;
        let mut unsummed = whole.clone();
        unsummed[udp + 6..udp + 8].fill(0);
        for packet in [&mangled, &long, &unsummed] {
            assert!(exchange(&mut hosts.server, Instant::ZERO, packet).is_empty());
        }
        // No checksum is one that the sender did without in IPv4, and an error in IPv6.
        let taken = usize::from(over == Over::V4);
        assert_eq!(hosts.server.udp().waiting(server), taken);
        let counters = &hosts.server.udp().counters;
        assert_eq!(counters.in_csum_errors, 2 - taken as u64);
        assert_eq!(counters.in_errors, 3 - taken as u64);
        let ip = hosts.server.ip_counters();
        assert_eq!(ip.dropped(FrameDrop::UdpHeader), 1);
        assert_eq!(ip.dropped(FrameDrop::UdpChecksum), 2 - taken as u64);
    }
}

#[test]
fn datagrams_that_a_device_left_uncut_arrive_each_by_itself() {
    for over in BOTH {
        let (mut hosts, _, server) = pair();
        let text = text(2_500);
        let frame = datagram(over, 4_000, PORT, &text);
        let meta = SegMeta { segs: 3, gso_size: 1_000, checksum: RxChecksum::Partial };
        hosts.server.rx(Instant::ZERO, &[RxFrame::new(&frame, meta)]);
        for part in text.chunks(1_000) {
            let received = hosts.server.udp_recv(server).expect("received");
            assert!(received.data == part, "{} bytes", received.data.len());
            assert_eq!(received.from, Endpoint::new(client_addr(over), 4_000));
        }
        assert_eq!(hosts.server.udp_recv(server), None);
        assert_eq!(hosts.server.udp().counters.in_datagrams, 3);
        let ip = hosts.server.ip_counters();
        assert_eq!((ip.in_receives, ip.in_delivers), (1, 1));
        // Without a socket: each is counted, and one answer says so.
        hosts.server.udp_close(server);
        hosts.server.rx(Instant::ZERO, &[RxFrame::new(&frame, meta)]);
        assert_eq!(sent(&mut hosts.server).len(), 1);
        assert_eq!(hosts.server.udp().counters.no_ports, 3);
    }
}

#[test]
fn what_arrives_faster_than_it_is_read_is_bounded_and_counted() {
    let (mut hosts, _, server) = pair();
    hosts.server.udp_set_recv_size(server, 10_000);
    let packet = datagram(Over::V4, 4_000, PORT, &[7; 1_000]);
    for _ in 0..20 {
        assert!(exchange(&mut hosts.server, Instant::ZERO, &packet).is_empty());
    }
    let taken = hosts.server.udp().waiting(server);
    assert!((5..=7).contains(&taken), "{taken} of 20 wait");
    let dropped = 20 - taken as u64;
    assert_eq!(hosts.server.udp().counters.rcvbuf_errors, dropped);
    assert_eq!(hosts.server.ip_counters().dropped(FrameDrop::UdpBuffer), dropped);
    // No more than `buffers.recv.max` is given.
    hosts.server.udp_set_recv_size(server, usize::MAX);
    let most = hosts.server.tunables().recv_buffer_max as usize;
    assert_eq!(hosts.server.udp().sizes(server).expect("bound").recv, most);
}

#[test]
fn datagrams_count_against_the_memory_budget_and_go_first() {
    let tunables = Tunables { mem_budget: 1 << 20, ..Tunables::default() };
    let mut server = host(server_addr, 2, &tunables);
    let socket = server.udp_bind(&everywhere(PORT)).expect("free");
    server.udp_set_recv_size(socket, 16 << 20);
    let before = server.memory().held;
    let packet = datagram(Over::V4, 4_000, PORT, &[7; 1_000]);
    // All within one millisecond, in which records are not looked at.
    for _ in 0..2_000 {
        exchange(&mut server, Instant::ZERO, &packet);
    }
    let held = server.memory().held;
    assert!((900_000..=(1 << 20)).contains(&held), "{held} bytes held, {before} before");
    let dropped = server.udp().counters.mem_errors;
    assert_eq!(server.udp().waiting(socket) as u64 + dropped, 2_000);
    assert_eq!(server.ip_counters().dropped(FrameDrop::UdpMemory), dropped);
    let refused = send(&mut server, socket, b"x", Endpoint::new(client_addr(Over::V4), 9));
    assert_eq!(refused, Err(UdpError::Queue(QueueError::Memory)));
    while server.udp_recv(socket).is_some() {}
    server.advance(Instant::from_millis(5), 64);
    assert!(server.memory().held < before + 10_000);
    exchange(&mut server, Instant::from_millis(5), &packet);
    assert_eq!(server.udp().waiting(socket), 1);
}

#[test]
fn who_sends_faster_than_the_device_takes_waits_for_room() {
    let (mut hosts, client, server) = pair();
    hosts.client.udp_set_send_size(client, 8_192);
    let mut queued = 0;
    let full = loop {
        match send(&mut hosts.client, client, &[1; 1_000], at(Over::V4)) {
            Ok(()) => queued += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, UdpError::Queue(QueueError::Full { most: 8_192 }));
    assert!((5..=8).contains(&queued), "{queued} wait");
    assert_eq!(hosts.client.udp().counters.sndbuf_errors, 1);
    assert_eq!(hosts.client.census().udp_unsent, queued);
    assert_eq!(hosts.client.poll_event(), None);
    hosts.run_until_quiet();
    assert_eq!(hosts.client.poll_event(), Some(Event::Udp(client)));
    send(&mut hosts.client, client, b"more", at(Over::V4)).expect("room");
    hosts.run_until_quiet();
    assert_eq!(hosts.server.udp().waiting(server), queued + 1);
}

#[test]
fn a_flood_of_datagrams_leaves_connections_their_turn() {
    let (mut hosts, client, _) = pair();
    hosts.client.udp_set_send_size(client, 1 << 20);
    let listener = hosts.listen(Over::V4, 8);
    let (stream, _) = hosts.connected(Over::V4, listener);
    for _ in 0..200 {
        send(&mut hosts.client, client, b"flood", at(Over::V4)).expect("room");
    }
    super::hosts::send(&mut hosts.client, stream, b"text");
    let packets = sent(&mut hosts.client);
    let segment = |packet: &Vec<u8>| packet[9] == Protocol::TCP.0;
    assert_eq!(packets.iter().position(segment), Some(32));
    hosts.run(Duration::from_secs(1));
}

#[test]
fn a_closed_socket_leaves_nothing_but_what_it_had_sent() {
    let (mut hosts, client, server) = pair();
    send(&mut hosts.client, client, &text(4_000), at(Over::V4)).expect("sent");
    send(&mut hosts.client, client, b"last words", at(Over::V4)).expect("sent");
    assert!(hosts.client.udp_close(client));
    assert_eq!((hosts.client.census().udp_sockets, hosts.client.census().udp_unsent), (0, 2));
    hosts.run_until_quiet();
    assert_eq!(hosts.server.udp_recv(server).expect("received").data.len(), 4_000);
    assert_eq!(hosts.server.udp_recv(server).expect("received").data, "last words");
    assert!(hosts.server.udp_close(server));
    // Handles of what is closed name nothing.
    assert!(send(&mut hosts.client, client, b"", at(Over::V4)).is_err());
    assert_eq!(hosts.client.udp_recv(client), None);
    hosts.assert_no_leaks();
}

#[test]
fn many_datagrams_at_once_arrive_as_many() {
    for over in BOTH {
        let (mut hosts, client, server) = pair();
        // Whole ones, a last one that is shorter, and what is one by itself.
        for (len, each) in [(12_000, 1_200), (12_001, 1_200), (64 * 7, 7), (900, 1_200), (0, 1)] {
            let data = Bytes::from(text(len));
            let send = SendTo { segment: Some(each), ..SendTo::peer(at(over)) };
            hosts.client.udp_send(client, data.clone(), &send).expect("sent");
            hosts.run_until_quiet();
            let mut received = Vec::new();
            while let Some(datagram) = hosts.server.udp_recv(server) {
                received.push(datagram.data);
            }
            let whole: Vec<_> = data.chunks(each.into()).collect();
            let whole = if whole.is_empty() { vec![&data[..]] } else { whole };
            assert_eq!(received, whole, "{len} by {each}");
        }
        let counters = &hosts.client.udp().counters;
        assert_eq!(counters.out_datagrams, 10 + 11 + 64 + 1 + 1);
        assert!(hosts.client.udp_close(client) && hosts.server.udp_close(server));
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_device_that_cuts_datagrams_has_many_in_one_frame() {
    let mut config = config(client_addr, 1, &Tunables::default());
    let capabilities = &mut config.capabilities;
    (capabilities.max_super, capabilities.tx_checksum) = (65_535, true);
    capabilities.udp_segmentation = true;
    let mut host = Shard::new(config).expect("valid");
    let socket = host.udp_bind(&everywhere(0)).expect("free");
    let send = SendTo { segment: Some(1_300), ..SendTo::peer(at(Over::V4)) };
    host.udp_send(socket, Bytes::from(text(64_000)), &send).expect("sent");
    let mut batch = TxBatch::new(64);
    host.tx(&mut batch);
    let [frame] = batch.pending() else { panic!("{} frames", batch.pending().len()) };
    let udp_checksum = TxChecksum::Partial(UdpHeader::CHECKSUM_OFFSET as u8);
    assert_eq!((frame.gso_size, frame.checksum), (1_300, udp_checksum));
    let packet = frame.to_vec();
    let (ip, payload) = IpHeader::parse(&packet).expect("an IP packet");
    let view = UdpView::parse_verified(ip.src.family(), payload).expect("a datagram");
    assert_eq!(view.data, text(64_000));
    assert_eq!(host.udp().counters.out_datagrams, 50);
    batch.consume(1);
    // A path that carries less than one of them has each by itself, in fragments.
    host.net.ip.datagram_mtus.note(Instant::ZERO, server_addr(Over::V4), 1_000);
    let send = SendTo { segment: Some(900), ..send };
    host.udp_send(socket, Bytes::from(text(2_700)), &send).expect("sent");
    host.net.ip.datagram_mtus.note(Instant::ZERO, server_addr(Over::V4), 600);
    host.tx(&mut batch);
    assert_eq!(batch.pending().len(), 6);
    assert!(batch.pending().iter().all(|packet| packet.len() <= 600 && packet.gso_size == 0));
    batch.consume(6);
    assert_eq!(host.census().udp_unsent, 0);
}

#[test]
fn what_cannot_be_many_datagrams_is_refused_with_the_limit() {
    let (mut hosts, client, _) = pair();
    let mut send = |len, each| {
        let send = SendTo { segment: Some(each), ..SendTo::peer(at(Over::V4)) };
        hosts.client.udp_send(client, Bytes::from(text(len)), &send)
    };
    let most = 64;
    assert_eq!(send(65, 1), Err(UdpError::Segments { len: 65, segment: 1, most }));
    assert_eq!(send(1, 0), Err(UdpError::Segments { len: 1, segment: 0, most }));
    assert_eq!(send(3_000, 1_473), Err(UdpError::TooLong { len: 1_473, most: 1_472 }));
    assert_eq!(send(65_508, 1_472), Err(UdpError::TooLong { len: 65_508, most: 65_507 }));
    assert_eq!(send(64, 1), Ok(()));
}
