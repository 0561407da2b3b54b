//! Tests of `tcp::option_order`: encoded bytes.

use proptest::prelude::*;

use super::*;
use crate::SeqNum;
use crate::tcp::{
    AccurateEcn, AccurateEcnOrder, FastOpen, SackBlock, SackBlocks, Timestamps, UserTimeout,
};

const SYN: TcpOptions = TcpOptions {
    mss: Some(Mss::new(1460)),
    window_scale: Some(WindowScale::new(7)),
    sack_permitted: true,
    timestamps: Some(Timestamps { val: 0x0102_0304, ecr: 0 }),
    sack: SackBlocks::NONE,
    fast_open: None,
    user_timeout: None,
    accurate_ecn: None,
    authentication: None,
    malformed: false,
};

const ORDERS: [OptionOrder; 4] =
    [OptionOrder::Linux, OptionOrder::FreeBsd, OptionOrder::LwIp, OptionOrder::Illumos];

fn encoded(options: &TcpOptions, order: OptionOrder) -> std::vec::Vec<u8> {
    let mut buf = [0xee; 44];
    let len = options.encode(order, &mut buf);
    assert_eq!(len, options.encoded_len(order));
    assert!(len.is_multiple_of(4) && len <= TcpOptions::MAX_LEN);
    assert!(buf[len..].iter().all(|byte| *byte == 0xee), "wrote beyond its length");
    buf[..len].to_vec()
}

fn blocks(count: u32) -> SackBlocks {
    let mut blocks = SackBlocks::NONE;
    for n in 0..count {
        blocks.push(SackBlock { left: SeqNum::new(n * 10), right: SeqNum::new(n * 10 + 5) });
    }
    blocks
}

#[test]
fn a_syn_in_the_order_of_linux() {
    assert_eq!(
        encoded(&SYN, OptionOrder::Linux),
        [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7]
    );
    let without_timestamps = TcpOptions { timestamps: None, ..SYN };
    assert_eq!(
        encoded(&without_timestamps, OptionOrder::Linux),
        [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]
    );
    let without_sack = TcpOptions { sack_permitted: false, ..SYN };
    assert_eq!(
        encoded(&without_sack, OptionOrder::Linux),
        [2, 4, 5, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7]
    );
}

#[test]
fn a_syn_in_the_order_of_freebsd() {
    assert_eq!(
        encoded(&SYN, OptionOrder::FreeBsd),
        [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0]
    );
    let without_timestamps = TcpOptions { timestamps: None, ..SYN };
    assert_eq!(
        encoded(&without_timestamps, OptionOrder::FreeBsd),
        [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 0, 0]
    );
}

#[test]
fn a_syn_in_the_order_of_lwip() {
    assert_eq!(
        encoded(&SYN, OptionOrder::LwIp),
        [2, 4, 5, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7, 1, 1, 4, 2]
    );
    let usual = TcpOptions { timestamps: None, sack_permitted: false, ..SYN };
    assert_eq!(encoded(&usual, OptionOrder::LwIp), [2, 4, 5, 0xb4, 1, 3, 3, 7]);
    let longest = TcpOptions { fast_open: FastOpen::from_cookie(&[1; 16]), ..SYN };
    assert_eq!(TcpOptions::parse(&encoded(&longest, OptionOrder::LwIp)), longest);
}

#[test]
fn a_syn_in_the_order_of_illumos_and_its_answer() {
    assert_eq!(encoded(&SYN, OptionOrder::Illumos), encoded(&SYN, OptionOrder::Linux));
    let answer = TcpOptions { timestamps: Some(Timestamps { val: 0x0102_0304, ecr: 5 }), ..SYN };
    assert_eq!(
        encoded(&answer, OptionOrder::Illumos),
        [4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 5, 2, 4, 5, 0xb4, 1, 3, 3, 7]
    );
    let without = TcpOptions { timestamps: None, ..SYN };
    assert_eq!(encoded(&without, OptionOrder::Illumos), encoded(&without, OptionOrder::Linux));
}

