use whimbrel_base::Secrets;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Capabilities, Medium, RxFrame, SendTo, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_udp::{Bind, Local};
use whimbrel_wire::{IcmpMessage, Protocol};

use super::*;

fn host() -> Shard {
    let own = Address::from_v4_bytes([10, 0, 0, 1]);
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr: own, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Shard::new(config).unwrap()
}

fn at(last: u8) -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), 9)
}

/// A host that sent a full datagram to 10.0.0.`last`, of which a router says that 1,300 bytes fit.
fn narrow(shard: &mut Shard, last: u8) {
    let now = shard.now();
    let socket = shard.udp_bind(&Bind::new(Local::Both, 0)).unwrap();
    shard.udp_send(socket, vec![0; 1_472].into(), &SendTo::peer(at(last))).unwrap();
    let mut batch = TxBatch::new(1);
    shard.tx(&mut batch);
    let quoted = &batch.pending()[0].to_vec()[..28];
    let message = IcmpMessage::FragmentationNeeded { next_hop_mtu: 1_300, quoted };
    let len = message.wire_len();
    let mut packet = vec![0; Ipv4Header::LEN + len];
    let (src, dst) = ([10, 0, 0, 254].into(), [10, 0, 0, 1].into());
    Ipv4Header::new(src, dst, Protocol::ICMP, len).emit(&mut packet);
    message.emit(&mut packet[Ipv4Header::LEN..]);
    shard.rx(now, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
}

#[test]
fn tasks_learn_paths_from_shard() {
    let mut shard = host();
    let (ways, mut seen) = (Ways::new(&shard, 1_500), DatagramPathsSeen::default());
    let mut judged = None;
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_472);
    assert!(judged.is_some());
    narrow(&mut shard, 2);
    ways.learn(&mut seen, &shard);
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_272);
    assert_eq!(ways.judge(&mut judged, at(3)).unwrap(), 1_472);
    shard.purge_paths();
    ways.learn(&mut seen, &shard);
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_472);
}

#[test]
fn cached_path_gives_way_to_change() {
    let shard = host();
    let ways = Ways::new(&shard, 1_500);
    let mut judged = None;
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_472);
    ways.set_mtu(1_400);
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_372);
    let own = *shard.addresses().iter().next().unwrap();
    ways.remove_address(&own);
    let error = ways.judge(&mut judged, at(2)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable);
    ways.add_address(&own);
    assert_eq!(ways.judge(&mut judged, at(2)).unwrap(), 1_372);
}

#[test]
fn paths_are_no_more_than_shard_has() {
    let mut shard = host();
    let (ways, mut seen) = (Ways::new(&shard, 1_500), DatagramPathsSeen::default());
    ways.change(|table| {
        for number in 0..MOST_PATHS as u32 {
            let remote = Address::from_v4_bytes((0x0b00_0000 + number).to_be_bytes());
            table.paths.insert(remote, Path { mtu: 1_000, until: Instant::now() });
        }
    });
    narrow(&mut shard, 2);
    ways.learn(&mut seen, &shard);
    assert_eq!(ways.table().paths.len(), 1);
}
