use core::time::Duration;

use whimbrel_posix::{
    Domain, EpollEvents, EpollOp, FileFlags, Ioctl, Linger, MsgFlags, OptionValue, PollEvents,
    Protocol, Shut, SocketFlags, SocketOption, SocketType,
};
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::ast::Action;
use crate::call::{Polled, ReadCall, Reading, TimeOut, Unconnected, WriteCall, Writing};
use crate::names::Learned;
use crate::parse::{Defines, parse};

pub(crate) const LOCAL: Endpoint =
    Endpoint::new(Address::from_v4_bytes([192, 168, 0, 1]), Names::PORT);
pub(crate) const REMOTE: Endpoint =
    Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), Names::PORT);

/// The step of a script's line.
pub(crate) fn step(call: &str) -> CallStep {
    let script = parse(&format!("0 {call}"), &Defines::default()).unwrap();
    match script.steps.into_iter().next().unwrap().action {
        Action::Call(step) => step,
        other => panic!("{other:?}"),
    }
}

/// The script's descriptors 3, 4 and 5 are the host's 13, 14 and 15.
fn names() -> Names {
    let mut names = Names::new(Domain::Inet, LOCAL, REMOTE);
    for script in 3..6 {
        names.learn(Learned::Opened { script, host: script + 10 });
    }
    names
}

fn made(call: &str) -> Call {
    lower(&step(call), &names()).unwrap_or_else(|error| panic!("{call}: {error}"))
}

