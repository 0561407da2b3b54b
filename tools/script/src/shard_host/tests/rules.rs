use whimbrel_posix::{Errno, MsgFlags};
use whimbrel_wire::tcp::TcpFlags;

use super::peer::*;
use crate::call::Call;
use crate::host::{Administration, ScriptHost, SetError, SocketFilter};
use crate::shard_host::ShardHost;

fn count(host: &mut impl ScriptHost, state: &'static str) -> usize {
    let which = SocketFilter { states: vec![state], ..SocketFilter::default() };
    host.count_sockets(&which).expect("a known state")
}

#[test]
fn tunable_is_set_before_the_first_socket() {
    let mut host = host();
    host.run_until(ms(100));
    assert_eq!(host.set("net.inet.tcp.sack.enable", "0"), Ok(()));
    assert_eq!(host.set("tcp_timestamps", "0"), Ok(()));
    assert_eq!(host.now(), ms(100), "time did not go back");
    listener(&mut host);
    inject(&mut host, TcpFlags::SYN, (0, 0), &[]);
    let syn_ack = only(&mut host);
    assert_eq!((syn_ack.at, syn_ack.tcp.options.sack_permitted), (ms(100), false));
    assert!(syn_ack.tcp.options.timestamps.is_none());
}

#[test]
fn name_or_a_value_without_meaning_is_refused() {
    let mut host = host();
    assert_eq!(host.set("net.ipv4.tcp_no_such_thing", "1"), Err(SetError::Unknown));
    let refused = host.set("net.ipv4.tcp_sack", "perhaps");
    assert!(matches!(refused, Err(SetError::Refused(_))), "{refused:?}");
}

#[test]
fn sockets_are_counted_by_state_and_port() {
    let mut host = host();
    let listening = listener(&mut host);
    assert_eq!(count(&mut host, "LISTEN"), 1);
    inject(&mut host, TcpFlags::SYN, (0, 0), &[]);
    assert_eq!(count(&mut host, "SYN_RECV"), 1);
    let isn = only(&mut host).tcp.seq.raw();
    inject(&mut host, TcpFlags::ACK, (1, isn + 1), &[]);
    let fd = done(&mut host, accept(listening)).expect("a connection") as i32;
    assert_eq!((count(&mut host, "SYN_RECV"), count(&mut host, "ESTABLISHED")), (0, 1));
    assert_eq!(done(&mut host, Call::Close { fd }), Ok(0));
    assert_eq!(count(&mut host, "FIN_WAIT1"), 1);
    inject(&mut host, TcpFlags::FIN | TcpFlags::ACK, (1, isn + 2), &[]);
    assert_eq!(count(&mut host, "TIME_WAIT"), 1);
    let any = SocketFilter { local_port: Some(PORT), ..SocketFilter::default() };
    assert_eq!(host.count_sockets(&any), Ok(2));
    let one = SocketFilter { remote_port: Some(PEER_PORT), ..any.clone() };
    assert_eq!(host.count_sockets(&one), Ok(1));
    let none = SocketFilter { local_port: Some(1), ..any };
    assert_eq!(host.count_sockets(&none), Ok(0));
    let either = SocketFilter { port: Some(PEER_PORT), ..SocketFilter::default() };
    assert_eq!(host.count_sockets(&either), Ok(1));
    let odd = SocketFilter { states: vec!["BOUND"], ..SocketFilter::default() };
    assert!(matches!(host.count_sockets(&odd), Err(SetError::Refused(_))));
}

#[test]
fn descriptor_without_a_connection_counts_as_closed() {
    let mut host = host();
    let fd = socket(&mut host);
    assert_eq!(count(&mut host, "CLOSE"), 1);
    let listening = listener(&mut host);
    assert_eq!((count(&mut host, "CLOSE"), count(&mut host, "LISTEN")), (1, 1));
    let isn = handshake(&mut host);
    let accepted = done(&mut host, accept(listening)).expect("a connection") as i32;
    assert_eq!(count(&mut host, "CLOSE"), 1);
    inject(&mut host, TcpFlags::RST, (1, isn + 1), &[]);
    assert_eq!((count(&mut host, "CLOSE"), count(&mut host, "ESTABLISHED")), (2, 0));
    for fd in [fd, accepted] {
        assert_eq!(done(&mut host, Call::Close { fd }), Ok(0));
    }
    assert_eq!(count(&mut host, "CLOSE"), 0);
}

#[test]
fn running_host_refuses_fixed_tunables() {
    let (mut host, _, fd, isn) = joined();
    assert_eq!(host.set("delayed_ack", "100ms"), Ok(()));
    let began = host.now();
    inject(&mut host, TcpFlags::ACK, (1, isn + 1), b"x");
    run(&mut host, began + ms(99));
    assert!(seen(&mut host).is_empty(), "the acknowledgment waits longer than 40 ms");
    run(&mut host, began + ms(110));
    assert_eq!(only(&mut host).tcp.flags, TcpFlags::ACK);
    assert!(matches!(host.set("isn", "host-wide"), Err(SetError::Refused(_))));
    assert_eq!(done(&mut host, Call::Close { fd }), Ok(0));
}

#[test]
fn connections_are_dropped_by_state_and_port() {
    let (mut host, listening, fd, isn) = joined();
    let drop = |host: &mut ShardHost, state| {
        let which = SocketFilter { states: vec![state], ..SocketFilter::default() };
        host.administer(&Administration::Drop(which))
    };
    assert_eq!(drop(&mut host, "TIME_WAIT"), Ok(()));
    assert_eq!(count(&mut host, "ESTABLISHED"), 1, "it is in another state");
    assert_eq!(drop(&mut host, "ESTABLISHED"), Ok(()));
    let reset = only(&mut host).tcp;
    assert!(reset.flags.contains(TcpFlags::RST));
    assert_eq!(reset.seq.raw(), isn + 1);
    assert_eq!((count(&mut host, "ESTABLISHED"), count(&mut host, "LISTEN")), (0, 1));
    let read = recv(fd, &[10], MsgFlags::NONE);
    assert_eq!(done(&mut host, read), Err(Errno::ECONNABORTED));
    assert_eq!(host.administer(&Administration::PurgeCaches), Ok(()));
    assert!(matches!(drop(&mut host, "NONE"), Err(SetError::Refused(_))));
    for fd in [fd, listening] {
        assert_eq!(done(&mut host, Call::Close { fd }), Ok(0));
    }
}
