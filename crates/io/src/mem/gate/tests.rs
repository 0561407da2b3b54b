use whimbrel_link::LinkConfig;

use super::*;

fn packet() -> Bytes {
    Bytes::from_static(&[7; 100])
}

/// Passes a packet at time zero.
fn enter(gate: &mut Gate, link: &mut Link) -> Option<LinkOutcome> {
    gate.enter(link, Instant::ZERO, packet())
}

#[test]
fn open_gate_passes_packet() {
    let (mut gate, mut link) = (Gate::default(), Link::new(LinkConfig::default(), 1));
    assert_eq!(enter(&mut gate, &mut link), Some(LinkOutcome::default()));
    assert_eq!(link.in_flight(), 1);
}

#[test]
fn held_packets_are_bounded_in_bytes() {
    let (mut gate, mut link) = (Gate::default(), Link::new(LinkConfig::default(), 1));
    gate.hold();
    assert_eq!(enter(&mut gate, &mut link), None);
    let bytes = gate.held_bytes;
    gate.held_bytes = Link::MAX_BYTES - bytes;
    assert_eq!(enter(&mut gate, &mut link), None);
    let lost = enter(&mut gate, &mut link);
    assert_eq!(lost, Some(LinkOutcome::lost(Loss::Crowded)));
    assert_eq!((link.counters().lost_crowded, gate.waiting()), (1, 2));
    assert_eq!((gate.release().len(), gate.held_bytes), (2, 0));
}

#[test]
fn unplugged_gate_loses_held_and_new_packets_and_stays_held() {
    let (mut gate, mut link) = (Gate::default(), Link::new(LinkConfig::default(), 1));
    gate.hold();
    enter(&mut gate, &mut link);
    gate.lose_held(&mut link);
    gate.is_unplugged = true;
    assert_eq!(enter(&mut gate, &mut link), Some(LinkOutcome::lost(Loss::Down)));
    gate.is_unplugged = false;
    assert_eq!(enter(&mut gate, &mut link), None);
    assert_eq!((link.counters().lost_down, gate.waiting(), link.in_flight()), (2, 1, 0));
}
