//! Tests of `tcp::strip`.

use std::vec;

use super::*;
use crate::Sum;

#[test]
fn stripping_leaves_no_operations_and_right_checksum() {
    // Both orders, at an even and an odd place, with an option before and one behind.
    for (kind, lead) in [(ACCURATE_ECN_0, 0), (ACCURATE_ECN_1, 1)] {
        let mut segment = vec![0x5a; TcpHeader::LEN];
        segment.extend(std::iter::repeat_n(NOP, lead));
        segment.extend([8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        segment.extend([kind, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        segment.extend([2, 4, 5, 180]);
        segment.resize(48, END_OF_LIST);
        segment.extend(*b"text");
        segment[12] = 12 << 4;
        complete(&mut segment);
        assert!(strip_accurate_ecn(&mut segment));
        assert!(Sum::new().add_bytes(&segment).is_valid());
        let (header, len) = TcpHeader::parse(&segment).expect("intact");
        assert_eq!((len, &segment[len..]), (48, &b"text"[..]));
        assert_eq!((header.options.accurate_ecn, header.options.malformed), (None, false));
        assert!(header.options.timestamps.is_some() && header.options.mss.is_some());
        assert_eq!(segment[30 + lead..41 + lead], [NOP; 11]);
        assert!(!strip_accurate_ecn(&mut segment), "none is left");
    }
}

#[test]
fn stripping_leaves_options_that_end_beyond_header() {
    let mut segment = vec![0; 24];
    segment[12] = 6 << 4;
    segment[20..].copy_from_slice(&[NOP, NOP, ACCURATE_ECN_0, 11]);
    let before = segment.clone();
    assert!(!strip_accurate_ecn(&mut segment));
    assert_eq!(segment, before);
    assert!(!strip_accurate_ecn(&mut []));
}

fn complete(segment: &mut [u8]) {
    TcpHeader::set_checksum(segment, 0);
    let checksum = Sum::new().add_bytes(segment).finish();
    TcpHeader::set_checksum(segment, checksum);
}
