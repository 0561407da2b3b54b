//! Sockets of `SOCK_DGRAM`.

use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use crate::{
    BlockedOn, Domain, EpollEvents, EpollOp, EpollReport, Errno, Fcntl, Fd, FileFlags, Incoming,
    Ioctl, MsgFlags, OptionValue, Outcome, Outgoing, PollEvents, PollFd, Protocol, ReceivedFrom,
    Shut, SocketFlags, SocketOption, SocketType, Sockets,
};

const NONE: MsgFlags = MsgFlags::NONE;
const HERE: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const THERE: Address = Address::from_v4_bytes([10, 0, 0, 2]);

/// Two hosts with a process each, without delay between them.
struct Pair {
    near: Sockets,
    far: Sockets,
}

impl Pair {
    fn new() -> Self {
        Self { near: process(HERE), far: process(THERE) }
    }

    /// Delivers the datagrams and the answers to them.
    fn run(&mut self) {
        for _ in 0..8 {
            carry(&mut self.near, &mut self.far);
            carry(&mut self.far, &mut self.near);
        }
    }

    /// Closes everything, and checks that nothing is left.
    fn end(mut self) {
        for process in [&mut self.near, &mut self.far] {
            let open: Vec<_> = process.descriptors().collect();
            for fd in open {
                assert_eq!(process.close(fd), Outcome::Done(Ok(())));
            }
            assert_eq!(process.leftovers(), 0);
            assert_eq!(process.shard().census().udp_sockets, 0);
        }
    }
}

fn process(addr: Address) -> Sockets {
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Sockets::new(Shard::new(config).expect("valid"))
}

fn carry(from: &mut Sockets, to: &mut Sockets) {
    let mut batch = TxBatch::new(64);
    while from.shard_mut().tx(&mut batch) || !batch.is_empty() {
        for packet in batch.pending() {
            let packet = packet.to_vec();
            let frame = RxFrame::new(&packet, SegMeta::SINGLE);
            to.shard_mut().rx(Instant::ZERO, &[frame]);
        }
        batch.consume(batch.pending().len());
    }
    from.drain_events();
    to.drain_events();
}

fn socket(process: &mut Sockets) -> Fd {
    process.socket(Domain::Inet, SocketType::Dgram, SocketFlags::NONE, Protocol::Udp).expect("room")
}

fn at(addr: Address, port: u16) -> Endpoint {
    Endpoint::new(addr, port)
}

fn send(process: &mut Sockets, fd: Fd, data: &[u8], to: Option<Endpoint>) -> Result<usize, Errno> {
    let mut out = Outgoing::new(Bytes::copy_from_slice(data));
    match process.send_to(fd, &mut out, NONE, to) {
        Outcome::Done(done) => done,
        Outcome::Block(wait) => panic!("{wait:?}"),
    }
}

fn recv(process: &mut Sockets, fd: Fd, most: usize) -> Result<(Vec<u8>, ReceivedFrom), Errno> {
    let mut into = Incoming::new(most);
    match process.recv_from(fd, &mut into, MsgFlags::MSG_DONTWAIT) {
        Outcome::Done(done) => done.map(|from| (into.to_vec(), from)),
        Outcome::Block(wait) => panic!("{wait:?}"),
    }
}

fn int(value: i32) -> OptionValue {
    OptionValue::Int(value)
}

