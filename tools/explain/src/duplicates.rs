//! Frames that a capture has twice: of two interfaces, or of a mirror of both directions.

use crate::segment::Segment;

/// The latest segments of a flow.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Recent {
    places: [Print; Self::LEN],
    next: u8,
}

/// The fields that two captures of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Print {
    from: u16,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    text: u32,
    ip_id: Option<u16>,
    timestamp: Option<u32>,
    /// Sum over SACK blocks.
    sack: u32,
    at: u64,
}

impl Recent {
    /// True if the segment is a copy of a recent one: with the same IP id within a second. Where there is none,
    /// a segment that is sent again has another TSval, and a SYN needs longer: within a millisecond. Pure ACKs,
    /// and those without TSval, within 10 us. Notes it otherwise.
    pub(crate) fn has(&mut self, segment: &Segment) -> bool {
        let sums = segment.sack.iter().map(|(start, end)| start.raw() ^ end.raw().rotate_left(7));
        let print = Print {
            from: segment.ends[0].port,
            seq: segment.seq.raw(),
            ack: segment.ack.raw(),
            flags: segment.flags.bits(),
            window: segment.window,
            text: segment.text,
            ip_id: segment.ip_id,
            timestamp: segment.timestamps.map(|[val, _]| val),
            sack: sums.fold(0, |sum, block| sum ^ block),
            at: segment.at,
        };
        let is_syn = segment.flags.is_syn();
        let limit = match print.ip_id {
            Some(_) => 1_000_000_000,
            None if is_syn || print.timestamp.is_some() && !segment.is_pure_ack() => 1_000_000,
            None => 10_000,
        };
        let is_copy = |before: &Print| {
            before.at > 0
                && print.at.saturating_sub(before.at) <= limit
                && Print { at: before.at, ..print } == *before
        };
        if self.places.iter().any(is_copy) {
            return true;
        }
        if let Some(place) = self.places.get_mut(usize::from(self.next)) {
            *place = print;
        }
        self.next = (self.next + 1) % Self::LEN as u8;
        false
    }

    /// Segments in mind.
    const LEN: usize = 16;
}
