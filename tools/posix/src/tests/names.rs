//! C's names, and the counting of sockets by state.

use whimbrel_stack::shard::SocketState;

use super::world::{Side, World, nonblocking, server_at, stream};
use crate::{Errno, MsgFlags, Outcome, PollEvents, Shut, SocketOption, TcpInfo, constants, state};

#[test]
fn constants_have_the_numbers_of_linux() {
    for (name, number) in [
        ("AF_INET", 2),
        ("AF_INET6", 10),
        ("SOCK_STREAM", 1),
        ("SOCK_NONBLOCK", 0o4000),
        ("IPPROTO_TCP", 6),
        ("SOL_SOCKET", 1),
        ("SO_REUSEADDR", 2),
        ("SO_LINGER", 13),
        ("TCP_NODELAY", 1),
        ("TCP_INFO", 11),
        ("TCP_FASTOPEN_CONNECT", 30),
        ("IPV6_TCLASS", 67),
        ("UDP_SEGMENT", 103),
        ("MSG_PEEK", 2),
        ("MSG_FASTOPEN", 0x2000_0000),
        ("O_NONBLOCK", 0o4000),
        ("F_SETFL", 4),
        ("POLLRDHUP", 0x2000),
        ("EPOLLET", 1 << 31),
        ("EPOLL_CTL_MOD", 3),
        ("SHUT_RDWR", 2),
        ("FIONREAD", 0x541b),
        ("SIOCINQ", 0x541b),
        ("SIOCOUTQ", 0x5411),
        ("EINPROGRESS", 115),
        ("EWOULDBLOCK", 11),
        ("TCP_ESTABLISHED", 1),
        ("TCPI_OPT_SACK", 2),
    ] {
        assert_eq!(constants::value(name), Some(number), "{name}");
    }
    for (name, byte) in [
        ("IPTOS_DSCP_CS7", 0xe0),
        ("IPTOS_CLASS_CS1", 0x20),
        ("IPTOS_DSCP_AF11", 0x28),
        ("IPTOS_DSCP_AF43", 0x98),
        ("IPTOS_DSCP_EF", 0xb8),
    ] {
        assert_eq!(constants::value(name), Some(byte), "{name}");
    }
    assert_eq!(constants::value("IPTOS_DSCP_AF44"), None);
    assert_eq!(constants::value("SO_NONSENSE"), None);
}

#[test]
fn names_lead_there_and_back() {
    for errno in Errno::ALL {
        assert_eq!(Errno::by_name(errno.name()), Some(*errno));
        assert_eq!(Errno::by_number(errno.number()), Some(*errno));
    }
    assert_eq!(Errno::EPIPE.to_string(), "EPIPE (Broken pipe)");
    for option in SocketOption::ALL {
        assert_eq!(SocketOption::by_name(option.name()), Some(*option));
        assert_eq!(SocketOption::by_number(option.level(), option.number()), Some(*option));
    }
    for how in Shut::ALL {
        assert_eq!(Shut::by_number(how.number()), Some(*how));
    }
    for field in TcpInfo::FIELDS {
        assert_eq!(TcpInfo::default().field(field), Some(0));
    }
    assert_eq!(
        format!("{:?}", MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT),
        "MSG_PEEK|MSG_DONTWAIT"
    );
    assert_eq!(format!("{:?}", PollEvents::NONE), "0x0");
}

#[test]
fn states_are_known_by_the_names_of_every_tool() {
    for (name, expected) in [
        ("TIME-WAIT", SocketState::TimeWait),
        ("TIME_WAIT", SocketState::TimeWait),
        ("syn-recv", SocketState::SynReceived),
        ("SYN_RCVD", SocketState::SynReceived),
        ("SYN-RECEIVED", SocketState::SynReceived),
        ("ESTAB", SocketState::Established),
        ("FIN_WAIT_2", SocketState::FinWait2),
        ("FIN-WAIT-1", SocketState::FinWait1),
    ] {
        assert_eq!(state::by_name(name), Some(expected), "{name}");
    }
    assert_eq!(state::by_name("CLOSED"), None);
}

#[test]
fn sockets_are_counted_by_state_as_they_change_it() {
    let mut world = World::new();
    let listener = world.listen(8);
    let client = stream(&mut world.client);
    nonblocking(&mut world.client, client);
    let _ = world.client.connect(client, server_at());
    world.run(std::time::Duration::from_micros(1_500));
    assert_eq!(world.count(Side::Client, SocketState::SynSent), 1);
    assert_eq!(world.count(Side::Server, SocketState::SynReceived), 1);
    world.run_until_quiet();
    assert_eq!(world.count(Side::Server, SocketState::SynReceived), 0);
    assert_eq!(world.count(Side::Server, SocketState::Established), 1);
    let ports = |it: &whimbrel_stack::shard::SocketEntry| it.local.port == 80;
    assert_eq!(world.server.shard().sockets().filter(ports).count(), 2);
    assert_eq!(world.server.close(listener), Outcome::Done(Ok(())));
    assert_eq!(world.count(Side::Server, SocketState::Listen), 0);
    world.end();
}
