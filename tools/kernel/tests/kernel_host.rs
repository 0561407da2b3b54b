//! Scripts' calls and packets against this machine's kernel, each test in its own namespace.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use whimbrel_kernel::KernelHost;
use whimbrel_posix::sockets::{EpollOp, Ioctl, Shut};
use whimbrel_posix::{
    EpollEvents, Errno, FileFlags, Linger, OptionValue, PollEvents, SocketFlags, SocketOption,
};
use whimbrel_script::call::{Call, Filled, Polled, TimeOut};
use whimbrel_script::host::{Administration, Network, ScriptHost, SetError, SocketFilter};
use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::TcpFlags;

use peer::{Peer, bytes, kernel, needs, read, write};

#[path = "common/peer.rs"]
mod peer;

const ACCEPT: fn(i32) -> Call = |fd| Call::Accept { fd, flags: SocketFlags::NONE };

/// Returns the descriptor of a connection that the kernel accepted.
fn accepted(peer: &mut Peer) -> i32 {
    let listener = peer.listener();
    peer.shake_hands();
    peer.value(ACCEPT(listener))
}

fn count(peer: &mut Peer, states: &[&'static str]) -> usize {
    let which = SocketFilter {
        states: states.into(),
        local_port: Some(8080),
        remote_port: Some(40_000),
        port: Some(8080),
    };
    peer.host.count_sockets(&which).unwrap()
}

#[test]
fn passive_handshake_gives_descriptor_and_peer_address() {
    for network in [Network::v4(), Network::v6()] {
        let Some(mut peer) = kernel(&network) else { return };
        let listener = peer.listener();
        peer.shake_hands();
        let returned = peer.call(ACCEPT(listener));
        let fd = i32::try_from(returned.value.unwrap()).unwrap();
        assert_eq!(returned.out, Filled::Peer(peer.remote()));
        let info = peer.host.tcp_info(fd).unwrap();
        assert_eq!(
            (info.tcpi_state, info.tcpi_snd_mss),
            (1, if network == Network::v4() { 536 } else { 1220 })
        );
        assert_eq!(count(&mut peer, &["ESTABLISHED"]), 1);
    }
}

#[test]
fn data_goes_both_ways_and_full_segments_come_one_by_one() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    peer.send(TcpFlags::ACK | TcpFlags::PSH, b"whimbrel");
    assert_eq!(peer.receive().text, b"");
    let unread = peer.call(Call::Ioctl { fd, request: Ioctl::Fionread });
    assert_eq!(unread.out, Filled::Number(8));
    assert_eq!(bytes(&peer.call(read(fd, 100))), b"whimbrel");
    assert_eq!(peer.value(write(fd, 1500)), 1500);
    let lengths: Vec<_> = (0..3).map(|_| peer.receive().text.len()).collect();
    assert_eq!(lengths, [536, 536, 428]);
}

#[test]
fn a_blocking_accept_ends_when_the_connection_is_complete() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let listener = peer.listener();
    let accept = peer.blocked(ACCEPT(listener));
    peer.pass(Duration::from_millis(50));
    assert_eq!(peer.host.poll_call(accept), None);
    let begun = peer.host.now();
    peer.shake_hands();
    let (at, returned) = peer.end(accept);
    assert!(at >= begun && at < begun + Duration::from_secs(1), "{begun:?} {at:?}");
    assert!(returned.value.is_ok_and(|fd| fd >= 0 && fd != i64::from(listener)));
}

#[test]
fn a_blocking_read_ends_with_the_text_and_with_a_reset() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    let first = peer.blocked(read(fd, 10));
    peer.send(TcpFlags::ACK, b"text");
    assert_eq!(bytes(&peer.end(first).1), b"text");
    let second = peer.blocked(read(fd, 10));
    peer.send(TcpFlags::RST | TcpFlags::ACK, b"");
    assert_eq!(peer.end(second).1.value, Err(Errno::ECONNRESET));
    assert_eq!(peer.host.tcp_info(fd).unwrap().tcpi_state, 7);
}

