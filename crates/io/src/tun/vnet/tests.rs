use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// Returns an IPv4 header (20 bytes), a TCP header (`words` of four bytes), and `text` bytes.
fn frame_v4(words: u8, text: usize) -> Vec<u8> {
    let mut frame = vec![0; 20 + usize::from(words) * 4 + text];
    frame[0] = 0x45;
    frame[20 + TCP_DATA_OFFSET] = words << 4;
    frame
}

fn super_frame(gso_size: u16) -> VnetHeader {
    VnetHeader { gso_type: GSO_TCPV4, gso_size, hdr_len: 9999, ..VnetHeader::default() }
}

fn segment(version: u8, text: usize, gso_size: u16) -> TxSegment {
    let mut segment = TxSegment::new();
    let transport = if version == 6 { 40 } else { 20 };
    segment.header_room()[0] = version << 4 | 5;
    segment.set_header_len(transport + 20);
    segment.transport_offset = transport as u8;
    segment.checksum = TxChecksum::Partial(16);
    segment.gso_size = gso_size;
    segment.payload.push(Bytes::from(vec![0; text])).unwrap();
    segment
}

#[test]
fn segments_are_counted_by_the_text_not_by_the_hint() {
    let cases = [(1, 1, 0), (1448, 1, 0), (1449, 2, 1448), (2896, 2, 1448), (64_000, 45, 1448)];
    for (text, segs, gso_size) in cases {
        let meta = super_frame(1448).meta(&frame_v4(8, text), 0).unwrap();
        assert_eq!((meta.segs, meta.gso_size), (segs, gso_size), "{text} bytes");
    }
}

#[test]
fn unfinished_checksum_locates_the_transport_header() {
    let mut frame = vec![0; 60 + 20 + 3000]; // IPv6 with some extension header
    frame[0] = 0x60;
    frame[60 + TCP_DATA_OFFSET] = 5 << 4;
    let vnet = VnetHeader {
        flags: NEEDS_CSUM,
        gso_type: GSO_TCPV6 | GSO_ECN,
        gso_size: 1000,
        csum_start: 60,
        csum_offset: 16,
        ..VnetHeader::default()
    };
    let meta = vnet.meta(&frame, 0).unwrap();
    assert_eq!((meta.segs, meta.checksum), (3, RxChecksum::Partial));
}

#[test]
fn many_datagrams_in_one_frame_are_named_as_such() {
    for version in [4, 6] {
        let mut datagrams = segment(version, 5_000, 1_200);
        datagrams.checksum = TxChecksum::Partial(UDP_CHECKSUM);
        let vnet = VnetHeader::of_segment(&datagrams, 0);
        assert_eq!((vnet.gso_type, vnet.gso_size), (GSO_UDP_L4, 1_200));
        assert_eq!((vnet.flags, vnet.csum_offset), (NEEDS_CSUM, 6));
    }
}

#[test]
fn udp_super_frames_have_headers_of_eight_bytes() {
    let mut frame = vec![0; 20 + 8 + 2500];
    frame[0] = 0x45;
    let vnet = VnetHeader { gso_type: GSO_UDP_L4, gso_size: 1200, ..VnetHeader::default() };
    assert_eq!(vnet.meta(&frame, 0).unwrap().segs, 3);
}

#[test]
fn checksums_are_unknown_verified_or_partial() {
    for (flags, checksum) in
        [(0, RxChecksum::Unknown), (DATA_VALID, RxChecksum::Verified), (3, RxChecksum::Partial)]
    {
        let vnet = VnetHeader { flags, csum_start: 20, ..VnetHeader::default() };
        assert_eq!(vnet.meta(&frame_v4(5, 10), 0).unwrap().checksum, checksum);
    }
}