#[test]
fn data_segments_look_alike_in_every_order() {
    let timestamps = Some(Timestamps { val: 1, ecr: 2 });
    let stamped = TcpOptions { timestamps, ..TcpOptions::default() };
    let sacked = TcpOptions { sack: blocks(1), ..stamped };
    for order in ORDERS {
        assert!(encoded(&TcpOptions::default(), order).is_empty());
        assert_eq!(encoded(&stamped, order), [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        let bytes = encoded(&sacked, order);
        assert_eq!(bytes[..12], [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(bytes[12..], [1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 5]);
    }
}

#[test]
fn sack_blocks_take_the_room_that_is_left() {
    let sacked =
        |timestamps, count| TcpOptions { timestamps, sack: blocks(count), ..TcpOptions::default() };
    for order in ORDERS {
        let alone = TcpOptions::parse(&encoded(&sacked(None, 4), order));
        assert_eq!(alone.sack, blocks(4));
        let stamped = TcpOptions::parse(&encoded(&sacked(SYN.timestamps, 4), order));
        assert_eq!(stamped.sack, blocks(3));
    }
    let full = TcpOptions { fast_open: FastOpen::from_cookie(&[1; 16]), sack: blocks(1), ..SYN };
    let parsed = TcpOptions::parse(&encoded(&full, OptionOrder::Linux));
    assert_eq!(parsed, TcpOptions { sack: SackBlocks::NONE, ..full });
}

fn any_fast_open() -> impl Strategy<Value = FastOpen> {
    (any::<[u8; 16]>(), 1usize..=8, any::<bool>()).prop_map(|(bytes, pairs, experimental)| {
        let option = FastOpen::from_cookie(&bytes[..pairs * 2]).unwrap_or(FastOpen::REQUEST);
        if experimental { option.into_experimental() } else { option }
    })
}

fn any_accurate_ecn() -> impl Strategy<Value = AccurateEcn> {
    (any::<bool>(), prop::collection::vec(any::<u32>(), 0..=3)).prop_map(|(first, counters)| {
        let order = if first { AccurateEcnOrder::Ect0First } else { AccurateEcnOrder::Ect1First };
        AccurateEcn::new(order, &counters)
    })
}

prop_compose! {
    pub(in crate::tcp) fn any_options()(
        mss: Option<u16>, scale in prop::option::of(0u8..=14), sack_permitted: bool,
        timestamps: Option<(u32, u32)>, sacks in 0u32..=4,
        fast_open in prop::option::of(any_fast_open()), user_timeout: Option<u16>,
        accurate_ecn in prop::option::of(any_accurate_ecn()),
    ) -> TcpOptions {
        TcpOptions {
            mss: mss.map(Mss::new),
            window_scale: scale.map(WindowScale::new),
            sack_permitted,
            timestamps: timestamps.map(|(val, ecr)| Timestamps { val, ecr }),
            sack: blocks(sacks),
            fast_open,
            user_timeout: user_timeout.map(UserTimeout::from_bits),
            accurate_ecn,
            authentication: None,
            malformed: false,
        }
    }
}

/// True if `part` is what encoding leaves of an option list: each option unchanged or missing, and
/// a prefix of SACK.
fn is_part_of(part: &TcpOptions, whole: &TcpOptions) -> bool {
    fn kept<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }
    kept(&part.mss, &whole.mss)
        && kept(&part.window_scale, &whole.window_scale)
        && kept(&part.timestamps, &whole.timestamps)
        && kept(&part.fast_open, &whole.fast_open)
        && kept(&part.user_timeout, &whole.user_timeout)
        && kept(&part.accurate_ecn, &whole.accurate_ecn)
        && part.sack_permitted == whole.sack_permitted
        && whole.sack.as_slice().starts_with(part.sack.as_slice())
        && !part.malformed
}

proptest! {
    #[test]
    fn what_is_encoded_is_parsed_less_what_does_not_fit(options in any_options(), order in prop::sample::select(&ORDERS[..])) {
        let bytes = encoded(&options, order);
        let parsed = TcpOptions::parse(&bytes);
        prop_assert!(is_part_of(&parsed, &options), "{parsed:?} of {options:?}");
        prop_assert!(parsed == options || bytes.len() >= 20, "{parsed:?} of {options:?}");
        prop_assert_eq!(TcpOptions::parse(&encoded(&parsed, order)), parsed);
    }

    #[test]
    fn the_options_of_a_handshake_always_fit(options in any_options(), order in prop::sample::select(&ORDERS[..])) {
        let options = TcpOptions {
            user_timeout: None,
            accurate_ecn: None,
            fast_open: options.fast_open.filter(|option| !option.is_experimental()),
            sack: SackBlocks::NONE,
            ..options
        };
        prop_assert_eq!(TcpOptions::parse(&encoded(&options, order)), options);
    }
}
