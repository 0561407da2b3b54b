use alloc::string::ToString;
use alloc::vec::Vec;

use whimbrel_base::Instant;

use super::*;
use crate::pcapng::{PacketNote, Section};

/// A capture of ours with a packet in each direction.
fn ours() -> Vec<u8> {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    let interface = section.describe(&mut out, "whim0", LinkType::Raw);
    let at = Instant::from_nanos(1_700_000_000_123_456_789);
    let note =
        PacketNote { interface, at, direction: Direction::In, wire_len: 5, comment: "drop: X" };
    section.packet(&mut out, &note, &[1, 2, 3, 4, 5]);
    let note = PacketNote { direction: Direction::Out, wire_len: 1_500, comment: "", ..note };
    section.packet(&mut out, &note, &[9; 64]);
    out
}

/// A file in the old format with one packet of three bytes, at 2.5 s.
fn old(magic: u32, fraction: u32, link: u32, order: Order) -> Vec<u8> {
    let numbers = [magic, 0, 0, 0, 65_535, link, 2, fraction, 3, 60];
    let mut out = Vec::new();
    for (at, number) in numbers.into_iter().enumerate() {
        // The version is two numbers of 16 bits.
        match (at, order) {
            (1, Order::Little) => out.extend([2, 0, 4, 0]),
            (1, Order::Big) => out.extend([0, 2, 0, 4]),
            (_, Order::Little) => out.extend(number.to_le_bytes()),
            (_, Order::Big) => out.extend(number.to_be_bytes()),
        }
    }
    out.extend([7, 8, 9]);
    out
}

#[test]
fn written_capture_is_read() {
    let file = ours();
    let CaptureFile { link_type, packets } = read(&file).unwrap();
    assert_eq!(link_type, Some(LinkType::Raw));
    let link_type = LinkType::Raw;
    let [first, second] = packets[..] else { panic!("{packets:?}") };
    let at = 1_700_000_000_123_456_789;
    let direction = Some(Direction::In);
    assert_eq!(first, Packet { at, direction, link_type, wire_len: 5, bytes: &[1, 2, 3, 4, 5] });
    let direction = Some(Direction::Out);
    assert_eq!(second, Packet { at, direction, link_type, wire_len: 1_500, bytes: &[9; 64] });
}

#[test]
fn old_format_is_read_in_either_order_and_either_unit() {
    for order in [Order::Little, Order::Big] {
        for (magic, half) in [(0xa1b2_c3d4, 500_000), (0xa1b2_3c4d, 500_000_000)] {
            let file = old(magic, half, 1, order);
            let CaptureFile { link_type, packets } = read(&file).unwrap();
            assert_eq!(link_type, Some(LinkType::Ethernet));
            let (bytes, link_type) = (&[7, 8, 9][..], LinkType::Ethernet);
            let packet =
                Packet { at: 2_500_000_000, direction: None, link_type, wire_len: 60, bytes };
            assert_eq!(packets, [packet], "{order:?} {magic:x}");
        }
    }
}

/// A section in big-endian order with an interface of units of 2^-1 s, ten seconds behind, and a
/// simple packet after an enhanced one.
#[test]
fn units_offsets_and_simple_packets_are_understood() {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let len = body.len() as u32 + 12;
        file.extend([kind.to_be_bytes(), len.to_be_bytes()].concat());
        file.extend(body);
        file.extend(len.to_be_bytes());
    };
    block(
        0x0a0d_0d0a,
        &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
    );
    let resolution = [0, 9, 0, 1, 0x81, 0, 0, 0];
    let offset = [0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 10];
    block(1, &[&[0, 228, 0, 0, 0, 0, 0, 2][..], &resolution, &offset].concat());
    block(0x0bad, b"any\0");
    block(6, &[&[0; 8][..], &[0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9, 5, 0, 0, 0]].concat());
    block(3, &[0, 0, 0, 40, 6, 7, 0, 0]);
    let CaptureFile { packets, .. } = read(&file).unwrap();
    let first = Packet {
        at: 11_500_000_000,
        direction: None,
        link_type: LinkType::Raw,
        wire_len: 9,
        bytes: &[5],
    };
    assert_eq!(packets, [first, Packet { wire_len: 40, bytes: &[6, 7], ..first }]);
}

