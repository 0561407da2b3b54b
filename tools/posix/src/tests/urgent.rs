//! Urgent data, sent and received, by Linux' calls.

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::TcpFlags;

use super::world::{Sent, Side, World, recv_now, recv_with, send_now, set};
use crate::{Errno, Fd, Ioctl, MsgFlags, Outcome, Outgoing, PollEvents, PollFd, SocketOption};

fn send_urgent(world: &mut World, fd: Fd, bytes: &[u8]) {
    let mut out = Outgoing::new(Bytes::copy_from_slice(bytes));
    let flags = MsgFlags::MSG_OOB | MsgFlags::MSG_DONTWAIT;
    assert_eq!(world.client.send(fd, &mut out, flags), Outcome::Done(Ok(bytes.len())));
}

fn oob(world: &mut World, fd: Fd) -> Result<Vec<u8>, Errno> {
    recv_with(&mut world.server, fd, 1, MsgFlags::MSG_OOB)
}

fn poll(world: &mut World, fd: Fd, events: PollEvents) -> PollEvents {
    let mut polled = [PollFd { fd, events, revents: PollEvents::NONE }];
    let _ = world.server.poll(&mut polled, Instant::ZERO);
    polled[0].revents
}

/// Length and urgent pointer of the client's segments with text.
fn pointers(world: &World) -> Vec<(usize, u16)> {
    let texts = world.sent_by(Side::Client).into_iter().filter(|sent| !sent.text.is_empty());
    let pointer = |sent: Sent| {
        assert_eq!(sent.has(TcpFlags::URG), sent.tcp.urgent > 0);
        (sent.text.len(), sent.tcp.urgent)
    };
    texts.map(pointer).collect()
}

#[test]
fn urgent_pointer_follows_urgent_data_until_acknowledged() {
    let (mut world, _, client, server) = World::joined();
    world.log.clear();
    send_now(&mut world.client, client, b"go on ").expect("room");
    send_urgent(&mut world, client, b"stop!");
    send_now(&mut world.client, client, b" and go").expect("room");
    world.run(std::time::Duration::from_micros(1));
    assert_eq!(pointers(&world), [(18, 11)]);
    world.run_until_quiet();
    world.log.clear();
    send_now(&mut world.client, client, b"x").expect("room");
    world.run_until_quiet();
    assert_eq!(pointers(&world), [(1, 0)]);
    recv_now(&mut world.server, server, 99).expect("text");
    world.end();
}

#[test]
fn urgent_data_may_be_longer_than_the_field_reaches() {
    let (mut world, _, client, server) = World::joined();
    set(&mut world.server, server, SocketOption::OobInline, 1);
    world.log.clear();
    let text = std::vec![7; 100_000];
    send_urgent(&mut world, client, &text);
    world.run_until_quiet();
    let pointers = pointers(&world);
    let mut at = 0;
    for (len, pointer) in &pointers {
        assert_eq!(usize::from(*pointer), (text.len() - at).min(65_535));
        at += len;
    }
    assert_eq!(at, text.len());
    assert_eq!(poll(&mut world, server, PollEvents::POLLPRI), PollEvents::POLLPRI);
    assert_eq!(recv_now(&mut world.server, server, 200_000), Ok(text[1..].to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::AtMark), Ok(1));
    assert_eq!(recv_now(&mut world.server, server, 200_000), Ok(std::vec![7]));
    world.end();
}

#[test]
fn urgent_byte_is_read_apart_and_passed_over_in_the_stream() {
    let (mut world, _, client, server) = World::joined();
    assert_eq!(oob(&mut world, server), Err(Errno::EINVAL), "none was announced");
    send_urgent(&mut world, client, b"ab!");
    send_now(&mut world.client, client, b"cd").expect("room");
    world.run_until_quiet();
    assert_eq!(poll(&mut world, server, PollEvents::POLLPRI), PollEvents::POLLPRI);
    let peeked = recv_with(&mut world.server, server, 1, MsgFlags::MSG_OOB | MsgFlags::MSG_PEEK);
    assert_eq!(peeked, Ok(b"!".to_vec()));
    assert_eq!(oob(&mut world, server), Ok(b"!".to_vec()));
    assert_eq!(oob(&mut world, server), Err(Errno::EINVAL), "it was read");
    assert_eq!(poll(&mut world, server, PollEvents::POLLPRI), PollEvents::NONE);
    assert_eq!(recv_now(&mut world.server, server, 99), Ok(b"ab".to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::AtMark), Ok(1));
    assert_eq!(recv_now(&mut world.server, server, 99), Ok(b"cd".to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::AtMark), Ok(0));
    world.end();
}

#[test]
fn urgent_byte_waits_when_the_stream_was_read_beyond_it() {
    let (mut world, _, client, server) = World::joined();
    send_urgent(&mut world, client, b"!");
    world.run_until_quiet();
    let events = PollEvents::POLLIN | PollEvents::POLLPRI;
    assert_eq!(poll(&mut world, server, events), PollEvents::POLLPRI, "nothing else is there");
    assert_eq!(recv_now(&mut world.server, server, 99), Err(Errno::EAGAIN));
    assert_eq!(poll(&mut world, server, events), PollEvents::POLLPRI);
    assert_eq!(oob(&mut world, server), Ok(b"!".to_vec()));
    assert_eq!(poll(&mut world, server, events), PollEvents::NONE);
    send_urgent(&mut world, client, b"?");
    world.run_until_quiet();
    assert_eq!(oob(&mut world, server), Ok(b"?".to_vec()), "the next is another");
    assert_eq!(recv_now(&mut world.server, server, 99), Err(Errno::EAGAIN));
    assert_eq!(oob(&mut world, server), Err(Errno::EINVAL));
    world.end();
}
