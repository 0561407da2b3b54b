//! Packets of a host to itself come in without a wire.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_udp::{Bind, Local, SocketError};
use whimbrel_wire::{Address, Endpoint};

use super::hosts::{BOTH, Device, Over, drain, events, host, host_on, send, server_addr};
use super::packets::{packet_from, sent};
use crate::ip::{FrameDrop, PathClass};
use crate::shard::{Census, ConnectError, SocketState};
use crate::{Event, RxFrame, SendTo, Shard, TxBatch};
use whimbrel_wire::Protocol;

fn loopback(over: Over) -> Address {
    match over {
        Over::V4 => Address::from_v4_bytes([127, 0, 0, 1]),
        Over::V6 => std::net::Ipv6Addr::LOCALHOST.into(),
    }
}

/// The addresses by which a host reaches itself.
fn itself() -> Vec<Address> {
    BOTH.into_iter().flat_map(|over| [server_addr(over), loopback(over)]).collect()
}

/// Port 80 of all addresses of its family.
fn everywhere(addr: &Address) -> Endpoint {
    match addr.is_v4() {
        true => Endpoint::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 80),
        false => Endpoint::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 80),
    }
}

/// Runs for `time`; what left by the wire is an error.
fn run(shard: &mut Shard, now: &mut Instant, time: Duration) {
    let end = *now + time;
    let mut batch = TxBatch::new(8);
    shard.set_now(*now);
    loop {
        while shard.tx(&mut batch) {}
        assert!(batch.is_empty(), "something left by the wire");
        match shard.next_deadline() {
            Some(next) if next <= end => *now = (*now).max(next),
            _ => break,
        }
        // A budget of one: nothing relies upon more.
        while shard.advance(*now, 1) {}
        shard.check_invariants().expect("what must hold");
    }
    *now = end;
}

const MOMENT: Duration = Duration::from_millis(250);

#[test]
fn connection_to_itself_carries_1_mb_off_the_wire() {
    for device in [Device::PLAIN, Device { mtu: 1_500, offload: true }] {
        for addr in itself() {
            let mut shard = host_on(device, server_addr, 2, &Tunables::default());
            let mut now = Instant::ZERO;
            let listener = shard.listen(everywhere(&addr), 4).expect("the port is free");
            let client = shard.connect(Endpoint::new(addr, 80), None).expect("it is this host");
            run(&mut shard, &mut now, MOMENT);
            let server = shard.accept(listener).expect("a complete connection");
            let flow = shard.flow(client).expect("a connection");
            assert_eq!(flow.local.addr, addr, "a host speaks to itself from the same address");
            assert_eq!(shard.flow(server).map(|it| it.remote), Some(flow.local));
            let bytes: Bytes = (0..1 << 20).map(|at: u32| (at ^ (at >> 7)) as u8).collect();
            let (mut rest, mut received) = (bytes.clone(), Vec::new());
            while received.len() < bytes.len() {
                if !rest.is_empty() {
                    shard.send(client, &mut rest).expect("open for sending");
                }
                run(&mut shard, &mut now, Duration::from_millis(20));
                received.extend(drain(&mut shard, server).0);
            }
            assert!(received == bytes, "{} bytes", received.len());
            assert_eq!(shard.counters().retrans_segs, 0);
            shard.close(client);
            run(&mut shard, &mut now, MOMENT);
            shard.close(server);
            run(&mut shard, &mut now, MOMENT);
            assert_eq!(shard.census().time_wait, 1);
            assert_eq!(shard.addresses().path_class(&addr), PathClass::Loopback);
            run(&mut shard, &mut now, Duration::from_secs(200));
            while shard.poll_event().is_some() {}
            assert_eq!(shard.census(), Census { listeners: 1, ..Census::default() });
        }
    }
}

