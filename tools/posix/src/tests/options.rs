//! Options: those that take effect, and those that are refused.

use std::time::Duration;

use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::{ReceiveWindow, ToldBuffers};

use super::world::{Side, World, get, nonblocking, send_now, server_at, set, stream};
use crate::state::number_of;
use crate::{
    Errno, Fd, Incoming, MsgFlags, OptionValue, Outcome, SocketFlags, SocketOption, TcpInfo,
};

#[test]
fn unsupported_options_are_refused() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    let supported = [
        SocketOption::ReuseAddr,
        SocketOption::SendBuffer,
        SocketOption::RecvBuffer,
        SocketOption::KeepAlive,
        SocketOption::NoDelay,
        SocketOption::Cork,
        SocketOption::OobInline,
        SocketOption::Linger,
        SocketOption::Congestion,
        SocketOption::ReusePort,
        SocketOption::MaxSeg,
        SocketOption::KeepIdle,
        SocketOption::KeepInterval,
        SocketOption::KeepCount,
        SocketOption::SynCount,
        SocketOption::Linger2,
        SocketOption::DeferAccept,
        SocketOption::WindowClamp,
        SocketOption::QuickAck,
        SocketOption::UserTimeOut,
        SocketOption::NotSentLowAt,
        SocketOption::MaxPacingRate,
        SocketOption::Tos,
        SocketOption::Ttl,
        SocketOption::BindAddressNoPort,
        SocketOption::FastOpen,
        SocketOption::FastOpenConnect,
    ];
    for option in SocketOption::ALL {
        let set = world.client.setsockopt(fd, *option, &OptionValue::Int(1));
        if *option == SocketOption::FastOpenKey {
            assert_eq!(set, Err(Errno::EINVAL), "a number is no key");
        } else if !supported.contains(option) {
            assert_eq!(set, Err(Errno::ENOPROTOOPT), "{}", option.name());
        }
    }
    assert_eq!(world.client.getsockopt(fd, SocketOption::Mark), Err(Errno::ENOPROTOOPT));
    world.end();
}

#[test]
fn pacing_rate_reads_back_and_minus_one_is_any() {
    let (mut world, _, client, _) = World::joined();
    let option = SocketOption::MaxPacingRate;
    assert_eq!(world.client.getsockopt(client, option), Ok(OptionValue::Int(-1)));
    for (set, told) in [(1_000_000, 1_000_000), (-2, -2), (0, -1), (5_000, 5_000), (-1, -1)] {
        assert_eq!(world.client.setsockopt(client, option, &OptionValue::Int(set)), Ok(()));
        assert_eq!(world.client.getsockopt(client, option), Ok(OptionValue::Int(told)));
    }
    world.end();
}

#[test]
fn congestion_control_is_set_by_name() {
    let (mut world, listener, client, server) = World::joined();
    let [cubic, reno, none] = ["cubic", "reno", "vegas"].map(|name| OptionValue::Text(name.into()));
    let option = SocketOption::Congestion;
    for fd in [listener, server] {
        assert_eq!(world.server.getsockopt(fd, option), Ok(cubic.clone()), "the tunable's");
    }
    assert_eq!(world.client.setsockopt(client, option, &none), Err(Errno::ENOENT));
    assert_eq!(world.client.getsockopt(client, option), Ok(cubic));
    for name in [&reno, &reno] {
        assert_eq!(world.client.setsockopt(client, option, name), Ok(()));
        assert_eq!(world.client.getsockopt(client, option), Ok(reno.clone()));
    }
    // Accepted connections inherit a listener's options.
    assert_eq!(world.server.setsockopt(listener, option, &reno), Ok(()));
    let (_, accepted) = world.connected(listener);
    assert_eq!(world.server.getsockopt(accepted, option), Ok(reno));
    world.end();
}

#[test]
fn socket_properties_can_be_read() {
    let (mut world, listener, client, server) = World::joined();
    assert_eq!(get(&mut world.server, listener, SocketOption::AcceptConn), 1);
    assert_eq!(get(&mut world.server, server, SocketOption::AcceptConn), 0);
    assert_eq!(get(&mut world.client, client, SocketOption::Type), 1);
    assert_eq!(get(&mut world.client, client, SocketOption::DomainOf), 2);
    assert_eq!(get(&mut world.client, client, SocketOption::ProtocolOf), 6);
    assert_eq!(get(&mut world.client, client, SocketOption::MaxSeg), 1448);
    assert_eq!(get(&mut world.server, listener, SocketOption::MaxSeg), 536);
    assert_eq!(get(&mut world.server, server, SocketOption::ReuseAddr), 1, "inherited");
    assert_eq!(get(&mut world.client, client, SocketOption::KeepIdle), 7200);
    world.end();
}

#[test]
fn buffer_sizes_are_reported_doubled_and_limit_windows() {
    let mut world = World::with(&super::world::exact());
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::RecvBuffer, 5_000);
    set(&mut world.client, fd, SocketOption::SendBuffer, 3_000);
    assert_eq!(get(&mut world.client, fd, SocketOption::RecvBuffer), 10_000);
    assert_eq!(get(&mut world.client, fd, SocketOption::SendBuffer), 6_000);
    world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
    let info = world.client.tcp_info(fd).expect("connected");
    assert_eq!((info.tcpi_rcv_wnd, info.tcpi_rcv_wscale), (5_000, 0));
    assert_eq!(send_now(&mut world.client, fd, &[0; 9_000]), Ok(3_000));
    set(&mut world.client, fd, SocketOption::SendBuffer, -1);
    assert_eq!(send_now(&mut world.client, fd, &[0; 9_000]), Ok(9_000));
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    let server = accepted.expect("a connection").fd;
    let mut into = Incoming::new(12_000);
    let read = world.call(Side::Server, |it| it.recv(server, &mut into, MsgFlags::MSG_WAITALL));
    assert_eq!(read, Ok(12_000));
    world.end();
}

