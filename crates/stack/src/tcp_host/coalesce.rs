//! Segments of one burst that follow each other become one, where the device joined none: what a
//! connection does with text, it then does once for all of them.
//!
//! Joined is only what would be answered and taken alike: full segments of text in order, each beginning
//! where the one before it ends, with the same acknowledgment, window and timestamps, all marked by routers or
//! none, to a connection that has room for all of them. Everything else goes by itself.

use whimbrel_base::packet::{Payload, SegMeta};
use whimbrel_tcp::RxSegment;
use whimbrel_tcp::budget::{Budget, Pressure};
use whimbrel_tcp::table::Kind;
use whimbrel_wire::tcp::{OptionsView, TcpFlags};

use super::found::BURST;
use super::found::FoundSegment;
use crate::ip::Arrival;
use crate::tcp_host::records::Records;

impl Records {
    /// Returns the number of segments `behind` one that go with it.
    #[inline(always)]
    pub(crate) fn coalescible(
        &self,
        found: &FoundSegment<'_>,
        behind: &[FoundSegment<'_>],
        budget: &Budget,
    ) -> usize {
        match found.arrival.segment.payload {
            Payload::Borrowed(_, text) if text.len() >= LEAST => {
                self.judge_coalescible(found, behind, budget)
            }
            _ => 0,
        }
    }

    #[inline(never)]
    fn judge_coalescible(
        &self,
        first: &FoundSegment<'_>,
        behind: &[FoundSegment<'_>],
        budget: &Budget,
    ) -> usize {
        let Some(record) = first.record.filter(|record| record.kind() == Kind::Connection) else {
            return 0;
        };
        let Some(slot) = self.connections.0.get(record.index()) else { return 0 };
        let segment = &first.arrival.segment;
        let room = slot.connection.room_in_order(segment.header.seq).min(MOST);
        if !is_plain(segment) || budget.pressure() != Pressure::None {
            return 0;
        }
        let size = segment.payload.len();
        let mut len = size;
        let mut count = 0;
        for next in behind {
            let (following, text) = (&next.arrival.segment, next.arrival.segment.payload.len());
            let follows = next.record == first.record
                && next.arrival.key == first.arrival.key
                && is_plain(following)
                && following.header.seq == segment.header.seq + len
                && following.header.ack == segment.header.ack
                && following.header.window == segment.header.window
                && following.header.options == segment.header.options
                && following.meta == segment.meta
                // A mark is of those that have it: RFC 3168 6.1.3 has each echoed.
                && following.class == segment.class;
            if !follows || text == 0 || text > size || len + text > room {
                break;
            }
            len += text;
            count += 1;
            // A shorter one ends a super-segment, as where a device cuts one.
            if text < size {
                break;
            }
        }
        count
    }
}

/// A segment with those that follow it, whose text goes to `slices`.
pub(crate) fn join<'a>(
    first: &FoundSegment<'a>,
    behind: &[FoundSegment<'a>],
    slices: &'a mut [&'a [u8]; BURST],
) -> FoundSegment<'a> {
    let mut count = 0;
    let segment = &first.arrival.segment;
    let mut header = segment.header;
    let followers = behind.iter().map(|found| &found.arrival.segment);
    for (segment, place) in core::iter::once(segment).chain(followers).zip(slices.iter_mut()) {
        if let Payload::Borrowed(_, text) = segment.payload {
            *place = text;
        }
        // PSH of one of them is PSH of all.
        header.flags |= segment.header.flags;
        count += 1;
    }
    let gso_size = segment.payload.len() as u16;
    let payload = Payload::gathered(slices.get(..count).unwrap_or_default());
    let meta = SegMeta { segs: count as u16, gso_size, checksum: segment.meta.checksum };
    let segment = RxSegment { header, payload, meta, class: segment.class };
    let arrival = Arrival { key: first.arrival.key, segment };
    FoundSegment { arrival, hash: first.hash, record: first.record }
}

/// True if a segment says nothing but its text, its acknowledgment and its timestamps.
fn is_plain(segment: &RxSegment<'_>) -> bool {
    let (header, meta) = (&segment.header, segment.meta);
    let flags = header.flags;
    let usual = flags == TcpFlags::ACK || flags == TcpFlags::ACK | TcpFlags::PSH;
    usual && meta.segs == 1 && header.options == OptionsView::only(header.options.timestamps)
}

/// Text of a segment that others are looked for behind, bytes: what shorter ones cost is not worth it.
const LEAST: usize = 513;
/// Bytes of text that a segment may come to.
const MOST: u32 = 65_535;