#[test]
fn a_connect_that_does_not_block_is_complete_when_so_ready() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = peer.socket(SocketFlags::SOCK_NONBLOCK);
    assert_eq!(peer.value(Call::FcntlGetFl { fd }), 0o4002);
    let to = peer.remote();
    assert_eq!(peer.call(Call::Connect { fd, to }).value, Err(Errno::EINPROGRESS));
    let syn = peer.receive();
    assert_eq!(syn.tcp.flags, TcpFlags::SYN);
    peer.ports.1 = syn.tcp.src_port;
    let polled = Polled { fd, events: PollEvents::POLLOUT, revents: PollEvents::NONE };
    let poll = peer.blocked(Call::Poll { fds: vec![polled], time_out: TimeOut::Never });
    peer.send(TcpFlags::SYN_ACK, b"");
    let ready = Polled { revents: PollEvents::POLLOUT, ..polled };
    assert_eq!(peer.end(poll).1.out, Filled::Polled(vec![ready]));
    let error = peer.call(Call::GetSockOpt { fd, option: SocketOption::Error });
    assert_eq!(error.out, Filled::Option(OptionValue::Int(0)));
    assert_eq!(peer.receive().tcp.flags, TcpFlags::ACK);
}

#[test]
fn a_blocking_connect_ends_with_a_refusal() {
    let Some(mut peer) = kernel(&Network::v6()) else { return };
    let fd = peer.socket(SocketFlags::NONE);
    let connect = peer.blocked(Call::Connect { fd, to: peer.remote() });
    peer.ports.1 = peer.receive().tcp.src_port;
    peer.send(TcpFlags::RST | TcpFlags::ACK, b"");
    assert_eq!(peer.end(connect).1.value, Err(Errno::ECONNREFUSED));
}

#[test]
fn options_are_what_was_set_and_linger_zero_resets() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    for (option, value) in [
        (SocketOption::NoDelay, OptionValue::Int(1)),
        (SocketOption::Congestion, OptionValue::Text("reno".into())),
        (SocketOption::Linger, OptionValue::Linger(Linger::Seconds(0))),
    ] {
        peer.value(Call::SetSockOpt { fd, option, value: value.clone() });
        let read = peer.call(Call::GetSockOpt { fd, option });
        assert_eq!(read.out, Filled::Option(value));
    }
    peer.value(Call::Close { fd });
    assert!(peer.receive().tcp.flags.contains(TcpFlags::RST));
    assert_eq!(peer.call(Call::Close { fd }).value, Err(Errno::EBADF));
}

#[test]
fn epoll_tells_of_the_peers_fin() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    let epoll = peer.value(Call::EpollCreate);
    let events = EpollEvents::EPOLLIN | EpollEvents::EPOLLRDHUP;
    peer.value(Call::EpollCtl { epoll, op: EpollOp::Add, fd, events, data: 77 });
    let wait = |time_out| Call::EpollWait { epoll, most: 8, time_out };
    assert_eq!(peer.value(wait(TimeOut::After(Duration::ZERO))), 0);
    let waiting = peer.blocked(wait(TimeOut::Never));
    peer.send(TcpFlags::FIN | TcpFlags::ACK, b"");
    assert_eq!(peer.end(waiting).1.out, Filled::Epoll(vec![(events, 77)]));
    peer.value(Call::Shutdown { fd, how: Shut::Write });
    let mut fin = peer.receive();
    if fin.tcp.flags == TcpFlags::ACK {
        // On a busy machine the acknowledgment does not wait for the peer's FIN.
        fin = peer.receive();
    }
    assert_eq!((fin.tcp.flags, fin.tcp.ack.raw()), (TcpFlags::FIN | TcpFlags::ACK, peer.next.0));
}

