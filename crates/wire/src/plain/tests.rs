//! Plain segments, compared with the parsers and writers of the single headers.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::tcp::{OptionOrder, TcpHeader, TcpOptions};
use crate::{Ecn, Ipv4Header};

fn any_options() -> impl Strategy<Value = PlainOptions> {
    let stamps = (any::<u32>(), any::<u32>()).prop_map(|(val, ecr)| Timestamps { val, ecr });
    let scale = proptest::option::of((0_u8..15).prop_map(WindowScale::new));
    let mss = any::<u16>().prop_map(Mss::new);
    let opening = (mss, scale, any::<bool>(), proptest::option::of(stamps.clone())).prop_map(
        |(mss, window_scale, sack_permitted, timestamps)| {
            let opening = PlainOpening { mss, window_scale, sack_permitted, timestamps };
            PlainOptions::Opening(opening)
        },
    );
    prop_oneof![Just(PlainOptions::None), stamps.prop_map(PlainOptions::Timestamps), opening]
}

fn any_headers() -> impl Strategy<Value = PlainHeaders> {
    let ends = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), any::<u16>());
    let numbers = (any::<u32>(), any::<u32>(), 0_u16..0x200, any::<u16>(), any::<u16>());
    (ends, numbers, any::<u8>(), any::<u8>(), any_options()).prop_map(
        |(ends, (seq, ack, flags, window, urgent), class, hop_limit, options)| {
            let (src, dst, src_port, dst_port) = ends;
            PlainHeaders {
                src: Address::from_v4_bytes(src),
                dst: Address::from_v4_bytes(dst),
                class: TrafficClass(class),
                hop_limit,
                src_port,
                dst_port,
                seq: SeqNum::new(seq),
                ack: SeqNum::new(ack),
                flags: TcpFlags::from_bits(flags),
                window: RawWindow::new(window),
                urgent,
                options,
            }
        },
    )
}

fn tcp_header(headers: &PlainHeaders) -> TcpHeader {
    let PlainHeaders { src_port, dst_port, seq, ack, flags, window, urgent, .. } = *headers;
    let mut options = TcpOptions::default();
    match headers.options {
        PlainOptions::None => {}
        PlainOptions::Timestamps(stamps) => options.timestamps = Some(stamps),
        PlainOptions::Opening(opening) => {
            let PlainOpening { mss, window_scale, sack_permitted, timestamps } = opening;
            let mss = Some(mss);
            options = TcpOptions { mss, window_scale, sack_permitted, timestamps, ..options };
        }
    }
    TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
}

/// Returns the packet that the writers of the single headers make; without `text`'s part in the
/// checksum if a device has to complete it.
fn written_apart(headers: &PlainHeaders, text: &[u8], whole: bool) -> Vec<u8> {
    let mut segment = [0; TcpHeader::MAX_LEN];
    let len = tcp_header(headers).emit(OptionOrder::Linux, &mut segment);
    let tcp_len = (len + text.len()) as u32;
    let pseudo = Sum::pseudo_header(headers.src, headers.dst, Protocol::TCP.0, tcp_len);
    let checksum = match whole {
        true => pseudo.add_bytes(&segment[..len]).add_bytes(text).finish(),
        false => pseudo.fold(),
    };
    TcpHeader::set_checksum(&mut segment, checksum);
    let ip = Ipv4Header {
        ttl: headers.hop_limit,
        tos: headers.class,
        ..Ipv4Header::new(
            headers.src.v4_bytes().into(),
            headers.dst.v4_bytes().into(),
            Protocol::TCP,
            tcp_len as usize,
        )
    };
    let mut packet = std::vec![0; 20];
    ip.emit(&mut packet);
    packet.extend_from_slice(&segment[..len]);
    packet.extend_from_slice(text);
    packet
}

fn written(headers: &PlainHeaders, text: &[u8], whole: bool) -> Vec<u8> {
    let mut room = [0xee; PlainHeaders::MAX_LEN];
    let sum = whole.then(|| Sum::new().add_bytes(text));
    let len = headers.emit(Text { len: text.len() as u32, sum }, &mut room);
    [&room[..len], text].concat()
}

