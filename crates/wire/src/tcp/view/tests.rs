//! Tests of `view`.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Mss, OptionOrder, SackBlock, WindowScale};

const STAMPS: Timestamps = Timestamps { val: 0x0102_0304, ecr: 0x0506_0708 };

fn emitted(options: TcpOptions) -> ([u8; TcpHeader::MAX_LEN], usize) {
    let header = TcpHeader { src_port: 1, dst_port: 2, options, ..TcpHeader::default() };
    let mut bytes = [0; TcpHeader::MAX_LEN];
    let len = header.emit(OptionOrder::Linux, &mut bytes);
    (bytes, len)
}

#[test]
fn timestamps_alone_are_a_value_and_nothing_is_left_to_read() {
    for timestamps in [None, Some(STAMPS)] {
        let (bytes, len) = emitted(TcpOptions { timestamps, ..TcpOptions::default() });
        let (view, at) = TcpView::parse(&bytes[..len]).unwrap();
        assert_eq!((view.options, at), (OptionsView::only(timestamps), len));
        assert_eq!(view.options.sack(), None);
    }
}

#[test]
fn what_stands_beside_timestamps_is_read_when_asked_for() {
    let mut sacking = TcpOptions { timestamps: Some(STAMPS), ..TcpOptions::default() };
    let block = SackBlock { left: SeqNum::new(5), right: SeqNum::new(9) };
    assert!(sacking.sack.push(block));
    let syn = TcpOptions {
        mss: Some(Mss::new(1460)),
        window_scale: Some(WindowScale::new(7)),
        sack_permitted: true,
        timestamps: Some(STAMPS),
        ..TcpOptions::default()
    };
    for options in [sacking, syn, TcpOptions { timestamps: None, ..syn }] {
        let (bytes, len) = emitted(options);
        let (view, _) = TcpView::parse(&bytes[..len]).unwrap();
        assert_eq!(view.options.timestamps, options.timestamps);
        let blocks = Some(options.sack).filter(|blocks| !blocks.is_empty());
        assert_eq!(view.options.sack(), blocks);
        assert_eq!(view.options.whole(), options);
    }
}

proptest! {
    /// A SYN is read alike, whether its options are aligned or not.
    #[test]
    fn aligned_options_are_read_as_others_are(
        mss in any::<u16>(),
        list in vec((0_u8..5, any::<[u8; 8]>()), 0..4),
        cut in 0_usize..3,
    ) {
        let [high, low] = mss.to_be_bytes();
        let mut bytes = std::vec![2, 4, high, low];
        for (kind, body) in list {
            let head: [u8; 4] = match kind {
                0 => [1, 1, 4, 2],
                1 => [1, 3, 3, body[0]],
                2 => [4, 2, 8, 10],
                3 => [1, 1, 8, 10],
                _ => [1, 1, 1, 1],
            };
            bytes.extend_from_slice(&head);
            bytes.extend_from_slice(if head[3] == 10 { &body } else { &[] });
        }
        bytes.truncate(bytes.len().min(TcpOptions::MAX_LEN) - cut);
        let (view, whole) = (OptionsView::read(&bytes), TcpOptions::parse(&bytes));
        prop_assert_eq!(view.opening(), whole.opening());
        prop_assert_eq!(view.timestamps, whole.timestamps);
    }
}
