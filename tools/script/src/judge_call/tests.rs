use whimbrel_posix::{EpollEvents, Errno, Linger, MsgFlags, OptionValue, PollEvents, TcpInfo};

use super::*;
use crate::call::{Filled, Polled};
use crate::lower::tests::{REMOTE, step};

fn judge(call: &str, value: Result<i64, Errno>, out: Filled) -> Result<Learned, String> {
    judge_call(&step(call), &Returned { value, out }).map_err(|mismatch| mismatch.to_string())
}

fn value(call: &str, value: Result<i64, Errno>) -> Result<Learned, String> {
    judge(call, value, Filled::Nothing)
}

/// Judges the data filled in by a call that returned zero.
fn filled(call: &str, out: Filled) -> Result<(), String> {
    judge(call, Ok(0), out).map(drop)
}

fn err<T>(text: &str) -> Result<T, String> {
    Err(text.to_string())
}

#[test]
fn numbers_must_be_equal_and_errors_have_the_name() {
    let nothing = Ok(Learned::Nothing);
    assert_eq!(value("write(4, ..., 9) = 9", Ok(9)), nothing);
    assert_eq!(value("write(4, ..., 9) = ...", Ok(9)), nothing);
    assert_eq!(value("write(4, ..., 9) = ...", Err(Errno::EPIPE)), nothing);
    assert_eq!(value("write(4, ..., 9) = -1 EPIPE (Broken pipe)", Err(Errno::EPIPE)), nothing);
    assert_eq!(value("write(4, ..., 9) = -1 EWOULDBLOCK", Err(Errno::EAGAIN)), nothing);
    assert_eq!(value("write(4, ..., 9) = -1", Err(Errno::EPIPE)), nothing);
    assert_eq!(value("write(4, ..., 9) = 9", Ok(8)), err("the result: expected 9, came 8"));
    assert_eq!(
        value("write(4, ..., 9) = 9", Err(Errno::EPIPE)),
        err("the result: expected 9, came -1 EPIPE (Broken pipe)")
    );
    assert_eq!(
        value("write(4, ..., 9) = -1 EPIPE", Ok(9)),
        err("the result: expected -1 EPIPE, came 9")
    );
    assert!(value("write(4, ..., 9) = -1 EPIPE", Err(Errno::EAGAIN)).is_err());
}

#[test]
fn descriptors_are_learned_and_forgotten() {
    let opened = |script, host| Ok(Learned::Opened { script, host });
    assert_eq!(value("socket(..., SOCK_STREAM, 0) = 3", Ok(7)), opened(3, 7));
    assert_eq!(value("accept(3, ..., ...) = ...", Ok(7)), opened(7, 7));
    assert_eq!(value("close(3) = 0", Ok(0)), Ok(Learned::Closed { script: 3 }));
    assert_eq!(value("close(3) = -1 EBADF", Err(Errno::EBADF)), Ok(Learned::Nothing));
    assert!(value("accept(3, ..., ...) = 4", Err(Errno::EAGAIN)).is_err());
    assert!(value("accept(3, ..., ...) = -1 EAGAIN", Ok(7)).is_err());
}

#[test]
fn flags_are_compared_by_number_or_by_name() {
    assert!(value("fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)", Ok(2)).is_ok());
    let freebsd = "fcntl(3, F_GETFL) = 0x6 (flags O_RDWR|O_NONBLOCK)";
    assert!(value(freebsd, Ok(0x802)).is_ok());
    assert_eq!(value(freebsd, Ok(2)), err("the result: expected 6, came 2"));
    assert!(value("read(3, ..., 1) = 2 (flags O_WRONLY)", Ok(1)).is_err());
}

#[test]
fn value_of_an_option_and_its_length_must_be_as_written() {
    let int = |call| filled(call, Filled::Option(OptionValue::Int(111)));
    assert_eq!(int("getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0"), Ok(()));
    assert_eq!(int("getsockopt(3, SOL_SOCKET, SO_ERROR, [...], [...]) = 0"), Ok(()));
    assert_eq!(int("getsockopt(3, SOL_SOCKET, SO_ERROR, ..., ...) = 0"), Ok(()));
    assert_eq!(
        int("getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0"),
        err("the value: expected 0, came 111")
    );
    assert_eq!(
        int("getsockopt(3, SOL_SOCKET, SO_ERROR, [111], [8]) = 0"),
        err("the length of the value: expected 8, came 4")
    );
    let linger = |call| filled(call, Filled::Option(OptionValue::Linger(Linger::Seconds(3))));
    assert_eq!(
        linger("getsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=3}, [8]) = 0"),
        Ok(())
    );
    assert!(linger("getsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=0}, [8]) = 0").is_err());
    let text = |call| filled(call, Filled::Option(OptionValue::Text("reno".into())));
    assert_eq!(text("getsockopt(3, SOL_TCP, TCP_CONGESTION, [\"reno\"], [16]) = 0"), Ok(()));
    assert!(text("getsockopt(3, SOL_TCP, TCP_CONGESTION, \"cubic\", [16]) = 0").is_err());
}

