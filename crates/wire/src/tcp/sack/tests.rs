//! Tests of `tcp::sack`.

use super::*;

const BLOCK: SackBlock = SackBlock { left: SeqNum::new(1), right: SeqNum::new(9) };

#[test]
fn a_fifth_block_is_refused() {
    let mut blocks = SackBlocks::NONE;
    for _ in 0..4 {
        assert!(blocks.push(BLOCK));
    }
    assert!(!blocks.push(BLOCK));
    assert_eq!(blocks.as_slice(), [BLOCK; 4]);
}

#[test]
fn an_option_has_one_to_four_whole_blocks() {
    let bytes = [0, 0, 0, 1, 0, 0, 0, 9].repeat(5);
    for len in 0..=bytes.len() {
        let whole = matches!(len, 8 | 16 | 24 | 32);
        assert_eq!(SackBlocks::from_body(&bytes[..len]).is_some(), whole, "{len} bytes");
    }
    assert_eq!(SackBlocks::from_body(&bytes[..8]).unwrap().as_slice(), [BLOCK]);
}