/// Packets of an Ethernet with a tag, of a cooked and of a loopback interface in one file.
#[test]
fn reader_of_any_link_takes_mixed_kinds_and_counts_drops() {
    let mut file = Vec::new();
    let mut section = Section::begin(&mut file);
    let kinds = [LinkType::Ethernet, LinkType::Cooked, LinkType::Cooked2, LinkType::Null];
    let headers = [14 + 8, 16, 20, 4];
    for (kind, header) in kinds.into_iter().zip(headers) {
        let interface = section.describe(&mut file, "any", kind);
        let at = Instant::ZERO;
        let note =
            PacketNote { interface, at, direction: Direction::In, wire_len: 40, comment: "" };
        let mut frame = vec![0; header];
        match kind {
            LinkType::Ethernet => {
                frame[12..22].copy_from_slice(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0]);
            }
            LinkType::Cooked => frame[14..16].copy_from_slice(&[8, 0]),
            LinkType::Cooked2 => frame[..2].copy_from_slice(&[0x86, 0xdd]),
            _ => {}
        }
        frame.extend([0x45, 7]);
        section.packet(&mut file, &note, &frame);
    }
    // Statistics of the second interface: 3 dropped by it, and 4 by the system.
    let drops = |code: u8, count: u8| [&[code, 0, 8, 0, count][..], &[0; 7]].concat();
    let body = [&[1, 0, 0, 0][..], &[0; 8], &drops(5, 3), &drops(7, 4)].concat();
    let len = (body.len() as u32 + 12).to_le_bytes();
    file.extend([&5u32.to_le_bytes()[..], &len, &body, &len].concat());
    let mut reader = Reader::of_any_link();
    let (mut rest, mut found) = (&file[..], Vec::new());
    while !rest.is_empty() {
        let Block { len, packet } = reader.block(rest).unwrap();
        found.extend(packet.map(|it| (it.link_type, it.link_type.ip_packet(it.bytes))));
        rest = &rest[len..];
    }
    assert_eq!(found, kinds.map(|kind| (kind, Some(&[0x45, 7][..]))));
    assert_eq!(reader.dropped(), 7);
    assert!(matches!(read(&file), Err(ReadError { fault: Fault::NoDevice(113), .. })));
}

#[test]
fn reader_of_any_link_skips_and_counts_unknown_kinds() {
    let mut file = ours();
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, body, &len].concat()
    };
    file.extend(block(1, &[147, 0, 0, 0, 0, 0, 0, 0]));
    let mut packet = [0; 24];
    (packet[0], packet[12], packet[16]) = (1, 4, 4);
    let known = file.len();
    file.extend(block(6, &packet));
    let (mut reader, mut rest, mut packets) = (Reader::of_any_link(), &file[..], 0);
    while !rest.is_empty() {
        let Block { len, packet } = reader.block(rest).unwrap();
        packets += usize::from(packet.is_some());
        rest = &rest[len..];
    }
    assert_eq!((packets, reader.unknown()), (2, Some((1, 147))));
    let fault = read(&file).unwrap_err();
    assert_eq!((fault.fault, fault.offset), (Fault::LinkType(147), known));
}

#[test]
fn read_error_names_block_offset_and_fault() {
    let says = |file: &[u8], parts: &[&str]| {
        let error = read(file).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
    };
    let good = ours();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let section = u32::from_le_bytes(good[4..8].try_into().unwrap()) as usize;
    let interface = u32::from_le_bytes(good[section + 4..][..4].try_into().unwrap()) as usize;
    let packet = section + interface;
    says(b"", &["block 1", "is it a capture"]);
    says(b"GIF89a", &["is it a capture"]);
    says(&good[..good.len() - 10], &["block 4", "ends 10 bytes before"]);
    says(&with(8, &[9; 4]), &["block 1, at byte 0", "0x09090909"]);
    says(&with(12, &[2]), &["version 2"]);
    let at = format!("block 2, at byte {section}");
    says(&with(section + 4, &[3]), &[&at, "it has 3 bytes"]);
    says(&with(packet - 4, &[0, 1]), &[&at, "at its beginning and 256 at its end"]);
    says(&with(section + 8, &[113]), &["block 3", "link type 113", "Ethernet"]);
    says(&with(packet + 8, &[1]), &["names interface 1, and 1 are"]);
    says(&with(packet + 20, &[200]), &["bytes of the packet exceed"]);
    says(&with(packet + 23, &[1]), &["16777221 bytes"]);
    let file = old(0xa1b2_c3d4, 0, 113, Order::Little);
    says(&file, &["block 1, at byte 0", "link type 113"]);
    let file = old(0xa1b2_c3d4, 0, 1, Order::Little);
    says(&file[..file.len() - 1], &["block 2, at byte 24", "ends 1 bytes"]);
    says(&file[..20], &["ends 4 bytes"]);
}

#[test]
fn byte_by_byte_the_same_is_read_as_at_once() {
    let order = Order::Big;
    for file in [ours(), old(0xa1b2_c3d4, 0, 101, order)] {
        let whole = read(&file).unwrap();
        let mut reader = Reader::new();
        let (mut from, mut until, mut packets) = (0, 4, Vec::new());
        while from < file.len() {
            match reader.block(&file[from..until]) {
                Ok(Block { len, packet }) => {
                    from += len;
                    until = until.max(from);
                    packets.extend(packet);
                }
                Err(ReadError { fault: Fault::Cut { missing }, .. }) => {
                    assert!(missing > 0 && until + missing <= file.len());
                    until += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(CaptureFile { link_type: reader.link_type(), packets }, whole);
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let files =
        [ours(), old(0xa1b2_c3d4, 1, 1, Order::Little), old(0xa1b2_3c4d, 1, 101, Order::Big)];
    let seed = 7;
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..20_000 {
        let mut file = files[round % files.len()].clone();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(0..file.len());
            file[at] = random.u8(..);
        }
        file.truncate(random.usize(0..=file.len()));
        // The result does not matter, but a packet must lie within the file.
        if let Ok(CaptureFile { packets, .. }) = read(&file) {
            assert!(packets.iter().map(|it| it.bytes.len()).sum::<usize>() <= file.len(), "{seed}");
        }
    }
}