proptest! {
    #[test]
    fn in_one_go_the_same_bytes_are_written_as_header_by_header(
        headers in any_headers(),
        text in vec(any::<u8>(), 0..600),
        whole in any::<bool>(),
    ) {
        let apart = written_apart(&headers, &text, whole);
        prop_assert_eq!(written(&headers, &text, whole), apart);
    }

    #[test]
    fn what_was_written_is_read_and_padding_of_the_link_is_cut_off(
        headers in any_headers(),
        text in vec(any::<u8>(), 0..600),
        padding in 0_usize..8,
    ) {
        let mut packet = written_apart(&headers, &text, true);
        packet.resize(packet.len() + padding, 0);
        let Some(read) = PlainSegment::read(&packet, Checksum::Verify) else {
            prop_assert_ne!(headers.class.ecn(), Ecn::NotEct, "only those with a codepoint are left");
            return Ok(());
        };
        let (view, read_text) = read.view();
        prop_assert_eq!((read.src(), read.dst()), (headers.src, headers.dst));
        prop_assert_eq!(read.ports(), (headers.src_port, headers.dst_port));
        prop_assert_eq!(view.whole(), tcp_header(&headers));
        prop_assert_eq!(read_text, &text[..]);
    }

    #[test]
    fn an_byte_that_changed_on_the_way_is_noticed(
        headers in any_headers(),
        text in vec(any::<u8>(), 0..40),
        place in any::<prop::sample::Index>(),
        change in 1_u8..,
    ) {
        let mut packet = written(&headers, &text, true);
        // All but the bytes that decide how the packet is parsed: those may make it a different
        // one.
        let at = place.index(packet.len());
        packet[at] ^= change;
        prop_assert!(PlainSegment::read(&packet, Checksum::Verify).is_none(), "byte {}", at);
    }

    #[test]
    fn whatever_comes_is_read_as_header_by_header_or_left(
        packet in vec(any::<u8>(), 0..120),
        plain_start in any::<bool>(),
    ) {
        let mut packet = packet;
        if plain_start && packet.len() >= 40 {
            let len = packet.len() as u16;
            packet[..2].copy_from_slice(&[0x45, 0]);
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[6..10].copy_from_slice(&[0x40, 0, 64, 6]);
            packet[10..12].fill(0);
            let checksum = Sum::new().add_bytes(&packet[..20]).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let Some(read) = PlainSegment::read(&packet, Checksum::Trust) else { return Ok(()) };
        let (ip, payload) = Ipv4Header::parse(&packet).unwrap();
        let (header, text_at) = TcpHeader::parse(payload).unwrap();
        let (view, text) = read.view();
        prop_assert_eq!((read.src(), read.dst()), (Address::from(ip.src), Address::from(ip.dst)));
        prop_assert_eq!((ip.protocol, ip.fragment), (Protocol::TCP, None));
        prop_assert_ne!(ip.tos.ecn(), Ecn::Ce);
        prop_assert_eq!((view.whole(), text), (header, &payload[text_at..]));
    }
}

#[test]
fn fragments_options_and_marks_are_left_to_others() {
    let headers = PlainHeaders {
        src: Address::from_v4_bytes([192, 0, 2, 1]),
        dst: Address::from_v4_bytes([192, 0, 2, 2]),
        class: TrafficClass(0),
        hop_limit: 64,
        src_port: 1,
        dst_port: 2,
        seq: SeqNum::new(3),
        ack: SeqNum::new(4),
        flags: TcpFlags::ACK,
        window: RawWindow::new(5),
        urgent: 0,
        options: PlainOptions::None,
    };
    let packet = written(&headers, b"text", true);
    assert!(PlainSegment::read(&packet, Checksum::Verify).is_some());
    // Version and header length, a router's mark, MF, an offset, the bit that must be 0, the protocol, a TCP header
    // that is too short or longer than the packet.
    let changes =
        [(0, 0x46), (1, 0x03), (6, 0x20), (7, 1), (6, 0x80), (9, 17), (32, 0x40), (32, 0xf0)];
    for (at, byte) in changes {
        let mut packet = packet.clone();
        packet[at] = byte;
        packet[10..12].fill(0);
        let checksum = Sum::new().add_bytes(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert!(PlainSegment::read(&packet, Checksum::Trust).is_none(), "byte {at}: {byte:#x}");
    }
    for len in 0..packet.len() {
        assert!(PlainSegment::read(&packet[..len], Checksum::Trust).is_none(), "{len} bytes");
    }
}