#[test]
fn datagrams_carry_their_senders_address() {
    let mut pair = Pair::new();
    let (near, far) = (socket(&mut pair.near), socket(&mut pair.far));
    pair.far.bind(far, at(THERE, 53)).expect("free");
    assert_eq!(pair.far.bind(far, at(THERE, 54)), Err(Errno::EINVAL), "bound already");
    // The first sending call binds.
    assert_eq!(pair.near.getsockname(near).expect("open").port, 0);
    assert_eq!(send(&mut pair.near, near, b"query", Some(at(THERE, 53))), Ok(5));
    let port = pair.near.getsockname(near).expect("open").port;
    pair.run();
    assert_eq!(pair.far.ioctl(far, Ioctl::Fionread), Ok(5));
    let (data, from) = recv(&mut pair.far, far, 100).expect("received");
    assert_eq!((&data[..], from.from), (&b"query"[..], Some(at(HERE, port))));
    // Bytes that do not fit are lost, and reported as such.
    assert_eq!(send(&mut pair.far, far, b"a long answer", from.from), Ok(13));
    assert_eq!(send(&mut pair.far, far, b"", from.from), Ok(0));
    pair.run();
    let (data, from) = recv(&mut pair.near, near, 6).expect("received");
    assert_eq!((&data[..], from.is_truncated, from.len), (&b"a long"[..], true, 6));
    let (data, from) = recv(&mut pair.near, near, 6).expect("an empty one");
    assert_eq!((data.len(), from.from), (0, Some(at(THERE, 53))));
    assert_eq!(recv(&mut pair.near, near, 6), Err(Errno::EAGAIN));
    pair.end();
}

#[test]
fn connected_socket_receives_from_its_peer_only() {
    let mut pair = Pair::new();
    let (near, far) = (socket(&mut pair.near), socket(&mut pair.far));
    assert_eq!(send(&mut pair.near, near, b"x", None), Err(Errno::EDESTADDRREQ));
    assert_eq!(pair.near.getpeername(near), Err(Errno::ENOTCONN));
    assert_eq!(pair.near.connect(near, at(THERE, 53)), Outcome::Done(Ok(())));
    assert_eq!(pair.near.getpeername(near), Ok(at(THERE, 53)));
    let local = pair.near.getsockname(near).expect("bound");
    assert_eq!(local.addr, HERE);
    // The host does not exist: the error comes once, by SO_ERROR or by the next call.
    for told_by_option in [true, false] {
        assert_eq!(send(&mut pair.near, near, b"anybody?", None), Ok(8));
        pair.run();
        assert_eq!(poll(&mut pair.near, near), PollEvents::POLLERR | WRITABLE);
        let refused = Errno::ECONNREFUSED;
        if told_by_option {
            let told = pair.near.getsockopt(near, SocketOption::Error);
            assert_eq!(told, Ok(int(refused.number())));
            assert_eq!(pair.near.getsockopt(near, SocketOption::Error), Ok(int(0)));
        } else {
            assert_eq!(recv(&mut pair.near, near, 8), Err(refused));
        }
        assert_eq!(poll(&mut pair.near, near), WRITABLE);
    }
    pair.far.bind(far, at(THERE, 54)).expect("free");
    assert_eq!(send(&mut pair.far, far, b"stranger", Some(local)), Ok(8));
    pair.run();
    assert_eq!(recv(&mut pair.near, near, 8), Err(Errno::EAGAIN));
    pair.near.disconnect(near).expect("open");
    assert_eq!(send(&mut pair.far, far, b"stranger", Some(local)), Ok(8));
    pair.run();
    assert_eq!(recv(&mut pair.near, near, 8).expect("received").0, b"stranger");
    pair.end();
}

const WRITABLE: PollEvents =
    PollEvents::from_bits(PollEvents::POLLOUT.bits() | PollEvents::POLLWRNORM.bits());
const READABLE: PollEvents =
    PollEvents::from_bits(PollEvents::POLLIN.bits() | PollEvents::POLLRDNORM.bits());

/// All events of a descriptor.
fn poll(process: &mut Sockets, fd: Fd) -> PollEvents {
    let events = READABLE | WRITABLE;
    let mut fds = [PollFd { fd, events, revents: PollEvents::NONE }];
    let _ = process.poll(&mut fds, Instant::ZERO);
    fds[0].revents
}

