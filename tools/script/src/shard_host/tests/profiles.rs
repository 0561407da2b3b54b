//! The SYN of a host shows its profile.

use whimbrel_posix::{Domain, Protocol, SocketFlags, SocketType};
use whimbrel_stack::Profile;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint, IpHeader};

use crate::call::Call;
use crate::host::{Network, Progress, ScriptHost};
use crate::shard_host::ShardHost;

/// The window, its scale and the order of options on the SYN of a profile.
fn syn(profile: &str) -> (u16, u8, Vec<u8>) {
    let v4 = Address::from_v4_bytes;
    let network = Network {
        local: v4([192, 168, 0, 1]),
        prefix_len: 16,
        gateway: v4([192, 168, 0, 2]),
        remote: v4([192, 0, 2, 1]),
        mtu: 1500,
    };
    let tunables = Profile::by_name(profile).unwrap().tunables().unwrap();
    let mut host = ShardHost::new(&network, tunables).unwrap();
    let socket = Call::Socket {
        domain: Domain::Inet,
        kind: SocketType::Stream,
        flags: SocketFlags::NONE,
        protocol: Protocol::Default,
    };
    let Progress::Done(returned) = host.call(socket) else { panic!("it blocks") };
    let fd = returned.value.unwrap() as i32;
    host.call(Call::Connect { fd, to: Endpoint::new(network.remote, 80) });
    let (_, packet) = host.poll_packet().expect("a SYN");
    let (_, segment) = IpHeader::parse(&packet).unwrap();
    let (tcp, text) = TcpHeader::parse(segment).unwrap();
    let scale = tcp.options.window_scale.expect("it is offered").get();
    (tcp.window.get(), scale, kinds(&segment[20..text]))
}

/// The kinds of options, NOPs included.
fn kinds(mut options: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [kind, rest @ ..] = options {
        kinds.push(*kind);
        let len = if *kind < 2 { 1 } else { usize::from(rest[0]) };
        options = &options[len..];
    }
    kinds
}

#[test]
fn syn_shows_the_profile() {
    let (mss, scale, sack, stamps, nop) = (2, 3, 4, 8, 1);
    assert_eq!(syn("linux"), (65_535, 8, vec![mss, sack, stamps, nop, scale]));
    assert_eq!(syn("freebsd"), (65_535, 6, vec![mss, nop, scale, sack, stamps]));
    assert_eq!(syn("whimbrel").0, 65_535);
}