#[test]
fn contradictions_are_malformed() {
    let frame = frame_v4(5, 3000);
    assert_eq!(super_frame(0).meta(&frame, 0), Err(Malformed), "no size");
    assert_eq!(super_frame(1000).meta(&frame[..30], 0), Err(Malformed), "cut in its header");
    assert_eq!(super_frame(1000).meta(&frame_v4(3, 3000), 0), Err(Malformed), "short data offset");
    let unknown = VnetHeader { gso_type: 77, ..super_frame(1000) };
    assert_eq!(unknown.meta(&frame, 0), Err(Malformed), "unknown kind");
    let far = VnetHeader { flags: NEEDS_CSUM, csum_start: 60_000, ..super_frame(1000) };
    assert_eq!(far.meta(&frame, 0), Err(Malformed), "checksum behind the end");
}

#[test]
fn a_segment_of_one_piece_asks_for_its_checksum_only() {
    let vnet = VnetHeader::of_segment(&segment(4, 1000, 1000), 0);
    assert_eq!((vnet.flags, vnet.csum_start, vnet.csum_offset), (NEEDS_CSUM, 20, 16));
    assert_eq!((vnet.gso_type, vnet.gso_size), (GSO_NONE, 0));
}

#[test]
fn super_segment_header_has_family_size_and_cwr() {
    let mut super_segment = segment(6, 1001, 1000);
    let vnet = VnetHeader::of_segment(&super_segment, 0);
    assert_eq!((vnet.gso_type, vnet.gso_size, vnet.hdr_len), (GSO_TCPV6, 1000, 60));
    super_segment.header_room()[40 + TCP_FLAGS] = TCP_CWR;
    assert_eq!(VnetHeader::of_segment(&super_segment, 0).gso_type, GSO_TCPV6 | GSO_ECN);
    assert_eq!(VnetHeader::of_segment(&segment(4, 1001, 1000), 0).gso_type, GSO_TCPV4);
}

#[test]
fn a_finished_segment_asks_for_nothing() {
    let mut finished = segment(4, 100, 0);
    finished.checksum = TxChecksum::Done;
    let vnet = VnetHeader::of_segment(&finished, 0);
    assert_eq!(vnet, VnetHeader { hdr_len: 40, ..VnetHeader::default() });
}

#[test]
fn ethernet_header_shifts_offsets_by_14_bytes() {
    let medium = Medium::Ethernet { mac: whimbrel_wire::MacAddress([2, 0, 0, 0, 0, 1]) };
    let mut frame = vec![0; 12];
    frame.extend([8, 0]);
    frame.extend(frame_v4(5, 3000));
    assert_eq!((ip_offset(medium, &frame), ip_offset(Medium::Ip, &frame)), (14, 0));
    let meta = super_frame(1000).meta(&frame, 14).unwrap();
    assert_eq!(meta.segs, 3);
    frame.splice(12..12, [0x81, 0, 0, 0]);
    assert_eq!(ip_offset(medium, &frame), 18);
    assert_eq!(super_frame(1000).meta(&frame, 18).unwrap().segs, 3);

    let mut sent = segment(6, 1001, 1000);
    sent.header_room().copy_within(0..60, 14);
    sent.header_room()[0] = 0x02;
    sent.set_header_len(74);
    sent.transport_offset = 54;
    let vnet = VnetHeader::of_segment(&sent, 14);
    assert_eq!((vnet.gso_type, vnet.csum_start, vnet.hdr_len), (GSO_TCPV6, 54, 74));
}

proptest! {
    #[test]
    fn any_bytes_give_metadata_or_malformed(
        header in any::<[u8; VnetHeader::LEN]>(),
        frame in proptest::collection::vec(any::<u8>(), 0..200),
        ip_at in prop::sample::select(vec![0usize, 14, 18]),
    ) {
        if let Ok(meta) = VnetHeader::decode(&header).meta(&frame, ip_at) {
            prop_assert!(meta.segs >= 1);
            prop_assert_eq!(meta.segs > 1, meta.gso_size > 0);
        }
    }

    #[test]
    fn encoding_and_decoding_are_inverse(bytes in any::<[u8; VnetHeader::LEN]>()) {
        prop_assert_eq!(VnetHeader::decode(&bytes).encode(), bytes);
    }
}