#[test]
fn empty_receive_waits_for_a_datagram() {
    let mut pair = Pair::new();
    let (near, far) = (socket(&mut pair.near), socket(&mut pair.far));
    pair.far.bind(far, at(THERE, 53)).expect("free");
    let epoll = pair.far.epoll_create().expect("room");
    let watch = EpollReport { events: EpollEvents::EPOLLIN, data: 7 };
    pair.far.epoll_ctl(epoll, EpollOp::Add, far, watch).expect("watched");
    let mut into = Incoming::new(100);
    let blocked = pair.far.recv(far, &mut into, NONE);
    let wait = BlockedOn::Readable(far);
    assert_eq!(blocked, Outcome::Block(wait));
    assert!(!pair.far.may_go_on(&wait));
    assert_eq!(poll(&mut pair.far, far), WRITABLE);
    assert_eq!(send(&mut pair.near, near, b"now", Some(at(THERE, 53))), Ok(3));
    pair.run();
    assert!(pair.far.may_go_on(&wait));
    assert_eq!(poll(&mut pair.far, far), READABLE | WRITABLE);
    match pair.far.epoll_wait(epoll, 4, Instant::ZERO) {
        Outcome::Done(Ok(reports)) => assert_eq!((reports.len(), reports[0].data), (1, 7)),
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.far.recv(far, &mut into, MsgFlags::MSG_PEEK), Outcome::Done(Ok(3)));
    assert_eq!(pair.far.recv(far, &mut into, NONE), Outcome::Done(Ok(3)));
    assert_eq!(into.to_vec(), b"now");
    // A non-blocking one returns EAGAIN.
    pair.far.fcntl(far, Fcntl::SetFl(FileFlags::O_NONBLOCK)).expect("open");
    assert_eq!(pair.far.recv(far, &mut into, NONE), Outcome::fail(Errno::EAGAIN));
    pair.end();
}

#[test]
fn full_send_buffer_makes_the_sender_wait() {
    let mut pair = Pair::new();
    let near = socket(&mut pair.near);
    pair.near.setsockopt(near, SocketOption::SendBuffer, &int(4_096)).expect("open");
    assert_eq!(pair.near.getsockopt(near, SocketOption::SendBuffer), Ok(int(8_192)));
    pair.near.connect(near, at(THERE, 53)).unwrap_done();
    let mut sent = 0;
    let wait = loop {
        let mut out = Outgoing::new(Bytes::from_static(&[1; 1_000]));
        match pair.near.send(near, &mut out, NONE) {
            Outcome::Done(done) => sent += done.expect("room"),
            Outcome::Block(wait) => break wait,
        }
    };
    assert_eq!((wait, sent), (BlockedOn::Writable(near), 7_000));
    assert!(!pair.near.may_go_on(&wait));
    let full = pair.near.send(near, &mut Outgoing::new(Bytes::new()), MsgFlags::MSG_DONTWAIT);
    assert_eq!(full, Outcome::fail(Errno::EAGAIN));
    pair.run();
    assert!(pair.near.may_go_on(&wait));
    pair.end();
}

trait Unwrap {
    fn unwrap_done(self);
}

impl Unwrap for Outcome<()> {
    fn unwrap_done(self) {
        assert_eq!(self, Outcome::Done(Ok(())));
    }
}

#[test]
fn options_are_those_that_were_set_and_others_are_refused() {
    let mut pair = Pair::new();
    let near = socket(&mut pair.near);
    for (option, value, told) in [
        (SocketOption::Ttl, 9, 9),
        (SocketOption::Ttl, -1, 64),
        (SocketOption::Tos, 0xb8, 0xb8),
        (SocketOption::RecvBuffer, 5_000, 10_000),
        (SocketOption::ReuseAddr, 1, 1),
        (SocketOption::MtuDiscover, 2, 2),
        (SocketOption::Segment, 1_200, 1_200),
        (SocketOption::Segment, 0, 0),
    ] {
        pair.near.setsockopt(near, option, &int(value)).expect("known");
        assert_eq!(pair.near.getsockopt(near, option), Ok(int(told)), "{option:?}");
    }
    assert_eq!(pair.near.getsockopt(near, SocketOption::Type), Ok(int(2)));
    assert_eq!(pair.near.getsockopt(near, SocketOption::ProtocolOf), Ok(int(17)));
    for option in [SocketOption::NoDelay, SocketOption::ReusePort, SocketOption::UnicastHops] {
        assert_eq!(pair.near.setsockopt(near, option, &int(1)), Err(Errno::ENOPROTOOPT));
    }
    assert_eq!(pair.near.setsockopt(near, SocketOption::Ttl, &int(256)), Err(Errno::EINVAL));
    assert_eq!(pair.near.setsockopt(near, SocketOption::Segment, &int(65_536)), Err(Errno::EINVAL));
    // Without fragments: as large as the path carries.
    let large = [0; 1_473];
    assert_eq!(send(&mut pair.near, near, &large, Some(at(THERE, 53))), Err(Errno::EMSGSIZE));
    assert_eq!(send(&mut pair.near, near, &large[1..], Some(at(THERE, 53))), Ok(1_472));
    pair.end();
}