#[test]
fn what_arrives_from_oneself_leaves_nothing_due_but_what_waits() {
    for addr in itself() {
        let device = Device { mtu: 1_500, offload: true };
        let mut shard = host_on(device, server_addr, 2, &Tunables::default());
        let mut now = Instant::ZERO;
        shard.listen(everywhere(&addr), 4).expect("the port is free");
        let client = shard.connect(Endpoint::new(addr, 80), None).expect("it is this host");
        run(&mut shard, &mut now, MOMENT);
        assert_eq!(send(&mut shard, client, &[7; 14_000]), 14_000);
        let mut batch = TxBatch::new(8);
        while shard.tx(&mut batch) || shard.has_looped() {
            assert!(!shard.advance(now, 64), "a burst of a few packets is done at once");
            // The text takes the first chunk that there is, which is not to be given back yet.
            let is_due = shard.next_deadline().is_some_and(|next| next <= now);
            assert_eq!(is_due, shard.has_looped());
        }
    }
}

#[test]
fn a_port_where_nobody_listens_refuses_at_once() {
    for addr in itself() {
        let mut shard = host(server_addr, 2, &Tunables::default());
        let mut now = Instant::ZERO;
        let client = shard.connect(Endpoint::new(addr, 81), None).expect("it is this host");
        run(&mut shard, &mut now, Duration::ZERO);
        assert_eq!(events(&mut shard), [Event::Closed(client, CloseReason::Refused)]);
        shard.close(client);
    }
}

#[test]
fn port_connected_to_itself_opens() {
    // RFC 9293 3.5, figure 8: both SYNs cross, and both are the same.
    for addr in itself() {
        let mut shard = host(server_addr, 2, &Tunables::default());
        let mut now = Instant::ZERO;
        let at = Endpoint::new(addr, 4_000);
        let handle = shard.connect(at, Some(at)).expect("it is this host");
        run(&mut shard, &mut now, MOMENT);
        assert_eq!(shard.flow(handle).map(|it| (it.local, it.remote)), Some((at, at)));
        assert_eq!(send(&mut shard, handle, b"who is there?"), 13);
        run(&mut shard, &mut now, MOMENT);
        assert_eq!(drain(&mut shard, handle).0, b"who is there?");
        let states: Vec<_> = shard.sockets().map(|entry| entry.state).collect();
        assert_eq!(states, [SocketState::Established]);
        shard.abort(handle);
        run(&mut shard, &mut now, MOMENT);
    }
}

#[test]
fn datagrams_to_itself_arrive_and_closed_port_errs() {
    for addr in itself() {
        let mut shard = host(server_addr, 2, &Tunables::default());
        let mut now = Instant::ZERO;
        let bind = |port| Bind::new(Local::Address(addr), port);
        let (one, other) = (shard.udp_bind(&bind(53)), shard.udp_bind(&bind(0)));
        let (one, other) = (one.expect("free"), other.expect("free"));
        // More than the link carries: it goes in fragments, and comes whole.
        let data = Bytes::from(vec![7; 4_000]);
        let to = SendTo::peer(Endpoint::new(addr, 53));
        shard.udp_send(other, data.clone(), &to).expect("room");
        run(&mut shard, &mut now, MOMENT);
        let received = shard.udp_recv(one).expect("it arrived");
        assert_eq!((received.data, received.from.addr), (data, addr));
        shard.udp_connect(other, Endpoint::new(addr, 54)).expect("it is this host");
        shard.udp_send(other, Bytes::from_static(b"?"), &SendTo::CONNECTED).expect("room");
        run(&mut shard, &mut now, MOMENT);
        assert_eq!(shard.udp_take_error(other), Some(SocketError::PortUnreachable));
        assert!(shard.ip_counters().looped >= 5 && shard.ip_counters().looped_dropped == 0);
    }
}

