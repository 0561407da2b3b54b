use std::time::Duration;

use whimbrel_posix::{Domain, Protocol, SocketFlags, SocketType};
use whimbrel_tcp::tunables::RstInTimeWait;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint, IpHeader};

use super::*;
use crate::script::call::Call;
use crate::script::host::{Network, Progress, ScriptHost};
use crate::script::shard_host::ShardHost;

/// The window, its scale and the order of options on the SYN of a persona.
fn syn(persona: &str) -> (u16, u8, Vec<u8>) {
    let v4 = Address::from_v4_octets;
    let network = Network {
        local: v4([192, 168, 0, 1]),
        prefix_len: 16,
        gateway: v4([192, 168, 0, 2]),
        remote: v4([192, 0, 2, 1]),
        mtu: 1500,
    };
    let tunables = Persona::by_name(persona).unwrap().tunables().unwrap();
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
fn a_syn_shows_whose_it_would_be() {
    let (mss, scale, sack, stamps, nop) = (2, 3, 4, 8, 1);
    assert_eq!(syn("linux"), (65_535, 8, vec![mss, sack, stamps, nop, scale]));
    assert_eq!(syn("freebsd"), (65_535, 6, vec![mss, nop, scale, sack, stamps]));
    assert_eq!(syn("whimbrel").0, 65_535);
}

#[test]
fn every_setting_of_every_persona_has_a_meaning() {
    for persona in PERSONAS {
        let tunables =
            persona.tunables().unwrap_or_else(|error| panic!("{}: {error}", persona.name));
        assert_eq!(tunables.validate(), Ok(()), "{}", persona.name);
        assert_eq!(Persona::by_name(persona.name), Some(persona));
        let differs = tunables != Tunables::default();
        assert_eq!(differs, !persona.settings.is_empty(), "{}", persona.name);
    }
    assert_eq!(Persona::by_name("plan9"), None);
}

#[test]
fn a_persona_is_what_its_settings_say() {
    let freebsd = Persona::by_name("freebsd").unwrap().tunables().unwrap();
    assert_eq!((freebsd.recv_buffer, freebsd.send_buffer), (65_536, 32_768));
    assert_eq!(freebsd.tw_rst, RstInTimeWait::Ignore);
    let waits = [0, 1, 2].map(|repeats| freebsd.syn_retry.wait(repeats, &freebsd));
    assert_eq!(waits, [1_000, 2_200, 4_200].map(Duration::from_millis));
    let linux = Persona::by_name("linux").unwrap().tunables().unwrap();
    assert_eq!(linux.msl_remote, Duration::from_secs(30));
}
