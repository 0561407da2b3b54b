//! Tests of `view`.

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
