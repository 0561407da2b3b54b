//! Tests of `tcp`.

use etherparse::TcpOptionElement;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Sum;

const SYN: [u8; 24] =
    [0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 0x02, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4];

#[test]
fn a_syn_is_read_and_its_text_found() {
    let segment = [&SYN[..], b"text"].concat();
    let (header, header_len) = TcpHeader::parse(&segment).unwrap();
    let expected = TcpHeader {
        src_port: 12_345,
        dst_port: 80,
        seq: SeqNum::new(1),
        flags: TcpFlags::SYN,
        window: RawWindow::new(65_535),
        options: TcpOptions { mss: Some(crate::Mss::new(1460)), ..TcpOptions::default() },
        ..TcpHeader::default()
    };
    assert_eq!(header, expected);
    assert_eq!(&segment[header_len..], b"text");
}

#[test]
fn a_data_offset_below_five_or_beyond_the_segment_is_refused() {
    let mut segment = SYN;
    segment[12] = 0x40;
    assert_eq!(TcpHeader::parse(&segment), Err(ParseError::BadHeaderLength));
    segment[12] = 0x70;
    assert_eq!(TcpHeader::parse(&segment), Err(ParseError::Truncated));
}

#[test]
fn every_shorter_header_is_truncated() {
    for len in 0..SYN.len() {
        assert_eq!(TcpHeader::parse(&SYN[..len]), Err(ParseError::Truncated), "{len}");
    }
}

prop_compose! {
    fn any_header()(
        options in option_order::tests::any_options(), ports: [u16; 2], numbers: [u32; 2],
        flags: u16, window: u16, urgent: u16,
    ) -> TcpHeader {
        TcpHeader {
            src_port: ports[0],
            dst_port: ports[1],
            seq: SeqNum::new(numbers[0]),
            ack: SeqNum::new(numbers[1]),
            flags: TcpFlags::from_bits(flags),
            window: RawWindow::new(window),
            urgent,
            options,
        }
    }
}

fn assert_options_agree(theirs: &etherparse::TcpHeader, ours: &TcpOptions) {
    for option in theirs.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => {
                assert_eq!(ours.mss.map(crate::Mss::get), Some(mss));
            }
            TcpOptionElement::WindowScale(shift) => {
                assert_eq!(ours.window_scale.map(crate::WindowScale::get), Some(shift));
            }
            TcpOptionElement::SelectiveAcknowledgementPermitted => assert!(ours.sack_permitted),
            TcpOptionElement::Timestamp(val, ecr) => {
                assert_eq!(ours.timestamps, Some(Timestamps { val, ecr }));
            }
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let blocks = rest.into_iter().flatten();
                let blocks = std::iter::once(first).chain(blocks);
                let ours = ours.sack.as_slice().iter();
                assert!(ours.map(|block| (block.left.raw(), block.right.raw())).eq(blocks));
            }
            TcpOptionElement::Noop => {}
        }
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        header in any_header(), linux: bool, text in vec(any::<u8>(), 0..40),
        src: [u8; 4], dst: [u8; 4],
    ) {
        let order = if linux { OptionOrder::Linux } else { OptionOrder::FreeBsd };
        let mut segment = std::vec![0; TcpHeader::MAX_LEN];
        let header_len = header.emit(order, &mut segment);
        prop_assert_eq!(header_len, header.header_len(order));
        segment.truncate(header_len);
        segment.extend_from_slice(&text);
        let checksum = Sum::pseudo_header(
            crate::Address::from_v4_bytes(src), crate::Address::from_v4_bytes(dst), 6,
            segment.len() as u32,
        ).add_bytes(&segment).finish();
        TcpHeader::set_checksum(&mut segment, checksum);

        let (parsed, parsed_len) = TcpHeader::parse(&segment).unwrap();
        prop_assert_eq!(parsed_len, header_len);
        prop_assert_eq!(TcpHeader { options: header.options, ..parsed }, header);

        let (theirs, rest) = etherparse::TcpHeader::from_slice(&segment).unwrap();
        prop_assert_eq!(rest, &text[..]);
        prop_assert_eq!(theirs.calc_checksum_ipv4_raw(src, dst, &text), Ok(theirs.checksum));
        prop_assert_eq!(theirs.checksum, checksum);
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (header.src_port, header.dst_port));
        prop_assert_eq!(theirs.sequence_number, header.seq.raw());
        prop_assert_eq!(theirs.acknowledgment_number, header.ack.raw());
        prop_assert_eq!((theirs.window_size, theirs.urgent_pointer), (header.window.get(), header.urgent));
        let flags = [
            theirs.fin, theirs.syn, theirs.rst, theirs.psh, theirs.ack, theirs.urg, theirs.ece,
            theirs.cwr, theirs.ns,
        ];
        for (bit, set) in flags.into_iter().enumerate() {
            prop_assert_eq!(header.flags.contains(TcpFlags::from_bits(1 << bit)), set);
        }
        assert_options_agree(&theirs, &parsed.options);
    }

    #[test]
    fn no_bytes_panic(mut bytes in vec(any::<u8>(), 0..80), offset in 4u8..=15) {
        let _ = TcpHeader::parse(&bytes);
        if let Some(byte) = bytes.get_mut(12) {
            *byte = offset << 4;
        }
        let _ = TcpHeader::parse(&bytes);
    }
}
