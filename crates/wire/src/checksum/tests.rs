//! Tests of `checksum`.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// RFC 1071 4.1, word by word.
fn naive_sum(bytes: &[u8]) -> u16 {
    let sum: u64 = bytes
        .chunks(2)
        .map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0)))
        .sum();
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    folded as u16
}

#[test]
fn the_example_of_rfc_1071_sums_to_ddf2() {
    let sum = Sum::new().add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
    assert_eq!(sum.fold(), 0xddf2);
    assert_eq!(sum.finish(), !0xddf2);
}

#[test]
fn nothing_sums_to_zero() {
    assert_eq!(Sum::new().fold(), 0);
    assert_eq!(Sum::new().add_bytes(&[]).finish(), 0xffff);
}

#[test]
fn a_super_packet_of_all_ones_does_not_overflow() {
    let bytes = [0xff; 65_535];
    assert_eq!(Sum::new().add_bytes(&bytes).fold(), naive_sum(&bytes));
}

#[test]
fn a_partial_checksum_is_completed_by_summing_over_it() {
    let (src, dst) = (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(192, 0, 2, 2).into());
    let pseudo_header = Sum::pseudo_header(src, dst, 6, 4);
    let mut segment = [0x12, 0x34, 0, 0];
    let whole = pseudo_header.add_bytes(&segment).finish();

    segment[2..].copy_from_slice(&pseudo_header.fold().to_be_bytes());
    let completed_by_device = Sum::new().add_bytes(&segment).finish();

    assert_eq!(completed_by_device, whole);
}

#[test]
fn checksum_detects_a_flipped_bit() {
    let mut data = [1, 2, 3, 4, 0, 0];
    let checksum = Sum::new().add_bytes(&data).finish();
    data[4..].copy_from_slice(&checksum.to_be_bytes());
    assert!(Sum::new().add_bytes(&data).is_valid());
    data[1] ^= 0x10;
    assert!(!Sum::new().add_bytes(&data).is_valid());
}

proptest! {
    #[test]
    fn any_slicing_sums_like_the_whole(slices in vec(vec(any::<u8>(), 0..70), 0..18)) {
        let whole = slices.concat();
        let chained = slices.iter().fold(Sum::new(), |sum, slice| sum.add_bytes(slice));
        prop_assert_eq!(chained.fold(), naive_sum(&whole));
        prop_assert_eq!(Sum::new().add_bytes(&whole).fold(), naive_sum(&whole));
    }

    #[test]
    fn fields_sum_like_their_bytes_even_behind_an_odd_slice(
        before in vec(any::<u8>(), 0..4), a: u16, b: u32, after in vec(any::<u8>(), 0..9),
    ) {
        let sum = Sum::new().add_bytes(&before).add_u16(a).add_u32(b).add_bytes(&after);
        let bytes: Vec<u8> =
            [&before[..], &a.to_be_bytes(), &b.to_be_bytes(), &after].concat();
        prop_assert_eq!(sum.fold(), naive_sum(&bytes));
    }

    #[test]
    fn pseudo_headers_sum_like_the_bytes_of_the_rfcs(
        src4: [u8; 4], dst4: [u8; 4], src6: [u8; 16], dst6: [u8; 16], protocol: u8, length: u16,
    ) {
        let [high, low] = length.to_be_bytes();
        let bytes = [&src4[..], &dst4, &[0, protocol, high, low]].concat();
        let sum = Sum::pseudo_header(
            Ipv4Addr::from(src4).into(), Ipv4Addr::from(dst4).into(), protocol, length.into());
        prop_assert_eq!(sum.fold(), naive_sum(&bytes));

        let bytes = [&src6[..], &dst6, &[0, 0, high, low, 0, 0, 0, protocol]].concat();
        let sum = Sum::pseudo_header(
            Ipv6Addr::from(src6).into(), Ipv6Addr::from(dst6).into(), protocol, length.into());
        prop_assert_eq!(sum.fold(), naive_sum(&bytes));
    }

    #[test]
    fn an_update_equals_the_checksum_computed_anew(
        mut words in vec(any::<u16>(), 2..20), index: prop::sample::Index, new: u16,
    ) {
        let sum = |words: &[u16]| words.iter().fold(Sum::new(), |sum, word| sum.add_u16(*word));
        let before = sum(&words).finish();
        let old = std::mem::replace(index.get_mut(&mut words), new);
        // Zero has two encodings: only all-zero data sums to +0, and no header is that.
        prop_assume!(words.iter().any(|word| *word != 0));
        prop_assert_eq!(update(before, old, new), sum(&words).finish());
    }
}
