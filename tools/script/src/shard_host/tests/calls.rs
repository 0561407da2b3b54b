use whimbrel_posix::sockets::{EpollOp, Ioctl, Shut};
use whimbrel_posix::{
    EpollEvents, Errno, FileFlags, MsgFlags, OptionValue, PollEvents, SocketOption,
};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Endpoint, Family};

use super::peer::*;
use crate::call::{Call, Filled, Polled, TimeOut};
use crate::host::{Network, ScriptHost};
use crate::shard_host::ShardHost;

#[test]
fn blocked_accept_ends_when_the_handshake_does() {
    let mut host = host();
    let listening = listener(&mut host);
    let waiting = blocked(&mut host, accept(listening));
    run(&mut host, ms(100));
    handshake(&mut host);
    let (at, returned) = host.poll_call(waiting).expect("it ended");
    assert_eq!((at, returned.value), (ms(100), Ok(4)));
    assert_eq!(returned.out, Filled::Peer(Endpoint::new(Network::v4().remote, PEER_PORT)));
    assert!(host.poll_call(waiting).is_none(), "it ends once");
}

#[test]
fn several_calls_block_at_once_and_each_ends_by_itself() {
    let (mut host, listening, fd, isn) = joined();
    let accepting = blocked(&mut host, accept(listening));
    let reading = blocked(&mut host, recv(fd, &[100], MsgFlags::NONE));
    run(&mut host, ms(50));
    inject(&mut host, TcpFlags::ACK | TcpFlags::PSH, (1, isn + 1), b"hello");
    let (at, returned) = host.poll_call(reading).expect("something came");
    assert_eq!((at, returned.value, bytes(&returned)), (ms(50), Ok(5), &b"hello"[..]));
    assert!(host.poll_call(accepting).is_none());
    assert_eq!(done(&mut host, Call::Close { fd: listening }), Ok(0));
    let (at, returned) = host.poll_call(accepting).expect("there is no listener any more");
    assert_eq!((at, returned.value), (ms(50), Err(Errno::EBADF)));
}

#[test]
fn readv_fills_buffers_and_peek_leaves_data() {
    let (mut host, _, fd, isn) = joined();
    inject(&mut host, TcpFlags::ACK, (1, isn + 1), b"0123456789");
    let peeked = returned(&mut host, recv(fd, &[4], MsgFlags::MSG_PEEK));
    assert_eq!((peeked.value, bytes(&peeked)), (Ok(4), &b"0123"[..]));
    let inq = returned(&mut host, Call::Ioctl { fd, request: Ioctl::Inq });
    assert_eq!((inq.value, inq.out), (Ok(0), Filled::Number(10)));
    let read = returned(&mut host, recv(fd, &[4, 3], MsgFlags::NONE));
    assert_eq!((read.value, bytes(&read)), (Ok(7), &b"0123456"[..]));
    let rest = recv(fd, &[100], MsgFlags::MSG_DONTWAIT);
    assert_eq!(done(&mut host, rest.clone()), Ok(3));
    assert_eq!(done(&mut host, rest), Err(Errno::EAGAIN));
}

#[test]
fn written_data_leaves_in_whole_packets() {
    let (mut host, _, fd, isn) = joined();
    let text: Vec<u8> = (0..4_000).map(|n| n as u8).collect();
    assert_eq!(done(&mut host, send(fd, &[&text[..10], &text[10..]])), Ok(4_000));
    let segments = seen(&mut host);
    let lens: Vec<usize> = segments.iter().map(|one| one.text.len()).collect();
    assert_eq!(lens, [1460, 1460, 1080]);
    let sent: Vec<u8> = segments.iter().flat_map(|one| one.text.clone()).collect();
    assert_eq!(sent, text);
    assert_eq!(segments[0].tcp.seq.raw(), isn + 1);
}

#[test]
fn write_blocks_until_there_is_room() {
    let (mut host, _, fd, isn) = joined();
    let value = OptionValue::Int(4_096);
    let set = Call::SetSockOpt { fd, option: SocketOption::SendBuffer, value };
    assert_eq!(done(&mut host, set), Ok(0));
    let writing = blocked(&mut host, send(fd, &[&[0; 6_000]]));
    let sent: usize = seen(&mut host).iter().map(|one| one.text.len()).sum();
    assert_eq!(sent, 4_096);
    run(&mut host, ms(10));
    inject(&mut host, TcpFlags::ACK, (1, isn + 1 + 4_096), &[]);
    let (at, returned) = host.poll_call(writing).expect("there is room");
    assert_eq!((at, returned.value), (ms(10), Ok(6_000)));
}