#[test]
fn poll_ends_at_its_timeout_and_rejects_foreign_descriptors() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    // 0 is open in this process, but not by the script.
    let polled = |fd| Polled { fd, events: PollEvents::POLLIN, revents: PollEvents::NONE };
    let poll = |fd, time_out| Call::Poll { fds: vec![polled(fd)], time_out };
    let foreign = peer.call(poll(0, TimeOut::Never));
    let invalid = Polled { revents: PollEvents::POLLNVAL, ..polled(0) };
    assert_eq!(foreign.out, Filled::Polled(vec![invalid]));
    assert_eq!(peer.call(read(0, 1)).value, Err(Errno::EBADF));
    let begun = peer.host.now();
    let waiting = peer.blocked(poll(fd, TimeOut::After(Duration::from_millis(120))));
    let (at, returned) = peer.end(waiting);
    assert_eq!(returned.value, Ok(0));
    assert!(at - begun >= Duration::from_millis(120), "{begun:?} {at:?}");
}

#[test]
fn poll_answers_for_each_and_skips_negative_numbers() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    peer.send(TcpFlags::ACK | TcpFlags::PSH, b"x");
    let polled = |fd| Polled { fd, events: PollEvents::POLLIN, revents: PollEvents::NONE };
    let fds = [-1, fd, i32::MAX].map(polled).to_vec();
    let returned = peer.call(Call::Poll { fds, time_out: TimeOut::Never });
    assert_eq!(returned.value, Ok(2));
    let Filled::Polled(found) = returned.out else { panic!("{returned:?}") };
    let found: Vec<_> = found.iter().map(|polled| polled.revents).collect();
    assert_eq!(found, [PollEvents::NONE, PollEvents::POLLIN, PollEvents::POLLNVAL]);
}

#[test]
fn epoll_wait_refuses_more_events_than_there_is_room_for() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    peer.send(TcpFlags::ACK | TcpFlags::PSH, b"x");
    let (epoll, events) = (peer.value(Call::EpollCreate), EpollEvents::EPOLLIN);
    peer.value(Call::EpollCtl { epoll, op: EpollOp::Add, fd, events, data: 7 });
    let wait = |most| Call::EpollWait { epoll, most, time_out: TimeOut::After(Duration::ZERO) };
    assert_eq!(peer.call(wait(100_000_000)).out, Filled::Epoll(vec![(events, 7)]));
    for most in [0, u32::MAX] {
        assert_eq!(peer.call(wait(most)).value, Err(Errno::EINVAL), "{most}");
    }
}

#[test]
fn a_retransmission_is_stamped_when_it_leaves() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    peer.value(write(fd, 10));
    let (first, second) = (peer.receive(), peer.receive());
    assert_eq!(first.tcp.seq, second.tcp.seq);
    let gap = second.at - first.at;
    assert!(gap > Duration::from_millis(150) && gap < Duration::from_secs(2), "{gap:?}");
}

#[test]
fn settings_are_the_namespaces_own() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_syn_retries").unwrap();
    let before = read();
    peer.host.set("net.ipv4.tcp_syn_retries", "1").unwrap();
    peer.host.set("tcp_window_scaling", "0").unwrap();
    assert_eq!(read(), before);
    assert_eq!(peer.host.set("net.ipv4.tcp_no_such_thing", "1"), Err(SetError::Unknown));
    assert_eq!(peer.host.set("net.core.somaxconn", "1"), Err(SetError::Unknown));
    let refusal = peer.host.set("net.ipv4.tcp_sack", "perhaps").unwrap_err();
    assert!(
        matches!(&refusal, SetError::Refused(text) if text.contains("tcp_sack")),
        "{refusal:?}"
    );
    let fd = peer.socket(SocketFlags::NONE);
    let congestion = peer.call(Call::GetSockOpt { fd, option: SocketOption::Congestion });
    let Filled::Option(OptionValue::Text(name)) = congestion.out else { panic!("{congestion:?}") };
    assert!(["cubic", "reno"].contains(&name.as_str()), "{name}");
}

