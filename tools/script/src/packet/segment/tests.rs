use whimbrel_wire::{Address, Protocol};

use super::*;

fn segment(v6: bool) -> Segment {
    let address = |last| match v6 {
        false => Address::from_v4_bytes([10, 0, 0, last]),
        true => core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into(),
    };
    Segment {
        src: Endpoint::new(address(1), 80),
        dst: Endpoint::new(address(2), 4000),
        traffic_class: TrafficClass(2),
        hop_limit: 7,
        flags: TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK | TcpFlags::CWR,
        seq: SeqNum::new(u32::MAX),
        ack: SeqNum::new(5),
        win: 6,
        urg: 9,
        options: [TcpOption::Nop, TcpOption::WindowScale(1)].to_vec(),
        text: [1, 2, 3].to_vec(),
    }
}

#[test]
fn segments_of_both_families_survive_the_wire() {
    for v6 in [false, true] {
        assert_eq!(Segment::parse(&segment(v6).emit()), Ok(segment(v6)));
    }
}

#[test]
fn wrong_checksum_differs_from_broken_header() {
    let mut packet = segment(false).emit();
    let last = packet.len() - 1;
    packet[last] ^= 1;
    assert_eq!(Segment::parse(&packet), Err(NotASegment::Checksum));
    packet[8] ^= 1;
    assert_eq!(Segment::parse(&packet), Err(NotASegment::Broken));
    let ip = IpFields {
        flow: segment(false).flow(),
        protocol: Protocol::UDP,
        traffic_class: TrafficClass(0),
        hop_limit: 1,
    };
    assert_eq!(Segment::parse(&ip.wrap(&[0; 8])), Err(NotASegment::Protocol(Protocol::UDP)));
}

#[test]
fn rest_of_a_split_segment_follows_the_cut() {
    let (first, rest) = segment(false).split(2);
    assert_eq!((first.text.len(), rest.text.len()), (2, 1));
    assert_eq!(rest.seq, SeqNum::new(1));
    assert_eq!(first.flags, TcpFlags::ACK | TcpFlags::CWR);
    assert_eq!(rest.flags, TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK);
}
