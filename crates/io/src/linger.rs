//! The end of a stream whose last words the peer has still to read: a close before it has sent all would take them
//! back.

use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Reads until the peer ends its stream, for `limit` in all: a peer that goes on byte by byte gets no more time.
/// `set_timeout` sets the time-out of a read.
pub(crate) fn read_to_end(
    mut stream: impl Read,
    set_timeout: impl Fn(Option<Duration>) -> io::Result<()>,
    limit: Duration,
) -> io::Result<()> {
    let (until, mut bytes) = (Instant::now() + limit, [0; 4_096]);
    for _ in 0..MOST_READS {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        set_timeout(Some(left))?;
        if stream.read(&mut bytes)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Limit of reads, for a peer that sends fast.
const MOST_READS: usize = 1_000;
