//! Windows of any size, in units of any size, and segments larger than either: a reader that waits
//! for text gets it, and no timer has to ask for what an update should have told.

use std::time::Duration;

use super::pair::{Pair, Which, pattern};
use crate::Tunables;
use crate::conn::Read;

/// Sizes of a transfer, bytes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    buffer: u32,
    /// The size that the window scale is chosen for.
    buffer_max: u32,
    mss: u16,
    /// The most that is read at once; so much every five milliseconds.
    piece: usize,
}

/// The client sends, the server reads in pieces. Returns the longest time for which it found
/// nothing to read.
fn longest_hunger(sizes: Sizes) -> Duration {
    let Sizes { buffer, buffer_max, mss, piece } = sizes;
    let tunables = Tunables {
        recv_buffer: buffer,
        recv_buffer_max: buffer_max,
        send_buffer: 1 << 20,
        // So that three duplicates are a loss.
        sack: false,
        ..Tunables::default()
    };
    let mut pair = Pair::established_with(&tunables, mss);
    pair.server.reads = false;
    let bytes = pattern((3 * buffer as usize + 40_000).min(60 * piece).min(1 << 20));
    assert_eq!(pair.write(Which::Client, &bytes), bytes.len());
    let (mut hungry, mut longest) = (Duration::ZERO, Duration::ZERO);
    while pair.server.received.len() < bytes.len() {
        pair.run_for(PAUSE);
        let now = pair.now;
        match pair.server.with(now, |connection, cx| connection.read_up_to(cx, piece)) {
            Read::Data(data) => {
                pair.server.received.extend_from_slice(&data);
                hungry = Duration::ZERO;
            }
            _ => hungry += PAUSE,
        }
        longest = longest.max(hungry);
        assert!(
            hungry < Duration::from_secs(60),
            "{sizes:?}: {} bytes",
            pair.server.received.len()
        );
    }
    assert!(pair.server.received == bytes);
    // RFC 5681 2: an update is no duplicate if "the advertised window in the incoming acknowledgment"
    // differs from the last.
    assert_eq!(
        pair.client.cx.counters.fast_retrans, 0,
        "{sizes:?}: updates looked like duplicates"
    );
    longest
}

const PAUSE: Duration = Duration::from_millis(5);
/// Two round trips and a delayed acknowledgment; the least time-out is 200 ms.
const PROMPT: Duration = Duration::from_millis(85);

#[test]
fn no_reader_starves_while_text_waits_at_any_buffer_sizes() {
    for buffer in [2_048, 2_049, 4_001, 10_000, 65_535, 65_536, 305_000, 1 << 20] {
        for buffer_max in [buffer, 1 << 30] {
            for mss in [88, 536, 1_460, 8_960, 16_344, 65_495] {
                for piece in [700, 3_000, 50_000, usize::MAX / 64] {
                    let sizes = Sizes { buffer, buffer_max, mss, piece };
                    let longest = longest_hunger(sizes);
                    assert!(longest <= PROMPT, "{sizes:?}: nothing came for {longest:?}");
                }
            }
        }
    }
}