#[test]
fn rounded_up_buffer_is_reported() {
    let rules = Tunables {
        told_buffers: ToldBuffers::AsSet,
        recv_window: ReceiveWindow::FullSegments,
        recv_buffer: 65_536,
        ..Tunables::default()
    };
    let mut world = World::with(&rules);
    let listener = world.listen(8);
    assert_eq!(get(&mut world.server, listener, SocketOption::RecvBuffer), 65_536);
    let (client, server) = world.connected(listener);
    assert_eq!(get(&mut world.client, client, SocketOption::RecvBuffer), 45 * 1_460);
    assert_eq!(get(&mut world.server, server, SocketOption::RecvBuffer), 45 * 1_460);
    assert_eq!(get(&mut world.server, listener, SocketOption::RecvBuffer), 65_536);
    world.end();
}

#[test]
fn exact_sizes_are_reported_undoubled() {
    let rules = Tunables { told_buffers: ToldBuffers::AsSet, ..Tunables::default() };
    let mut world = World::with(&rules);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::RecvBuffer, 5_000);
    assert_eq!(get(&mut world.client, fd, SocketOption::RecvBuffer), 5_000);
    assert_eq!(get(&mut world.client, fd, SocketOption::SendBuffer), 256 << 10);
    world.end();
}

#[test]
fn small_segments_leave_at_once_without_nagle() {
    for no_delay in [0, 1] {
        let (mut world, _, client, server) = World::joined();
        set(&mut world.client, client, SocketOption::NoDelay, no_delay);
        for _ in 0..2 {
            send_now(&mut world.client, client, b"tick").expect("room");
            world.run(Duration::from_micros(100));
        }
        world.run(Duration::from_micros(1_500));
        let arrived = world.server.ioctl(server, crate::Ioctl::Inq);
        assert_eq!(arrived, Ok(if no_delay == 1 { 8 } else { 4 }));
        world.end();
    }
}

#[test]
fn keep_alive_detects_a_dead_peer_unless_off() {
    let rules = Tunables {
        keepalive_time: Duration::from_secs(10),
        keepalive_interval: Duration::from_secs(1),
        keepalive_probes: 3,
        ..Tunables::default()
    };
    for (switches, expected) in [(&[1][..], Errno::ETIMEDOUT.number()), (&[1, 0], 0), (&[], 0)] {
        let mut world = World::with(&rules);
        let listener = world.listen(8);
        let fd = stream(&mut world.client);
        for value in switches {
            set(&mut world.client, fd, SocketOption::KeepAlive, *value);
        }
        world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
        assert!(world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE)).is_ok());
        world.cut = true;
        world.run(Duration::from_secs(20));
        assert_eq!(get(&mut world.client, fd, SocketOption::Error), expected, "{switches:?}");
        world.cut = false;
        world.end();
    }
}

fn info(world: &World, fd: Fd) -> TcpInfo {
    world.client.tcp_info(fd).expect("a socket")
}

#[test]
fn tcp_info_matches_the_connection() {
    let mut world = World::new();
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    assert_eq!(info(&world, fd).tcpi_state, 7);
    nonblocking(&mut world.client, fd);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EINPROGRESS));
    assert_eq!(info(&world, fd).tcpi_state, number_of(whimbrel_tcp::conn::State::SynSent).into());
    world.run_until_quiet();
    let connected = info(&world, fd);
    assert_eq!((connected.tcpi_state, connected.tcpi_options), (1, 7));
    assert_eq!((connected.tcpi_snd_mss, connected.tcpi_advmss), (1448, 1448));
    assert_eq!((connected.tcpi_snd_cwnd, connected.tcpi_snd_ssthresh), (10, 0x7fff_ffff));
    assert_eq!((connected.tcpi_rtt, connected.tcpi_unacked), (2_000, 0));
    let listening = world.server.tcp_info(listener).expect("a socket");
    assert_eq!((listening.tcpi_state, listening.tcpi_unacked), (10, 1));

    send_now(&mut world.client, fd, &[0; 20 * 1448]).expect("room");
    assert_eq!(info(&world, fd).tcpi_notsent_bytes, 20 * 1448);
    world.run(Duration::from_micros(1));
    assert_eq!((info(&world, fd).tcpi_unacked, info(&world, fd).tcpi_notsent_bytes), (10, 14_480));
    world.cut = true;
    world.run(Duration::from_millis(300));
    let silent = info(&world, fd);
    assert_eq!((silent.tcpi_ca_state, silent.tcpi_retransmits, silent.tcpi_backoff), (4, 1, 1));
    // CUBIC keeps seven tenths of 10 segments.
    assert_eq!((silent.tcpi_snd_cwnd, silent.tcpi_snd_ssthresh), (1, 7));
    assert_eq!(silent.field("tcpi_snd_cwnd"), Some(1));
    assert_eq!(silent.field("tcpi_rcv_space"), None, "the stack does not know");
    world.cut = false;
    world.end();
}
