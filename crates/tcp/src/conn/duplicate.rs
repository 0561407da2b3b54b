//! Acknowledgments that report text which came twice (RFC 2883).

use crate::RxSegment;
use crate::send::reports_duplicate;

/// True if a segment tells of text that came twice.
#[inline]
pub(super) fn tells_of_duplicate(seg: &RxSegment<'_>) -> bool {
    seg.header.options.has_sack() && names_duplicate(seg)
}

/// True if the SACK option of a segment tells of text that came twice (RFC 2883).
#[inline(never)]
fn names_duplicate(seg: &RxSegment<'_>) -> bool {
    let blocks = seg.header.options.sack();
    blocks.is_some_and(|blocks| reports_duplicate(blocks.as_slice(), seg.header.ack))
}