fn refused(call: &str) -> String {
    match lower(&step(call), &names()) {
        Ok(made) => panic!("{call}: {made:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn socket_has_the_scripts_family_by_default() {
    let made_of = |family: &str| {
        made(&format!("socket({family}, SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3"))
    };
    let socket = |domain| Call::Socket {
        domain,
        kind: SocketType::Stream,
        flags: SocketFlags::SOCK_NONBLOCK,
        protocol: Protocol::Tcp,
    };
    assert_eq!(made_of("..."), socket(Domain::Inet));
    assert_eq!(made_of("AF_INET6"), socket(Domain::Inet6));
    assert!(refused("socket(..., SOCK_DGRAM, 0) = 3").contains("not of a stream"));
    assert!(
        refused("socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3")
            .contains("the name IPPROTO_MPTCP is not")
    );
    assert!(refused("socket(77, SOCK_STREAM, 0) = 3").contains("the family 77"));
}

#[test]
fn addresses_that_are_not_written_are_the_scripts_own() {
    assert_eq!(made("bind(3, ..., ...) = 0"), Call::Bind { fd: 13, to: LOCAL });
    assert_eq!(made("connect(3, ..., ...) = 0"), Call::Connect { fd: 13, to: REMOTE });
    let any = "bind(3, {sa_family = AF_INET, sin_port = htons(80), sin_addr = htonl(INADDR_ANY)}, 16) = 0";
    let unspecified = Endpoint::new(Domain::Inet.unspecified(), 80);
    assert_eq!(made(any), Call::Bind { fd: 13, to: unspecified });
    let v6 =
        "connect(3, {sa_family=AF_INET6, sin6_addr=inet_pton(AF_INET6, \"::2\")}, sizeof(x)) = 0";
    let two = "::2".parse::<core::net::IpAddr>().unwrap().into();
    assert_eq!(made(v6), Call::Connect { fd: 13, to: Endpoint::new(two, Names::PORT) });
    assert!(refused("bind(3, NULL, 0) = 0").contains("an address at NULL"));
    assert!(refused("bind(3, ..., 3) = 0").contains("an address of 3 bytes"));
    assert!(refused("bind(3, {sin_zero=0}, ...) = 0").contains("the field sin_zero"));
    assert!(refused("bind(3, {sin_addr=inet_addr(\"x\")}, ...) = 0").contains("x is no address"));
    assert!(refused("bind(3, {sin_port=htons(65536)}, ...) = 0").contains("65536 is no port"));
}

#[test]
fn descriptor_that_is_not_open_is_none_of_the_hosts() {
    assert_eq!(made("close(9) = -1 EBADF (Bad file descriptor)"), Call::Close { fd: Names::NO_FD });
    assert_eq!(made("close(-1) = -1 EBADF"), Call::Close { fd: -1 });
    let mut names = names();
    names.learn(Learned::Closed { script: 3 });
    assert_eq!(lower(&step("close(3) = -1"), &names), Ok(Call::Close { fd: Names::NO_FD }));
}

#[test]
fn plain_calls_keep_their_numbers_and_flags() {
    assert_eq!(made("listen(3, 5) = 0"), Call::Listen { fd: 13, backlog: 5 });
    assert_eq!(made("accept(3, ..., ...) = 4"), Call::Accept { fd: 13, flags: SocketFlags::NONE });
    let accept4 = Call::Accept { fd: 13, flags: SocketFlags::SOCK_NONBLOCK };
    assert_eq!(made("accept4(3, NULL, [16], SOCK_NONBLOCK) = 4"), accept4);
    assert_eq!(made("shutdown(4, SHUT_WR) = 0"), Call::Shutdown { fd: 14, how: Shut::Write });
    assert_eq!(made("fcntl(4, F_GETFL) = 0x2 (flags O_RDWR)"), Call::FcntlGetFl { fd: 14 });
    let flags = FileFlags::O_RDWR | FileFlags::O_NONBLOCK;
    assert_eq!(
        made("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0"),
        Call::FcntlSetFl { fd: 14, flags }
    );
    for (name, request) in
        [("SIOCINQ", Ioctl::Inq), ("FIONREAD", Ioctl::Fionread), ("FIONWRITE", Ioctl::Outq)]
    {
        assert_eq!(made(&format!("ioctl(4, {name}, [10]) = 0")), Call::Ioctl { fd: 14, request });
    }
}

fn receive(call: ReadCall, sizes: &[usize], flags: MsgFlags) -> Call {
    Call::Receive { fd: 14, with: Reading { call, sizes: sizes.to_vec() }, flags }
}

#[test]
fn every_way_to_read_has_its_buffers_and_flags() {
    let none = MsgFlags::NONE;
    assert_eq!(made("read(4, ..., 1000) = 1000"), receive(ReadCall::Read, &[1000], none));
    let two = "readv(4, [{..., 10}, {..., 20}], 2) = 30";
    assert_eq!(made(two), receive(ReadCall::Readv, &[10, 20], none));
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    let peek = "recv(4, ..., 1, MSG_PEEK|MSG_DONTWAIT) = 1";
    assert_eq!(made(peek), receive(ReadCall::Recv, &[1], flags));
    let from = "recvfrom(4, ..., 5, 0, ..., ...) = 5";
    assert_eq!(made(from), receive(ReadCall::RecvFrom, &[5], none));
    let message = "recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 7}], msg_flags=0}, 0) = 7";
    assert_eq!(made(message), receive(ReadCall::RecvMsg, &[7], none));
}

#[test]
fn every_way_to_write_has_its_bytes() {
    let sent = |call, pieces: &[&[u8]], to, flags| {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        Call::Send {
            fd: 14,
            with: Writing { call, pieces, to, unconnected: Unconnected::Fails },
            flags,
        }
    };
    let none = MsgFlags::NONE;
    assert_eq!(made("write(4, ..., 3) = 3"), sent(WriteCall::Write, &[&[0; 3]], None, none));
    assert_eq!(made("write(4, \"abc\", 2) = 2"), sent(WriteCall::Write, &[b"ab"], None, none));
    let two = "writev(4, [{..., 1}, {\"xy\", 2}], 2) = 3";
    assert_eq!(made(two), sent(WriteCall::Writev, &[&[0], b"xy"], None, none));
    let more = sent(WriteCall::Send, &[&[0]], None, MsgFlags::MSG_MORE);
    assert_eq!(made("send(4, ..., 1, MSG_MORE) = 1"), more);
    let open = sent(WriteCall::SendTo, &[&[0]], Some(REMOTE), MsgFlags::MSG_FASTOPEN);
    assert_eq!(made("sendto(4, ..., 1, MSG_FASTOPEN, ..., ...) = 1"), open);
    let message =
        "sendmsg(4, {msg_name(0)=NULL, msg_iov(2)=[{..., 1}, {..., 0}], msg_flags=0}, 0) = 1";
    assert_eq!(made(message), sent(WriteCall::SendMsg, &[&[0], &[]], None, none));
}

#[test]
fn impossible_calls_are_unsupported() {
    for (call, what) in [
        ("write(4, NULL, 9) = -1 EFAULT", "a buffer at NULL is not supported"),
        ("write(4, \"ab\", 3) = 3", "more bytes than the text has"),
        ("read(4, ..., -1) = -1", "a buffer of -1 bytes"),
        ("write(4, ..., 999999999999) = -1", "a buffer of 999999999999 bytes"),
        ("readv(4, [{..., 1}], 2) = 1", "2 of 1 buffers"),
        ("send(4, ..., 1, MSG_EOF) = 1", "the name MSG_EOF is not supported"),
        ("ioctl(4, FIONSPACE, [1]) = 0", "ioctl FIONSPACE is not supported"),
        ("recvmsg(4, {msg_iov=[{...,1}], msg_control=[]}, 0) = 1", "the field msg_control"),
        ("splice(4, 5) = 0", "the call splice is not supported"),
        ("close(4) = -1 EPROCLIM", "the error EPROCLIM is not supported"),
        (
            "setsockopt(4, IPPROTO_TCP, TCP_KEEPINIT, [1], 4) = 0",
            "the option TCP_KEEPINIT of level 6",
        ),
        ("setsockopt(4, SOL_SOCKET, TCP_NODELAY, [1], 4) = 0", "the option TCP_NODELAY of level 1"),
        ("setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 1) = 0", "a value of 1 bytes for TCP_NODELAY"),
        ("setsockopt(4, SOL_TCP, TCP_NODELAY, NULL, 4) = 0", "a value at NULL"),
        ("poll([{fd=4, events=POLLIN}], 2, 0) = 0", "poll of another number"),
        ("close(f(3)) = 0", "f() is not supported"),
    ] {
        assert!(refused(call).contains(what), "{call}: {}", refused(call));
    }
}

#[test]
fn calls_that_make_no_sense_are_invalid() {
    assert_eq!(refused("close(3, 4) = 0"), "close takes 1 arguments, not 2");
    assert_eq!(refused("close(...) = 0"), "a number is expected, not ...");
    assert_eq!(refused("close(99999999999) = 0"), "99999999999 is no int");
    assert_eq!(refused("writev(4, ..., 1) = 0"), "a list of buffers is expected, not ...");
    assert_eq!(refused("close(3) = \"x\""), "a number is expected, not \"x\"");
}

#[test]
fn options_have_numbers_lingers_and_names_for_values() {
    let set = |option, value| Call::SetSockOpt { fd: 14, option, value };
    let keep = "setsockopt(4, SOL_SOCKET, SO_KEEPALIVE, [1], 4) = 0";
    assert_eq!(made(keep), set(SocketOption::KeepAlive, OptionValue::Int(1)));
    let most = "setsockopt(4, SOL_TCP, TCP_NOTSENT_LOWAT, [0xffffffff], 4) = 0";
    assert_eq!(made(most), set(SocketOption::NotSentLowAt, OptionValue::Int(-1)));
    let tos = "setsockopt(4, SOL_IP, IP_TOS, [IPTOS_DSCP_CS1], 1) = 0";
    assert_eq!(made(tos), set(SocketOption::Tos, OptionValue::Int(0x20)));
    let linger = OptionValue::Linger(Linger::Seconds(5));
    let written = "setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=5}, 8) = 0";
    assert_eq!(made(written), set(SocketOption::Linger, linger));
    let off = "setsockopt(4, SOL_SOCKET, SO_LINGER, [{l_onoff=0, l_linger=5}], ...) = 0";
    assert_eq!(made(off), set(SocketOption::Linger, OptionValue::Linger(Linger::Off)));
    let reno = "setsockopt(4, IPPROTO_TCP, TCP_CONGESTION, \"reno\", 4) = 0";
    assert_eq!(made(reno), set(SocketOption::Congestion, OptionValue::Text("reno".into())));
    let read = Call::GetSockOpt { fd: 14, option: SocketOption::Error };
    assert_eq!(made("getsockopt(4, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0"), read);
    let by_number = Call::GetSockOpt { fd: 14, option: SocketOption::NoDelay };
    assert_eq!(made("getsockopt(4, 6, 1, ..., ...) = 0"), by_number);
}

#[test]
fn poll_and_epoll_know_descriptors_events_and_times() {
    let fds = vec![
        Polled {
            fd: 14,
            events: PollEvents::POLLIN | PollEvents::POLLOUT,
            revents: PollEvents::NONE,
        },
        Polled { fd: -1, events: PollEvents::NONE, revents: PollEvents::NONE },
    ];
    let poll = "poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}, {fd=-1}], 2, -1) = 1";
    assert_eq!(made(poll), Call::Poll { fds, time_out: TimeOut::Never });
    assert_eq!(made("epoll_create(1) = 5"), Call::EpollCreate);
    let control = |op, events, data| Call::EpollCtl { epoll: 15, op, fd: 14, events, data };
    let add = "epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4}) = 0";
    let events = EpollEvents::EPOLLIN | EpollEvents::EPOLLET;
    assert_eq!(made(add), control(EpollOp::Add, events, 4));
    let delete = "epoll_ctl(5, EPOLL_CTL_DEL, 4, NULL) = 0";
    assert_eq!(made(delete), control(EpollOp::Del, EpollEvents::NONE, 0));
    let wait = "epoll_wait(5, {events=EPOLLIN, ptr=4}, 1, 20) = 1";
    let time_out = TimeOut::After(Duration::from_millis(20));
    assert_eq!(made(wait), Call::EpollWait { epoll: 15, most: 1, time_out });
}

/// Every call of the language, for invalid variants.
const CALLS: &[&str] = &[
    "socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3",
    "bind(3, {sa_family = AF_INET, sin_port = htons(80), sin_addr = inet_addr(\"1.2.3.4\")}, ...) = 0",
    "accept4(3, ..., [16], SOCK_NONBLOCK) = 4",
    "fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)",
    "ioctl(3, SIOCINQ, [5]) = 0",
    "getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0",
    "setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0",
    "recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 7}], msg_flags=0}, 0) = 7",
    "sendto(4, \"text\", 4, 0, ..., ...) = 4",
    "poll([{fd=4, events=POLLIN, revents=0}], 1, -1) = 0",
    "epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN, fd=4}) = 0",
    "epoll_wait(5, [{events=EPOLLIN, fd=4}], 1, 0) = -1 EINTR",
];

/// Replacements for any word of them.
const WORDS: &[&str] = &[
    "...",
    "-1",
    "0",
    "99999999999",
    "0xffffffffffffffff",
    "NULL",
    "[]",
    "{}",
    "[...]",
    "[1, 2]",
    "\"x\"",
    "1.5",
    "(1|2)",
    "f()",
    "htons()",
    "{a=1}",
    "SO_ERROR",
    "{1}",
    "-9223372036854775807",
];

#[test]
fn calls_with_faults_never_panic() {
    use crate::call::{Filled, Returned};
    use crate::judge_call::judge_call;

    let mut random = fastrand::Rng::with_seed(4);
    let outs = [
        Filled::Nothing,
        Filled::Number(1),
        Filled::Peer(REMOTE),
        Filled::Bytes(vec![0; 7], MsgFlags::NONE),
        Filled::Option(OptionValue::Int(0)),
        Filled::Epoll(vec![(EpollEvents::EPOLLIN, 4)]),
    ];
    let mut made = 0;
    for _ in 0..20_000 {
        let call = random.choice(CALLS).unwrap();
        let (from, len) = (random.usize(..call.len()), random.usize(..12));
        let word = random.choice(WORDS).unwrap();
        let to = (from + len).min(call.len());
        let text = format!("0 {}{word}{}", &call[..from], &call[to..]);
        let Ok(script) = parse(&text, &Defines::default()) else { continue };
        let Some(Action::Call(step)) = script.steps.first().map(|step| &step.action) else {
            continue;
        };
        made += usize::from(lower(step, &names()).is_ok());
        for out in &outs {
            let _ = judge_call(step, &Returned { value: Ok(random.i64(..9)), out: out.clone() });
        }
    }
    assert!(made > 500, "hardly any call was made: {made}");
}
