//! Frames that a capture has twice: of two interfaces, or of a mirror of both directions.

use std::collections::{BTreeMap, VecDeque};

use crate::half::{MS, SECOND};
use crate::segment::Segment;

/// The latest segments of a flow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Recent {
    places: [(Print, u64); Self::LEN],
    next: u8,
    /// Of a flow with doubled frames, many more.
    wide: Option<Box<Wide>>,
}

/// Segments of a second, in order and by their fields: the copies of another place come a whole flight later.
#[derive(Clone, Default, Debug)]
struct Wide {
    order: VecDeque<Print>,
    times: BTreeMap<Print, u64>,
}

/// The fields that two captures of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Print {
    from: u16,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    text: u32,
    /// Or 0.
    ip_id: u16,
    timestamp: Option<u32>,
    /// Sum over SACK blocks.
    sack: u32,
}

impl Recent {
    /// Time since the segment of which this is a copy: with the same IP id within a second. Where there is none,
    /// a segment that is sent again has another TSval, and a SYN needs longer: within a millisecond, a SYN with
    /// TSval within half a second. Pure ACKs, and those without TSval, within 10 us. Once a flow has copies, the
    /// same TSval is enough within a second. `None`: it is no copy, and noted.
    pub(crate) fn age_of_original(&mut self, segment: &Segment) -> Option<u64> {
        let sums = segment.sack.iter().map(|(start, end)| start.raw() ^ end.raw().rotate_left(7));
        let print = Print {
            from: segment.ends[0].port,
            seq: segment.seq.raw(),
            ack: segment.ack.raw(),
            flags: segment.flags.bits(),
            window: segment.window,
            text: segment.text,
            ip_id: segment.ip_id.unwrap_or(0),
            timestamp: segment.timestamps.map(|[val, _]| val),
            sack: sums.fold(0, |sum, block| sum ^ block),
        };
        let is_syn = segment.flags.is_syn();
        let limit = match (segment.ip_id, print.timestamp) {
            (Some(_), _) => SECOND,
            (None, Some(_)) if self.wide.is_some() => SECOND,
            (None, Some(_)) if is_syn => SECOND / 2,
            (None, stamp) if is_syn || stamp.is_some() && !segment.is_pure_ack() => MS,
            (None, _) => MS / 100,
        };
        if let Some(wide) = &mut self.wide {
            return wide.age_of_original(print, segment.at, limit);
        }
        let age = |(before, at): &(Print, u64)| {
            let age = segment.at.saturating_sub(*at);
            (*at > 0 && *before == print && age <= limit).then_some(age)
        };
        if let Some(age) = self.places.iter().find_map(age) {
            self.widen();
            return Some(age);
        }
        if let Some(place) = self.places.get_mut(usize::from(self.next)) {
            *place = (print, segment.at);
        }
        self.next = (self.next + 1) % Self::LEN as u8;
        None
    }

    /// Keeps many more in mind from now on, because the flow has copies. True if it did not before.
    pub(crate) fn widen(&mut self) -> bool {
        if self.wide.is_some() {
            return false;
        }
        let mut wide = Wide::default();
        let known = self.places.iter().filter(|(_, at)| *at > 0);
        known.for_each(|(print, at)| wide.note(*print, *at));
        self.wide = Some(Box::new(wide));
        true
    }

    /// Memory, bytes.
    pub(crate) fn held(&self) -> usize {
        // Entries of both collections, and nodes that are half full.
        let wide = self.wide.as_ref();
        wide.map_or(0, |wide| wide.order.capacity() * size_of::<Print>() * 3)
    }

    /// Segments in mind.
    const LEN: usize = 16;
}

impl Wide {
    fn age_of_original(&mut self, print: Print, at: u64, limit: u64) -> Option<u64> {
        let age = self.times.get(&print).map(|since| at.saturating_sub(*since));
        if let Some(age) = age.filter(|age| *age <= limit) {
            return Some(age);
        }
        self.note(print, at);
        None
    }

    fn note(&mut self, print: Print, at: u64) {
        if self.times.insert(print, at).is_none() {
            self.order.push_back(print);
        }
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
    }

    const MOST: usize = 4_096;
}
