//! Super-segments become valid packets.

use bytes::Bytes;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, IpHeader, Ipv4Header, Ipv6Header, Protocol, RawWindow, SeqNum, Sum};

use super::cut;

/// The first number lies just before the wrap.
const SEQ: u32 = u32::MAX - 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Over {
    V4,
    V6,
}

fn addresses(over: Over) -> (Address, Address) {
    match over {
        Over::V4 => (Address::from_v4_bytes([10, 0, 0, 1]), Address::from_v4_bytes([10, 0, 0, 2])),
        Over::V6 => {
            let address =
                |host| Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host));
            (address(1), address(2))
        }
    }
}

fn write_ip(over: Over, len: usize, room: &mut [u8]) -> usize {
    let (src, dst) = addresses(over);
    match over {
        Over::V4 => {
            let header = Ipv4Header {
                identification: 65_535,
                ..Ipv4Header::new(src.v4_bytes().into(), dst.v4_bytes().into(), Protocol::TCP, len)
            };
            header.emit(room);
            Ipv4Header::LEN
        }
        Over::V6 => {
            let header = Ipv6Header::new(
                (*src.as_bytes()).into(),
                (*dst.as_bytes()).into(),
                Protocol::TCP,
                len,
            );
            header.emit(room);
            Ipv6Header::LEN
        }
    }
}

/// A segment with text in slices of 700 bytes, its checksum left to the device.
fn segment(over: Over, bytes: usize, gso_size: u16) -> TxSegment {
    let mut tx = TxSegment::new();
    let text: Vec<u8> = (0..bytes).map(|at| (at * 7) as u8).collect();
    for slice in text.chunks(700) {
        tx.payload.push(Bytes::copy_from_slice(slice)).expect("a place");
    }
    let header = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: SeqNum::new(SEQ),
        ack: SeqNum::new(5),
        flags: TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN | TcpFlags::CWR,
        window: RawWindow::new(100),
        urgent: 0,
        options: TcpOptions {
            timestamps: Some(Timestamps { val: 3, ecr: 4 }),
            ..TcpOptions::default()
        },
    };
    let tcp_len = header.header_len(OptionOrder::Linux);
    let at = write_ip(over, tcp_len + bytes, tx.header_room());
    header.emit(OptionOrder::Linux, &mut tx.header_room()[at..]);
    let (src, dst) = addresses(over);
    let pseudo = Sum::pseudo_header(src, dst, 6, (tcp_len + bytes) as u32);
    TcpHeader::set_checksum(&mut tx.header_room()[at..], pseudo.fold());
    tx.set_header_len(at + tcp_len);
    tx.transport_offset = at as u8;
    tx.gso_size = gso_size;
    tx.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
    tx
}

/// The TCP header and text of a packet whose checksums are right.
fn read(packet: &[u8]) -> (TcpHeader, Vec<u8>) {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    let sum = Sum::pseudo_header(ip.src, ip.dst, 6, payload.len() as u32);
    assert!(sum.add_bytes(payload).is_valid(), "the TCP checksum");
    let (header, len) = TcpHeader::parse(payload).expect("a TCP header");
    (header, payload[len..].to_vec())
}

#[test]
fn super_segment_becomes_valid_packets() {
    for over in [Over::V4, Over::V6] {
        let mut packets = Vec::new();
        cut(&segment(over, 3_500, 1_448), |packet| packets.push(packet));
        let read: Vec<_> = packets.iter().map(|packet| read(packet)).collect();
        let numbers: Vec<u32> = read.iter().map(|(header, _)| header.seq.raw()).collect();
        let expected = [SEQ, SEQ.wrapping_add(1_448), SEQ.wrapping_add(2_896)];
        assert_eq!(numbers, expected, "{over:?}");
        let flags: Vec<TcpFlags> = read.iter().map(|(header, _)| header.flags).collect();
        let last = TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN;
        assert_eq!(flags, [TcpFlags::ACK | TcpFlags::CWR, TcpFlags::ACK, last]);
        assert!(read.iter().all(|(header, _)| header.options.timestamps.is_some()));
        let text: Vec<u8> = read.into_iter().flat_map(|(_, text)| text).collect();
        assert!(text.iter().enumerate().all(|(at, byte)| *byte == (at * 7) as u8));
        assert_eq!(text.len(), 3_500);
        if over == Over::V4 {
            let ids = packets.iter().map(|packet| u16::from_be_bytes([packet[4], packet[5]]));
            assert_eq!(ids.collect::<Vec<_>>(), [65_535, 0, 1]);
        }
    }
}

#[test]
fn segment_that_fits_becomes_one_packet_with_checksum() {
    for (bytes, gso_size) in [(0, 0), (1_401, 0), (1_448, 1_448)] {
        let mut packets = Vec::new();
        cut(&segment(Over::V4, bytes, gso_size), |packet| packets.push(packet));
        assert_eq!(packets.len(), 1);
        let (header, text) = read(&packets[0]);
        assert_eq!((header.flags.bits() & 0xff, text.len()), (0x99, bytes));
    }
}
