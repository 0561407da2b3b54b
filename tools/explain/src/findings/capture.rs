//! Faults of the capture itself, which lower the confidence of other findings.

use super::Found;
use crate::flow::Flow;
use crate::id::Id;

pub(super) fn judge(flow: &Flow, found: &mut Vec<Found>) {
    let before = found.len();
    for (side, half) in flow.halves.iter().enumerate() {
        // Sees acknowledgments of numbers that no frame has.
        if half.unseen_acked > 0 {
            found.push(Found::new(Id::CaptureLossy, side, half.unseen_frame).info());
        }
        // Sees segments longer than the MSS that their receiver has announced.
        if half.oversized > 0 {
            found.push(Found::new(Id::CaptureOffloaded, side, half.oversized_frame).info());
        }
        // Sees one side that acknowledges ever more of another that is not there.
        let other = &flow.halves[1 - side];
        if half.segments >= 4 && other.segments == 0 && half.opening.count < 2 {
            found.push(Found::new(Id::CaptureOneWay, 1 - side, flow.first_frame).info());
        }
    }
    if flow.doubled > 0 {
        let doubled = Found::new(Id::CaptureDuplicates, 0, flow.doubled_frame).info();
        found.push(if flow.is_of_two_places() { doubled.kind("of two places") } else { doubled });
    }
    let is_faulty = found.iter().skip(before).any(|it| it.id != Id::CaptureOffloaded);
    if is_faulty {
        let is_one_way = found.iter().skip(before).any(|it| it.id == Id::CaptureOneWay);
        for it in found.iter_mut().take(before) {
            it.confidence = it.confidence.lower();
            it.is_info |= is_one_way;
        }
    }
}
