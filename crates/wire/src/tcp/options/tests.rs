//! Tests of parsing `tcp::options`. Encoding is tested with `option_order`.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::tcp::AccurateEcnOrder;
use crate::{SackBlock, SeqNum};

const STAMPS: Timestamps = Timestamps { val: 0x0102_0304, ecr: 0x0506_0708 };

#[test]
fn the_syn_of_a_common_client_is_read() {
    #[rustfmt::skip]
    let options = TcpOptions::parse(&[
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7,
    ]);
    let expected = TcpOptions {
        mss: Some(Mss::new(1460)),
        window_scale: Some(WindowScale::new(7)),
        sack_permitted: true,
        timestamps: Some(STAMPS),
        ..TcpOptions::default()
    };
    assert_eq!(options, expected);
}

#[test]
fn timestamps_are_read_alike_on_the_fast_and_the_slow_path() {
    let expected = TcpOptions { timestamps: Some(STAMPS), ..TcpOptions::default() };
    assert_eq!(TcpOptions::parse(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]), expected);
    assert_eq!(TcpOptions::parse(&[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1]), expected);
}

#[test]
fn nothing_is_read_behind_the_end_of_the_list() {
    assert_eq!(TcpOptions::parse(&[0, 4, 2, 99]), TcpOptions::default());
}

#[test]
fn an_unknown_option_is_skipped_by_its_length() {
    let options = TcpOptions::parse(&[77, 5, 9, 9, 9, 4, 2, 0]);
    assert_eq!(options, TcpOptions { sack_permitted: true, ..TcpOptions::default() });
}

#[test]
fn known_option_of_wrong_length_is_skipped() {
    for wrong in [
        &[2, 3, 9][..],
        &[3, 2],
        &[4, 3, 0],
        &[5, 4, 0, 0],
        &[5, 2],
        &[8, 6, 0, 0, 0, 0],
        &[19, 4, 0, 0],
        &[28, 3, 0],
        &[29, 3, 0],
        &[34, 5, 1, 2, 3],
        &[254, 4, 0xf9, 0x88],
        &[254, 5, 0xf9, 0x89, 1],
    ] {
        let bytes = [wrong, &[4, 2]].concat();
        let expected = TcpOptions { sack_permitted: true, ..TcpOptions::default() };
        assert_eq!(TcpOptions::parse(&bytes), expected, "{wrong:?}");
    }
}

#[test]
fn impossible_length_ends_parsing_and_keeps_earlier_options() {
    for broken in [&[77, 0, 1, 1][..], &[77, 1, 1, 1], &[77, 5, 1, 1], &[77], &[2, 255]] {
        let bytes = [&[4, 2], broken].concat();
        let expected =
            TcpOptions { sack_permitted: true, malformed: true, ..TcpOptions::default() };
        assert_eq!(TcpOptions::parse(&bytes), expected, "{broken:?}");
    }
}

#[test]
fn the_last_of_repeated_options_counts() {
    let options = TcpOptions::parse(&[2, 4, 0, 1, 2, 4, 0, 2]);
    assert_eq!(options.mss, Some(Mss::new(2)));
}

#[test]
fn rare_options_are_read() {
    let parsed = |bytes: &[u8]| TcpOptions::parse(bytes);
    let block = SackBlock { left: SeqNum::new(1), right: SeqNum::new(2) };
    assert_eq!(parsed(&[5, 10, 0, 0, 0, 1, 0, 0, 0, 2]).sack.as_slice(), [block]);
    assert_eq!(parsed(&[34, 2]).fast_open, Some(FastOpen::REQUEST));
    assert_eq!(parsed(&[34, 6, 1, 2, 3, 4]).fast_open, FastOpen::from_cookie(&[1, 2, 3, 4]));
    assert_eq!(
        parsed(&[254, 4, 0xf9, 0x89]).fast_open,
        Some(FastOpen::REQUEST.into_experimental())
    );
    assert_eq!(parsed(&[28, 4, 0x80, 2]).user_timeout.map(UserTimeout::seconds), Some(120));
    assert_eq!(
        parsed(&[174, 5, 0, 0, 7]).accurate_ecn,
        Some(AccurateEcn::new(AccurateEcnOrder::Ect1First, &[7]))
    );
    assert_eq!(parsed(&[29, 4, 1, 1]).authentication, Some(Authentication::Ao));
    let md5 = [&[19, 18][..], &[0; 16]].concat();
    assert_eq!(parsed(&md5).authentication, Some(Authentication::Md5));
}

#[test]
fn a_long_user_timeout_is_said_in_minutes_and_never_shortened() {
    for (seconds, said) in [(0, 0), (32_767, 32_767), (32_768, 32_820), (u32::MAX, 32_767 * 60)] {
        assert_eq!(UserTimeout::from_seconds(seconds).seconds(), said);
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..41)) {
        let _ = TcpOptions::parse(&bytes);
    }

    #[test]
    fn no_list_of_known_kinds_panics(
        list in vec((prop::sample::select(std::vec![2u8, 3, 4, 5, 8, 28, 34, 172, 174, 254]), 0u8..20), 0..8),
    ) {
        let bytes = list.iter().flat_map(|(kind, len)| {
            let mut option = std::vec![*kind, *len];
            option.resize(usize::from(*len).max(2), 7);
            option
        });
        let bytes: std::vec::Vec<u8> = bytes.take(40).collect();
        let _ = TcpOptions::parse(&bytes);
    }
}