#[test]
fn own_and_loopback_sources_on_wire_are_dropped() {
    let mut shard = host(server_addr, 2, &Tunables::default());
    let mut now = Instant::ZERO;
    for over in BOTH {
        let any = loopback(over);
        shard.listen(Endpoint::new(any, 80), 4).expect("the port is free");
        // A host that has spoken to itself drops them, too.
        let own = shard.connect(Endpoint::new(any, 80), None).expect("it is this host");
        run(&mut shard, &mut now, MOMENT);
        let outside = super::hosts::client_addr(over);
        let pairs = [
            (server_addr(over), server_addr(over), FrameDrop::Martian),
            (loopback(over), server_addr(over), FrameDrop::Martian),
            (outside, loopback(over), FrameDrop::OtherHost),
            (loopback(over), loopback(over), FrameDrop::OtherHost),
        ];
        for (from, to, reason) in pairs {
            let before = shard.ip_counters().dropped(reason);
            let syn = tcp_syn(from, to);
            shard.rx(now, &[RxFrame::new(&syn, SegMeta::SINGLE)]);
            assert_eq!(shard.ip_counters().dropped(reason), before + 1, "{from} to {to}");
            assert!(sent(&mut shard).is_empty());
        }
        shard.abort(own);
        run(&mut shard, &mut now, MOMENT);
    }
}

fn tcp_syn(from: Address, to: Address) -> Vec<u8> {
    use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions};
    use whimbrel_wire::{RawWindow, SeqNum, Sum};
    let header = TcpHeader {
        src_port: 4_000,
        dst_port: 80,
        seq: SeqNum::new(1),
        ack: SeqNum::new(0),
        flags: TcpFlags::SYN,
        window: RawWindow::new(1_000),
        urgent: 0,
        options: TcpOptions::default(),
    };
    let mut segment = vec![0; 60];
    let len = header.emit(OptionOrder::default(), &mut segment);
    segment.truncate(len);
    let sum = Sum::pseudo_header(from, to, Protocol::TCP.0, len as u32).add_bytes(&segment);
    TcpHeader::set_checksum(&mut segment, sum.finish());
    packet_from(from, to, Protocol::TCP, &segment)
}

#[test]
fn other_addresses_of_loopback_are_nobodys_and_leave_by_no_wire() {
    let mut config = super::hosts::config(server_addr, 2, &Tunables::default());
    config.routes.push(crate::Route {
        network: Address::from_v4_bytes([0; 4]),
        prefix_len: 0,
        gateway: Some(super::hosts::client_addr(Over::V4)),
        metric: 0,
        metrics: crate::RouteMetrics::default(),
    });
    let mut shard = Shard::new(config).expect("valid");
    let other = Endpoint::new(Address::from_v4_bytes([127, 0, 0, 2]), 80);
    assert_eq!(shard.connect(other, None), Err(ConnectError::NoRoute(other)));
    let socket = shard.udp_bind(&Bind::new(Local::Both, 0)).expect("free");
    let refused = shard.udp_send(socket, Bytes::from_static(b"?"), &SendTo::peer(other));
    assert_eq!(refused.map(|_| ()), Err(crate::UdpError::NoRoute(other)));
}

#[test]
fn loopback_takes_one_packet_per_budget_and_is_bounded() {
    let mut shard = host(server_addr, 2, &Tunables::default());
    let addr = server_addr(Over::V4);
    let socket = shard.udp_bind(&Bind::new(Local::Address(addr), 0)).expect("free");
    shard.udp_set_send_size(socket, usize::MAX);
    let to = SendTo::peer(Endpoint::new(addr, 9));
    let mut batch = TxBatch::new(8);
    for _ in 0..3_000 {
        let _full = shard.udp_send(socket, Bytes::from_static(b"?"), &to);
        shard.tx(&mut batch);
    }
    assert_eq!(shard.census().looped, 1_024);
    assert!(shard.ip_counters().looped_dropped > 0);
    assert_eq!(shard.next_deadline(), Some(shard.now()));
    assert!(shard.advance(Instant::ZERO, 1));
    assert_eq!(shard.census().looped, 1_023);
}
