//! An independent parser reads the written files.

use pcap_parser::pcapng::{Block, EnhancedPacketBlock, OptionCode, parse_block_le};

use whimbrel_base::Instant;

use super::{Direction, LinkType, PacketNote, Section};

/// All blocks of a capture.
fn blocks(mut capture: &[u8]) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    while !capture.is_empty() {
        let (rest, block) = parse_block_le(capture).expect("a block");
        blocks.push(block);
        capture = rest;
    }
    blocks
}

fn packet<'a>(block: &'a Block<'a>) -> &'a EnhancedPacketBlock<'a> {
    match block {
        Block::EnhancedPacket(packet) => packet,
        other => panic!("no packet: {other:?}"),
    }
}

fn option<'a>(packet: &'a EnhancedPacketBlock<'a>, code: OptionCode) -> Option<&'a [u8]> {
    let found = packet.options.iter().find(|option| option.code == code)?;
    found.value.get(..usize::from(found.len))
}

#[test]
fn capture_round_trips() {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    let client = section.describe(&mut out, "client", LinkType::Raw);
    let server = section.describe(&mut out, "server", LinkType::Ethernet);
    let at = Instant::from_nanos(5_000_000_123);
    let note =
        PacketNote { interface: client, at, direction: Direction::Out, wire_len: 5, comment: "" };
    section.packet(&mut out, &note, &[1, 2, 3, 4, 5]);
    let lost = PacketNote {
        interface: server,
        direction: Direction::In,
        wire_len: 1_500,
        comment: "lost: queue full",
        ..note
    };
    section.packet(&mut out, &lost, &[9; 64]);

    let blocks = blocks(&out);
    assert_eq!(blocks.len(), 5);
    assert!(matches!(&blocks[0], Block::SectionHeader(header) if header.major_version == 1));
    for (block, (name, link_type)) in blocks[1..3].iter().zip([("client", 101), ("server", 1)]) {
        let Block::InterfaceDescription(interface) = block else { panic!("{block:?}") };
        assert_eq!((interface.linktype.0, interface.if_tsresol), (link_type, 9));
        assert_eq!(interface.options[0].value, padded(name));
    }
    let first = packet(&blocks[3]);
    assert_eq!((first.if_id, first.caplen, first.origlen), (0, 5, 5));
    assert_eq!((u64::from(first.ts_high) << 32) | u64::from(first.ts_low), 5_000_000_123);
    assert_eq!(&first.data[..5], &[1, 2, 3, 4, 5]);
    assert_eq!(option(first, OptionCode(2)), Some(&[2, 0, 0, 0][..]));
    assert_eq!(option(first, OptionCode::Comment), None);
    let second = packet(&blocks[4]);
    assert_eq!((second.if_id, second.caplen, second.origlen), (1, 64, 1_500));
    assert_eq!(option(second, OptionCode::Comment), Some(&b"lost: queue full"[..]));
}

/// A name as the parser shows it, with its padding.
fn padded(name: &str) -> Vec<u8> {
    let mut name = name.as_bytes().to_vec();
    name.resize(name.len().next_multiple_of(4), 0);
    name
}

#[test]
fn padding_does_not_depend_on_buffer_contents() {
    let mut out = vec![7; 3];
    Section::begin(&mut out);
    assert_eq!(blocks(&out[3..]).len(), 1);
}
