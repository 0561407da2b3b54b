//! The first LF is found at each position and next to each byte.

use super::line_feed;

#[test]
fn first_line_feed_is_found_next_to_similar_bytes() {
    for length in 0..=26 {
        for other in [0x00, 0x08, 0x09, 0x0b, 0x0d, 0x7f, 0x80, 0x8a, 0xff] {
            let mut bytes = vec![other; length];
            assert_eq!(line_feed(&bytes), None, "{length} of {other:#04x}");
            for place in (0..length).rev() {
                bytes[place] = b'\n';
                assert_eq!(line_feed(&bytes), Some(place), "{place} of {length}, {other:#04x}");
            }
        }
    }
}