#[test]
fn poll_and_epoll_tell_of_readiness() {
    let (mut host, _, fd, isn) = joined();
    let epoll = done(&mut host, Call::EpollCreate).expect("a free descriptor") as i32;
    let events = EpollEvents::EPOLLIN | EpollEvents::EPOLLET;
    let add = Call::EpollCtl { epoll, op: EpollOp::Add, fd, events, data: 7 };
    assert_eq!(done(&mut host, add), Ok(0));
    let most = 10;
    let epolling = blocked(&mut host, Call::EpollWait { epoll, most, time_out: TimeOut::Never });
    let one = Polled { fd, events: PollEvents::POLLIN, revents: PollEvents::NONE };
    let polling = Call::Poll { fds: vec![one], time_out: TimeOut::Never };
    let polling = blocked(&mut host, polling);
    run(&mut host, ms(5));
    inject(&mut host, TcpFlags::ACK, (1, isn + 1), b"x");
    let (at, epolled) = host.poll_call(epolling).expect("something came");
    assert_eq!((at, epolled.value), (ms(5), Ok(1)));
    assert_eq!(epolled.out, Filled::Epoll(vec![(EpollEvents::EPOLLIN, 7)]));
    let (_, polled) = host.poll_call(polling).expect("something came");
    let revents = PollEvents::POLLIN;
    assert_eq!(polled.out, Filled::Polled(vec![Polled { revents, ..one }]));
}

#[test]
fn flags_options_and_the_end_are_the_sockets_own() {
    let (mut host, _, fd, isn) = joined();
    let wanted = FileFlags::O_RDWR | FileFlags::O_NONBLOCK;
    assert_eq!(done(&mut host, Call::FcntlSetFl { fd, flags: wanted }), Ok(0));
    assert_eq!(done(&mut host, Call::FcntlGetFl { fd }), Ok(i64::from(wanted.bits())));
    let value = OptionValue::Int(1);
    let set = Call::SetSockOpt { fd, option: SocketOption::NoDelay, value: value.clone() };
    assert_eq!(done(&mut host, set), Ok(0));
    let got = returned(&mut host, Call::GetSockOpt { fd, option: SocketOption::NoDelay });
    assert_eq!((got.value, got.out), (Ok(0), Filled::Option(value)));
    assert_eq!(host.tcp_info(fd).map(|info| info.tcpi_state), Ok(1));
    assert_eq!(done(&mut host, Call::Shutdown { fd, how: Shut::Write }), Ok(0));
    let fin = only(&mut host).tcp;
    assert_eq!((fin.seq.raw(), fin.flags), (isn + 1, TcpFlags::FIN | TcpFlags::ACK));
    assert_eq!(done(&mut host, Call::Close { fd: 77 }), Err(Errno::EBADF));
    assert_eq!(host.tcp_info(77), Err(Errno::EBADF));
}

#[test]
fn host_has_the_scripts_addresses() {
    let v6 = |last| {
        whimbrel_wire::Address::from(std::net::Ipv6Addr::new(0xfd3d, 0, 0, 0, 0, 0, 0, last))
    };
    let network = Network {
        local: v6(1),
        prefix_len: 64,
        gateway: v6(2),
        remote: whimbrel_wire::Address::from(std::net::Ipv6Addr::new(0xfd3e, 0, 0, 0, 0, 0, 0, 1)),
        mtu: 1520,
    };
    let mut host = ShardHost::new(&network, whimbrel_tcp::Tunables::default()).unwrap();
    let socket = Call::Socket {
        domain: whimbrel_posix::Domain::Inet6,
        kind: whimbrel_posix::SocketType::Stream,
        flags: whimbrel_posix::SocketFlags::NONE,
        protocol: whimbrel_posix::Protocol::Default,
    };
    let fd = done(&mut host, socket).unwrap() as i32;
    blocked(&mut host, Call::Connect { fd, to: Endpoint::new(network.remote, 80) });
    let (_, packet) = host.poll_packet().expect("a SYN");
    let (ip, tcp) = whimbrel_wire::IpHeader::parse(&packet).unwrap();
    assert_eq!((ip.src, ip.dst), (network.local, network.remote));
    assert_eq!(ip.src.family(), Family::V6);
    let (syn, _) = whimbrel_wire::tcp::TcpHeader::parse(tcp).unwrap();
    assert_eq!(syn.options.mss.map(whimbrel_wire::Mss::get), Some(1460));
}
