//! Memory of a shard under floods from its link: neighbours, packets that wait for them, and its
//! own messages that wait to be sent.

use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::ethernet::{EtherType, EthernetHeader};
use whimbrel_wire::{
    Address, ArpOperation, ArpPacket, IcmpMessage, Ipv4Header, MacAddress, Protocol,
};

use crate::allocator::held;

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const THEIRS: MacAddress = MacAddress([6, 0, 0, 0, 0, 9]);
const OWN: [u8; 4] = [10, 0, 0, 1];
/// Limit in bytes of 256 messages of 40 bytes, in a queue that doubles.
const OUTBOX: isize = 256 * 40 * 2;
/// Limit in bytes of 1,024 neighbours, the trees that find them, and their solicitations.
const TABLE: isize = 1_024 * 160;
/// Limit in bytes of the replies that wait: 1,024 replies, and 1 MiB of what they quote.
const REPLIES: isize = (1_024 * 128) + (1 << 20);
/// Limit in bytes of three packets for each of 128 neighbours, each with its headers.
const WAITING: isize = 3 * 128 * (PACKET as isize + 256);
const PACKET: usize = 1_500;

fn host() -> Shard {
    Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ethernet { mac: OURS }, 1_500),
        addresses: vec![InterfaceAddress { addr: Address::from_v4_bytes(OWN), prefix_len: 8 }],
        routes: Vec::new(),
    })
    .unwrap()
}

fn frame(ether_type: EtherType, packet: &[u8]) -> Vec<u8> {
    let header = EthernetHeader { dst: OURS, src: THEIRS, ether_type };
    [&header.emit()[..], packet].concat()
}

/// Returns a request for the host's address, from the neighbour of this number.
fn asks(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let packet = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: MacAddress([6, 0, 0, 1, high, low]),
        sender_ip: [10, 1, high, low].into(),
        target_mac: MacAddress::default(),
        target_ip: OWN.into(),
    };
    frame(EtherType::ARP, &packet.emit())
}

/// Returns an echo request of the largest size, from an unknown neighbour.
fn ping(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let mut packet = vec![0; PACKET];
    let header = Ipv4Header {
        identification: number,
        ..Ipv4Header::new(
            [10, 2, high, low].into(),
            OWN.into(),
            Protocol::ICMP,
            PACKET - Ipv4Header::LEN,
        )
    };
    header.emit(&mut packet);
    let data = vec![7; PACKET - Ipv4Header::LEN - 8];
    let request = IcmpMessage::EchoRequest { identifier: 1, sequence: number, data: &data };
    request.emit(&mut packet[Ipv4Header::LEN..]);
    frame(EtherType::IPV4, &packet)
}

/// Passes frames to the host, which sends after each `every`. Returns the most memory that it had.
fn flood(every: usize, frames: impl Iterator<Item = Vec<u8>>) -> (isize, Shard) {
    let mut host = host();
    let mut batch = TxBatch::new(64);
    let base = held();
    let mut peak = 0;
    for (at, bytes) in frames.enumerate() {
        let now = Instant::from_nanos(at as u64 * 1_000);
        host.rx(now, &[RxFrame::new(&bytes, SegMeta::SINGLE)]);
        if at % every == every - 1 {
            while host.tx(&mut batch) || !batch.is_empty() {
                batch.consume(batch.pending().len());
            }
        }
        peak = peak.max(held() - base - bytes.capacity() as isize);
    }
    (peak, host)
}

#[test]
fn flood_of_solicitations_stays_within_table_and_queue() {
    for every in [1, 100, usize::MAX] {
        let (peak, host) = flood(every, (0..20_000).map(asks));
        assert_eq!(host.link().unwrap().neighbours().len(), 1_024);
        assert!(peak <= TABLE + OUTBOX, "{peak} bytes, sending after each {every}");
    }
}

#[test]
fn answers_to_neighbours_that_do_not_exist_wait_in_bounds() {
    for every in [1, 100, usize::MAX] {
        let (peak, host) = flood(every, (0..20_000).map(ping));
        let waiting = host.link().unwrap().neighbours().waiting();
        assert!(waiting <= 3 * 128, "{waiting} packets");
        assert!(
            waiting > 100 || every == usize::MAX,
            "{waiting} packets wait, but no solicitation was sent"
        );
        assert!(
            peak <= TABLE + OUTBOX + REPLIES + WAITING,
            "{peak} bytes, sending after each {every}"
        );
    }
}