#[test]
fn invalid_datagram_calls_fail_as_on_linux() {
    let mut pair = Pair::new();
    let (near, other) = (socket(&mut pair.near), socket(&mut pair.near));
    let to = |bytes, port| Some(at(Address::from_v4_bytes(bytes), port));
    for (to, errno) in [
        (to([255; 4], 67), Errno::EACCES),
        (to([10, 0, 0, 255], 67), Errno::EACCES),
        (to([224, 0, 0, 251], 5_353), Errno::ENETUNREACH),
        (to([192, 0, 2, 1], 53), Errno::ENETUNREACH),
        (to([10, 0, 0, 2], 0), Errno::EINVAL),
    ] {
        assert_eq!(send(&mut pair.near, near, b"x", to), Err(errno));
    }
    let too_long = vec![0; 65_508];
    assert_eq!(send(&mut pair.near, near, &too_long, Some(at(THERE, 53))), Err(Errno::EMSGSIZE));
    assert_eq!(pair.near.bind(other, at(THERE, 53)), Err(Errno::EADDRNOTAVAIL));
    let taken = pair.near.getsockname(near).expect("bound").port;
    assert_eq!(pair.near.bind(other, at(HERE, taken)), Err(Errno::EADDRINUSE));
    assert_eq!(pair.near.listen(other, 1), Err(Errno::EOPNOTSUPP));
    assert_eq!(pair.near.shutdown(other, Shut::Write), Err(Errno::ENOTCONN));
    pair.near.connect(other, at(THERE, 53)).unwrap_done();
    pair.near.shutdown(other, Shut::Both).expect("connected");
    assert_eq!(send(&mut pair.near, other, b"x", None), Err(Errno::EPIPE));
    assert_eq!(recv(&mut pair.near, other, 4).expect("the end").1.len, 0);
    // Both have the shared options; the last has those of both.
    let (one, two) = (socket(&mut pair.near), socket(&mut pair.near));
    for fd in [one, two] {
        pair.near.setsockopt(fd, SocketOption::ReuseAddr, &int(1)).expect("known");
        pair.near.bind(fd, at(HERE, 99)).expect("shared");
    }
    pair.end();
}

#[test]
fn send_over_segment_size_becomes_several_datagrams() {
    let mut pair = Pair::new();
    let near = socket(&mut pair.near);
    let far = socket(&mut pair.far);
    pair.far.bind(far, at(THERE, 53)).expect("free");
    pair.near.setsockopt(near, SocketOption::Segment, &int(5)).expect("known");
    assert_eq!(send(&mut pair.near, near, b"whimbrel", Some(at(THERE, 53))), Ok(8));
    pair.run();
    for part in ["whimb", "rel"] {
        let (received, _) = recv(&mut pair.far, far, 64).expect("a datagram");
        assert_eq!(received, part.as_bytes());
    }
    // More than 64 at once, and more than the path carries of one.
    let many = send(&mut pair.near, near, &[0; 5 * 64 + 1], Some(at(THERE, 53)));
    assert_eq!(many, Err(Errno::EINVAL));
    pair.near.setsockopt(near, SocketOption::Segment, &int(1_473)).expect("known");
    let large = send(&mut pair.near, near, &[0; 3_000], Some(at(THERE, 53)));
    assert_eq!(large, Err(Errno::EMSGSIZE));
    pair.end();
}
