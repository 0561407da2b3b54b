use std::time::Duration;

use whimbrel_base::Secrets;
use whimbrel_stack::{Capabilities, Medium, Shard, ShardConfig};
use whimbrel_wire::IpHeader;

use super::*;

const INSIDE: [&str; 2] = ["10.0.2.100", "fd77:6869:6d62::64"];
const OUTSIDE: [&str; 2] = ["203.0.113.9", "fd09::9"];

fn address(text: &str) -> Address {
    text.parse::<std::net::IpAddr>().unwrap().into()
}

#[test]
fn packets_of_echoes_are_read_as_they_were_written() {
    for (from, to) in INSIDE.into_iter().zip(OUTSIDE) {
        let (from, to) = (address(from), address(to));
        let dont_fragment = from.is_v4();
        let echo = Echo {
            kind: EchoKind::Request,
            from,
            to,
            identifier: 7,
            sequence: 9,
            data: b"some data",
            dont_fragment,
            hop_limit: HOP_LIMIT,
        };
        let packets: Vec<_> = Fragments::of(&echo, 1500, 1).collect();
        assert_eq!(packets.len(), 1);
        let read = Echo { dont_fragment, ..Echo::of_packet(&packets[0]).unwrap() };
        assert_eq!(read, echo);
        assert_eq!(Echo::of_packet(&packets[0][..30]), None);
        let message = echo.message();
        assert_eq!(Echo::of_message(EchoKind::Reply, &message, from, to), None);
    }
}

#[test]
fn long_replies_are_cut_into_fragments_that_fit() {
    for (from, to) in OUTSIDE.into_iter().zip(INSIDE) {
        let (from, to) = (address(from), address(to));
        let data: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
        let (kind, data) = (EchoKind::Reply, data.as_slice());
        let echo = Echo {
            kind,
            from,
            to,
            identifier: 7,
            sequence: 9,
            data,
            dont_fragment: false,
            hop_limit: HOP_LIMIT,
        };
        let (mut whole, mut is_last) = (Vec::new(), false);
        for packet in Fragments::of(&echo, 1500, 77) {
            assert!(packet.len() <= 1500 && !is_last);
            let (ip, payload) = IpHeader::parse(&packet).unwrap();
            let fragment = ip.fragment.unwrap();
            assert_eq!((ip.src, ip.dst, fragment.identification), (from, to, 77));
            assert_eq!(usize::from(fragment.offset), whole.len());
            whole.extend_from_slice(payload);
            is_last = !fragment.more;
        }
        assert!(is_last);
        assert_eq!(Echo::of_message(kind, &whole, from, to), Some(echo));
    }
}

#[test]
fn longest_idle_identifier_gives_way_at_the_bound() {
    let network = crate::run::network::InsideNetwork::choose(&[]).unwrap();
    let mut shard = Shard::new(ShardConfig {
        tunables: whimbrel_tcp::Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: network.gateway(),
        routes: Vec::new(),
    })
    .unwrap();
    let mut pings = MachinePings::new(&mut shard, 2).unwrap();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let key = |identifier| PingKey { inside: address(INSIDE[0]), identifier };
    // ICMP sockets are not every user's: these take their place.
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    pings.insert(key(1), socket(), at(0)).unwrap();
    pings.insert(key(2), socket(), at(1)).unwrap();
    let first = pings.by_key[&key(1)];
    assert_eq!(pings.flow_of(key(1), at(2)).unwrap(), first);
    pings.insert(key(3), socket(), at(3)).unwrap();
    let kept: Vec<_> = pings.by_key.keys().map(|key| key.identifier).collect();
    assert_eq!((kept, pings.statistics.displaced), (vec![1, 3], 1));
    assert_eq!(pings.next_deadline(), Some(at(62)));
    pings.expire(at(62));
    assert_eq!(pings.flows.len(), 1);
    pings.expire(at(63));
    assert_eq!((pings.flows.len(), pings.next_deadline()), (0, None));
}
