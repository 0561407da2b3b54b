use whimbrel_posix::Errno;
use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::TcpFlags;

use super::peer::*;
use crate::call::{Call, Filled, TimeOut};
use crate::host::{Network, ScriptHost};

/// Milliseconds: the grain of timers.
fn in_ms(at: std::time::Duration) -> u128 {
    at.as_millis()
}

#[test]
fn time_stops_at_each_packet() {
    let mut host = host();
    let fd = socket(&mut host);
    let to = Endpoint::new(Network::v4().remote, PEER_PORT);
    let connecting = blocked(&mut host, Call::Connect { fd, to });
    host.run_until(ms(10_000));
    assert_eq!(host.now(), ms(0), "the SYN leaves at once");
    let syn = only(&mut host);
    assert_eq!((syn.at, syn.tcp.flags), (ms(0), TcpFlags::SYN));
    host.run_until(ms(10_000));
    assert_eq!(in_ms(host.now()), 1_000, "and is repeated");
    let again = only(&mut host);
    assert_eq!((again.at, again.tcp.seq), (host.now(), syn.tcp.seq));
    host.run_until(ms(1_200));
    assert_eq!(host.now(), ms(1_200), "nothing more is due");
    let ports = (PEER_PORT, syn.tcp.src_port);
    let isn = syn.tcp.seq.raw();
    host.inject(&segment(ports, TcpFlags::SYN | TcpFlags::ACK, (0, isn + 1), &[]));
    let (at, returned) = host.poll_call(connecting).expect("it is established");
    assert_eq!((at, returned.value), (ms(1_200), Ok(0)));
    assert_eq!(only(&mut host).tcp.flags, TcpFlags::ACK);
}

#[test]
fn call_that_fails_in_the_end_fails_at_its_time() {
    let mut host = host();
    host.set("net.ipv4.tcp_syn_retries", "1").expect("nothing happened yet");
    let fd = socket(&mut host);
    let to = Endpoint::new(Network::v4().remote, PEER_PORT);
    let connecting = blocked(&mut host, Call::Connect { fd, to });
    run(&mut host, ms(10_000));
    let (at, returned) = host.poll_call(connecting).expect("a time-out");
    assert_eq!((in_ms(at), returned.value), (3_001, Err(Errno::ETIMEDOUT)));
    let times: Vec<_> = seen(&mut host).iter().map(|one| in_ms(one.at)).collect();
    assert_eq!(times, [0, 1_000]);
}

#[test]
fn poll_and_epoll_time_out() {
    let mut host = host();
    let epoll = done(&mut host, Call::EpollCreate).expect("a free descriptor") as i32;
    let time_out = TimeOut::After(ms(30));
    let epolling = blocked(&mut host, Call::EpollWait { epoll, most: 1, time_out });
    let time_out = TimeOut::After(ms(20));
    let polling = blocked(&mut host, Call::Poll { fds: vec![], time_out });
    host.run_until(ms(100));
    let (at, returned) = host.poll_call(polling).expect("it timed out");
    assert_eq!((host.now(), at, returned.value), (ms(20), ms(20), Ok(0)));
    assert_eq!(returned.out, Filled::Polled(vec![]));
    host.run_until(ms(100));
    let (at, returned) = host.poll_call(epolling).expect("it timed out");
    assert_eq!((at, returned.value), (ms(30), Ok(0)));
    assert_eq!(done(&mut host, Call::Poll { fds: vec![], time_out: TimeOut::After(ms(0)) }), Ok(0));
}

#[test]
fn same_script_has_the_same_run() {
    let run = || {
        let (mut host, _, fd, _) = joined();
        assert_eq!(done(&mut host, send(fd, &[b"hello"])), Ok(5));
        run(&mut host, ms(5_000));
        core::iter::from_fn(|| host.poll_packet()).collect::<Vec<_>>()
    };
    let packets = run();
    assert!(packets.len() > 2, "it was retransmitted");
    assert_eq!(packets, run());
}