#[test]
fn fields_of_tcp_info_that_are_written_are_compared() {
    let info = TcpInfo { tcpi_state: 1, tcpi_snd_mss: 1460, ..TcpInfo::default() };
    let judge = |fields: &str| {
        let call = format!("getsockopt(3, SOL_TCP, TCP_INFO, {fields}, [...]) = 0");
        filled(&call, Filled::Option(OptionValue::Info(info.into())))
    };
    assert_eq!(judge("..."), Ok(()));
    assert_eq!(judge("{tcpi_state=TCP_ESTABLISHED, tcpi_snd_mss=1460, tcpi_rtt=...}"), Ok(()));
    assert_eq!(judge("{tcpi_snd_mss=1000}"), err("tcpi_snd_mss: expected 1000, came 1460"));
    assert_eq!(judge("{tcpi_nothing=1}"), err("tcpi_nothing: expected 1, came no such field"));
}

#[test]
fn read_data_is_compared_with_text_and_flags() {
    let judge =
        |call: &str, flags| judge(call, Ok(2), Filled::Bytes(b"ab".to_vec(), flags)).map(drop);
    assert_eq!(judge("read(3, ..., 9) = 2", MsgFlags::NONE), Ok(()));
    assert_eq!(judge("read(3, \"ab\", 9) = 2", MsgFlags::NONE), Ok(()));
    assert_eq!(
        judge("read(3, \"abc\", 9) = 2", MsgFlags::NONE),
        err("what was read: expected \"abc\", came \"ab\"")
    );
    let message = "recvmsg(3, {msg_iov(1)=[{..., 9}], msg_flags=MSG_TRUNC}, 0) = 2";
    assert_eq!(judge(message, MsgFlags::MSG_TRUNC), Ok(()));
    assert_eq!(judge(message, MsgFlags::NONE), err("msg_flags: expected MSG_TRUNC, came 0x0"));
}

#[test]
fn peer_and_the_number_of_ioctl_are_compared() {
    let accept = |address: &str| {
        judge(&format!("accept(3, {address}, ...) = 4"), Ok(4), Filled::Peer(REMOTE)).map(drop)
    };
    assert_eq!(accept("..."), Ok(()));
    assert_eq!(
        accept("{sa_family=AF_INET, sin_port=..., sin_addr=inet_addr(\"192.0.2.1\")}"),
        Ok(())
    );
    assert_eq!(
        accept("{sin_port=htons(1)}"),
        err("the peer's address: expected 192.0.2.1:1, came 192.0.2.1:8080")
    );
    assert_eq!(filled("ioctl(3, SIOCINQ, [5]) = 0", Filled::Number(5)), Ok(()));
    assert_eq!(filled("ioctl(3, SIOCINQ, [...]) = 0", Filled::Number(5)), Ok(()));
    let other = filled("ioctl(3, SIOCINQ, [6]) = 0", Filled::Number(5));
    assert_eq!(other, err("the number: expected 6, came 5"));
}

#[test]
fn events_are_compared_one_by_one() {
    let polled = |revents| Polled { fd: 7, events: PollEvents::POLLIN, revents };
    let came = Filled::Polled(vec![polled(PollEvents::POLLIN), polled(PollEvents::POLLHUP)]);
    let poll = |second: &str| {
        let call = format!("poll([{{fd=3, revents=POLLIN}}, {{fd=4{second}}}], 2, 0) = 0");
        filled(&call, came.clone())
    };
    assert_eq!(poll(", revents=POLLHUP"), Ok(()));
    assert_eq!(poll(", revents=..."), Ok(()));
    assert_eq!(poll(", revents=0"), err("revents of descriptor 4: expected 0x0, came POLLHUP"));
    let epoll = |events: &str, came: &[(EpollEvents, u64)]| {
        filled(&format!("epoll_wait(5, {events}, 2, 0) = 0"), Filled::Epoll(came.to_vec()))
    };
    let event = (EpollEvents::EPOLLIN, 4);
    assert_eq!(epoll("{events=EPOLLIN, fd=4}", &[event]), Ok(()));
    assert_eq!(epoll("{events=0, ptr=0}", &[]), Ok(()));
    assert_eq!(epoll("[...]", &[event]), Ok(()));
    assert_eq!(
        epoll("[{events=EPOLLIN, fd=4}, {events=EPOLLOUT, fd=4}]", &[event, event]),
        err("event 2: expected EPOLLOUT with 4, came EPOLLIN with 4")
    );
}