#[test]
fn connections_are_destroyed_by_state_and_caches_start_empty() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    peer.host.administer(&Administration::PurgeCaches).unwrap();
    let fd = accepted(&mut peer);
    let which = SocketFilter { states: vec!["ESTABLISHED"], ..SocketFilter::default() };
    peer.host.administer(&Administration::Drop(which)).unwrap();
    assert!(peer.receive().tcp.flags.contains(TcpFlags::RST));
    assert_eq!(peer.call(read(fd, 1)).value, Err(Errno::ECONNABORTED));
    assert_eq!(count(&mut peer, &[]), 0);
    peer.host.administer(&Administration::PurgeCaches).unwrap_err();
}

#[test]
fn set_up_takes_no_time_of_the_scripts() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    thread::sleep(Duration::from_millis(20));
    peer.host.set("tcp_sack", "0").unwrap();
    assert_eq!(peer.host.now(), Duration::ZERO);
    peer.host.run_until(Duration::from_millis(30));
    assert!(peer.host.now() >= Duration::from_millis(30));
}

#[test]
fn calls_under_way_end_with_their_host_and_nothing_is_left() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    let listener = peer.socket(SocketFlags::NONE);
    let to = Endpoint::new(Network::v4().local, 8081);
    peer.value(Call::Bind { fd: listener, to });
    peer.value(Call::Listen { fd: listener, backlog: 1 });
    let epoll = peer.value(Call::EpollCreate);
    peer.blocked(read(fd, 1));
    peer.blocked(ACCEPT(listener));
    peer.blocked(Call::EpollWait { epoll, most: 1, time_out: TimeOut::Never });
    let other = peer.socket(SocketFlags::NONE);
    peer.blocked(Call::Connect { fd: other, to: peer.remote() });
    drop(peer);
    let is_call = |task: fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "script call\n")
    };
    let begun = Instant::now();
    // Other tests make calls in parallel.
    while fs::read_dir("/proc/self/task").unwrap().flatten().any(is_call) {
        assert!(begun.elapsed() < Duration::from_secs(5), "threads are left");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn hosts_work_side_by_side() {
    if kernel(&Network::v4()).is_none() {
        return;
    }
    let hosts: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(|| {
                let mut peer = kernel(&Network::v4()).unwrap();
                let fd = accepted(&mut peer);
                peer.value(Call::FcntlSetFl { fd, flags: FileFlags::O_NONBLOCK });
                assert_eq!(peer.call(read(fd, 1)).value, Err(Errno::EAGAIN));
                peer.send(TcpFlags::ACK, b"mine");
                assert_eq!(bytes(&peer.call(read(fd, 9))), b"mine");
            })
        })
        .collect();
    for host in hosts {
        host.join().unwrap();
    }
}

#[test]
fn a_network_that_is_none_is_refused_with_a_remedy() {
    let lone = Network { gateway: Network::v4().remote, ..Network::v4() };
    match KernelHost::new(&lone) {
        Err(error) if error.is_privilege_or_device() => needs::skip(&error.to_string()),
        Err(error) => assert!(error.to_string().contains("same prefix"), "{error}"),
        Ok(_) => panic!("a gateway outside of the network"),
    }
}

#[test]
fn a_blocking_write_goes_on_where_it_was_until_all_is_taken() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let fd = accepted(&mut peer);
    let value = OptionValue::Int(8192);
    peer.value(Call::SetSockOpt { fd, option: SocketOption::SendBuffer, value });
    let writing = peer.blocked(write(fd, 100_000));
    let mut received = 0;
    while received < 100_000 {
        received += peer.receive().text.len();
        peer.send(TcpFlags::ACK, b"");
    }
    assert_eq!((received, peer.end(writing).1.value), (100_000, Ok(100_000)));
}
