//! Time-outs and numbers of attempts, by socket.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_stack::shard::SocketState;
use whimbrel_wire::tcp::TcpFlags;

use super::world::{Side, World, get, nonblocking, recv_now, send_now, server_at, set, stream};
use crate::{Errno, Fd, OptionValue, SocketFlags, SocketOption};

fn error(world: &mut World, fd: Fd) -> i32 {
    get(&mut world.client, fd, SocketOption::Error)
}

/// Times at which the client sent, milliseconds after `since`, rounded down to ten: timers run late
/// by up to one.
fn when(world: &World, since: Duration) -> Vec<u64> {
    let millis = |sent: super::world::Sent| sent.at.as_nanos() / 1_000_000;
    let since = since.as_millis() as u64;
    world.sent_by(Side::Client).into_iter().map(|sent| (millis(sent) - since) / 10 * 10).collect()
}

fn now(world: &World) -> Duration {
    Duration::from_nanos(world.now.as_nanos())
}

#[test]
fn keep_alive_goes_by_the_times_of_its_socket() {
    let (mut world, _, client, _) = World::joined();
    for (option, value) in [
        (SocketOption::KeepIdle, 5),
        (SocketOption::KeepInterval, 2),
        (SocketOption::KeepCount, 3),
        (SocketOption::KeepAlive, 1),
    ] {
        set(&mut world.client, client, option, value);
        assert_eq!(get(&mut world.client, client, option), value);
    }
    let start = now(&world);
    world.log.clear();
    world.cut = true;
    world.run(Duration::from_secs(10));
    assert_eq!(when(&world, start), [5_000, 7_000, 9_000]);
    assert_eq!(error(&mut world, client), 0);
    world.run(Duration::from_secs(2));
    assert_eq!(error(&mut world, client), Errno::ETIMEDOUT.number());
    world.cut = false;
    world.end();
}

#[test]
fn shorter_keepidle_counts_from_last_segment() {
    let (mut world, _, client, _) = World::joined();
    let start = now(&world);
    set(&mut world.client, client, SocketOption::KeepAlive, 1);
    world.run(Duration::from_secs(8));
    world.log.clear();
    set(&mut world.client, client, SocketOption::KeepIdle, 10);
    world.run(Duration::from_secs(3));
    let sent = when(&world, start);
    assert_eq!(sent.len(), 1, "one probe, and its answer");
    assert!((9_990..=10_010).contains(&sent[0]), "{sent:?}");
    world.end();
}

#[test]
fn listener_hands_on_its_keep_alive() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::KeepAlive, 1);
    set(&mut world.server, listener, SocketOption::KeepIdle, 4);
    let (_, server) = world.connected(listener);
    assert_eq!(get(&mut world.server, server, SocketOption::KeepIdle), 4);
    world.run_until_quiet();
    world.log.clear();
    world.run(Duration::from_secs(5));
    assert_eq!(world.sent_by(Side::Server).len(), 1, "a probe");
    assert_eq!(world.sent_by(Side::Client).len(), 1, "its answer");
    world.end();
}

#[test]
fn user_timeout_ends_unacknowledged_connection() {
    let (mut world, _, client, _) = World::joined();
    set(&mut world.client, client, SocketOption::UserTimeOut, 3_000);
    assert_eq!(get(&mut world.client, client, SocketOption::UserTimeOut), 3_000);
    world.cut = true;
    send_now(&mut world.client, client, b"lost").expect("room");
    world.run(Duration::from_millis(2_990));
    assert_eq!(error(&mut world, client), 0);
    world.run(Duration::from_millis(20));
    assert_eq!(error(&mut world, client), Errno::ETIMEDOUT.number());
    world.cut = false;
    world.end();
}

#[test]
fn user_time_out_may_be_longer_than_the_stacks() {
    let rules = whimbrel_tcp::Tunables { retries: 2, ..whimbrel_tcp::Tunables::default() };
    for (timeout, expected) in [(0, Errno::ETIMEDOUT.number()), (100_000, 0)] {
        let mut world = World::with(&rules);
        let listener = world.listen(8);
        let (client, _) = world.connected(listener);
        set(&mut world.client, client, SocketOption::UserTimeOut, timeout);
        world.cut = true;
        send_now(&mut world.client, client, b"lost").expect("room");
        world.run(Duration::from_secs(50));
        assert_eq!(error(&mut world, client), expected, "{timeout}");
        world.cut = false;
        world.end();
    }
}

#[test]
fn user_timeout_ends_wait_for_a_closed_window() {
    let (mut world, _, client, server) = World::joined_with(&super::world::exact());
    set(&mut world.client, client, SocketOption::UserTimeOut, 20_000);
    let more = std::vec![0; 256 << 10];
    let mut given = 0;
    while let Ok(taken) = send_now(&mut world.client, client, &more) {
        given += taken;
        world.run_until_quiet();
    }
    assert!(given > 256 << 10, "the peer's buffer is full, and ours");
    world.run(Duration::from_secs(18));
    assert_eq!(error(&mut world, client), 0, "probes are answered");
    world.run(Duration::from_secs(4));
    assert_eq!(error(&mut world, client), Errno::ETIMEDOUT.number());
    while recv_now(&mut world.server, server, 1 << 20).is_ok_and(|text| !text.is_empty()) {}
    world.end();
}

#[test]
fn syncnt_limits_syn_retransmissions() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::SynCount, 2);
    nonblocking(&mut world.client, fd);
    world.cut = true;
    let start = now(&world);
    let _ = world.client.connect(fd, server_at());
    world.run(Duration::from_secs(20));
    assert_eq!(when(&world, start), [0, 1_000, 3_000]);
    assert_eq!(error(&mut world, fd), Errno::ETIMEDOUT.number());
    world.cut = false;
    world.end();
}

#[test]
fn attempt_to_open_lasts_no_longer_than_the_stack_allows() {
    let rules = whimbrel_tcp::Tunables {
        connect_timeout: Duration::from_secs(5),
        ..whimbrel_tcp::Tunables::default()
    };
    for (timeout, lasts) in [(0, 5), (9_000, 9)] {
        let mut world = World::with(&rules);
        let fd = stream(&mut world.client);
        set(&mut world.client, fd, SocketOption::UserTimeOut, timeout);
        nonblocking(&mut world.client, fd);
        world.cut = true;
        let _ = world.client.connect(fd, server_at());
        world.run(Duration::from_millis(lasts * 1_000 - 10));
        assert_eq!(error(&mut world, fd), 0);
        world.run(Duration::from_millis(20));
        assert_eq!(error(&mut world, fd), Errno::ETIMEDOUT.number());
        world.cut = false;
        world.end();
    }
}

#[test]
fn syncnt_of_listener_limits_syn_ack_repeats() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::SynCount, 1);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::SynCount, 1);
    nonblocking(&mut world.client, fd);
    let _ = world.client.connect(fd, server_at());
    world.run(Duration::from_micros(1_500));
    world.cut = true;
    world.run(Duration::from_secs(30));
    let syn_acks = world.sent_by(Side::Server);
    assert_eq!(syn_acks.len(), 2, "and no third");
    assert_eq!(world.server.shard().census().syn_entries, 0);
    world.cut = false;
    world.end();
}

#[test]
fn linger2_limits_fin_wait_2_of_an_orphan() {
    for (value, before, after) in [(3, 2_900, 200), (-1, 0, 200)] {
        let (mut world, _, client, _) = World::joined();
        set(&mut world.client, client, SocketOption::Linger2, value);
        assert_eq!(get(&mut world.client, client, SocketOption::Linger2), value);
        world.call(Side::Client, |it| it.close(client)).expect("open");
        world.run(Duration::from_millis(3));
        world.run(Duration::from_millis(before));
        let waits = world.count(Side::Client, SocketState::FinWait2);
        assert_eq!(waits, usize::from(value > 0), "{value}");
        world.run(Duration::from_millis(after));
        assert_eq!(world.count(Side::Client, SocketState::FinWait2), 0, "{value}");
        world.end();
    }
}

#[test]
fn listener_that_waits_for_text_hands_out_nothing_before() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::DeferAccept, 5);
    assert_eq!(get(&mut world.server, listener, SocketOption::DeferAccept), 7);
    nonblocking(&mut world.server, listener);
    let client = stream(&mut world.client);
    world.call(Side::Client, |it| it.connect(client, server_at())).expect("a listener");
    world.run(Duration::from_secs(2));
    let accept = |world: &mut World| {
        let accepted = world.server.accept(listener, SocketFlags::NONE).done();
        accepted.expect("it does not block").map(|accepted| accepted.fd)
    };
    assert_eq!(accept(&mut world), Err(Errno::EAGAIN));
    assert_eq!(world.sent_by(Side::Server).len(), 1, "one SYN-ACK was enough");
    send_now(&mut world.client, client, b"hello").expect("room");
    world.run_until_quiet();
    let server = accept(&mut world).expect("text came");
    assert_eq!(recv_now(&mut world.server, server, 9), Ok(b"hello".to_vec()));
    world.end();
}

#[test]
fn defer_accept_ends_after_its_time() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::DeferAccept, 3);
    let client = stream(&mut world.client);
    world.call(Side::Client, |it| it.connect(client, server_at())).expect("a listener");
    world.run(Duration::from_secs(2));
    assert_eq!(world.count(Side::Server, SocketState::SynReceived), 1);
    world.run(Duration::from_secs(2));
    let syn_acks = world.sent_by(Side::Server);
    assert_eq!(syn_acks.iter().filter(|sent| sent.has(TcpFlags::SYN)).count(), 2);
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    assert!(accepted.is_ok(), "the answer to the second SYN-ACK completed it");
    world.end();
}

#[test]
fn invalid_times_are_refused() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    for (option, value) in [
        (SocketOption::KeepIdle, 0),
        (SocketOption::KeepIdle, 32_768),
        (SocketOption::KeepInterval, 0),
        (SocketOption::KeepCount, 128),
        (SocketOption::SynCount, 0),
        (SocketOption::SynCount, 128),
        (SocketOption::UserTimeOut, -1),
    ] {
        let set = world.client.setsockopt(fd, option, &OptionValue::Int(value));
        assert_eq!(set, Err(Errno::EINVAL), "{} {value}", option.name());
    }
    world.end();
}
