//! Ends of connections: silence, resets, and closes that do not come.

use super::{Confidence, Found, Surroundings, has};
use crate::flow::{Flow, Reset};
use crate::half::SECOND;
use crate::id::Id;

pub(super) fn judge(flow: &Flow, around: &Surroundings, found: &mut Vec<Found>) {
    if flow.established.is_none() {
        return;
    }
    if !has(found, &[Id::AcceptOverflow]) {
        found.extend(silent(flow, around));
    }
    found.extend(reset(flow, around));
    found.extend((0..2).filter_map(|side| close_wait(flow, side, around)));
}

/// Sees text that is repeated until the end and never answered. After idleness, and while the other end
/// answers on other connections, a box in between has forgotten this one.
fn silent(flow: &Flow, around: &Surroundings) -> Option<Found> {
    let silent = |side: usize| {
        let silence = flow.halves[side].losses.silence?;
        let until = around.end.min(
            flow.last.saturating_add(flow.last.saturating_sub(silence.since).saturating_mul(2)),
        );
        let time = until.saturating_sub(silence.since);
        (silence.repeats >= 2 && time >= SECOND).then_some((side, silence, time))
    };
    let (side, silence, time) = silent(0).or_else(|| silent(1))?;
    let half = &flow.halves[side];
    // Long segments that vanish are another matter.
    let stubborn = half.losses.stubborn;
    if stubborn.text > half.losses.longest_acked && stubborn.text > 500 && stubborn.text >= half.mss
    {
        return None;
    }
    let other = 1 - side;
    let is_idle = flow.idle.is_some_and(|idle| idle.side == side && !idle.is_answered);
    let (id, confidence) = match (is_idle, around.is_alive[other]) {
        (true, true) => (Id::IdleForgotten, Confidence::High),
        (true, false) => (Id::IdleForgotten, Confidence::Medium),
        (false, _) => (Id::PeerSilent, Confidence::High),
    };
    let found = Found::new(id, other, silence.frame).confidence(confidence);
    Some(Found { time, is_info: false, ..found })
}

/// Sees resets: after idleness, of a third party, or while text is unread.
fn reset(flow: &Flow, around: &Surroundings) -> Option<Found> {
    let first = flow.resets.first()?;
    let forged = |reset: &&Reset| {
        let signs = [reset.foreign_ttl, reset.foreign_id, reset.foreign_seq, reset.goes_on];
        signs.iter().filter(|sign| **sign).count() >= 2
    };
    let lost = |found: Found| Found { is_info: false, ..found };
    if first.idle >= 10 * SECOND || is_reset_after_idleness(flow, first) {
        let is_foreign = first.foreign_ttl || first.foreign_id;
        let is_alive = around.is_alive[first.side];
        let confidence = match (is_foreign, is_alive) {
            (true, _) => Confidence::High,
            (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        };
        let found = Found::new(Id::IdleForgotten, first.side, first.frame).confidence(confidence);
        return Some(lost(if is_foreign { found } else { found.info() }));
    }
    if let Some(reset) = flow.resets.iter().find(forged) {
        return Some(lost(Found::new(Id::RstInjected, reset.side, reset.frame)));
    }
    let has_fins = flow.halves.iter().all(|half| half.fin.is_some());
    if first.has_unread && !has_fins {
        let found = Found::new(Id::RstWithData, first.side, first.frame);
        return Some(lost(found.confidence(Confidence::Medium)));
    }
    None
}

/// True if the reset answers the first segments after idleness.
fn is_reset_after_idleness(flow: &Flow, reset: &Reset) -> bool {
    flow.idle.is_some_and(|idle| {
        idle.side != reset.side
            && !idle.is_answered
            && reset.at.saturating_sub(idle.at) < 5 * SECOND
    })
}

/// Sees a FIN after which the other side sends neither text nor FIN for a minute.
fn close_wait(flow: &Flow, side: usize, around: &Surroundings) -> Option<Found> {
    let (closed, other) = (&flow.halves[side], &flow.halves[1 - side]);
    let (at, frame) = closed.fin?;
    let is_acked = closed.in_flight() == 0;
    let until = other.fin.map_or(around.end, |(at, _)| at);
    let until = flow.resets.first().map_or(until, |reset| reset.at.min(until));
    let time = until.saturating_sub(at);
    let is_first = other.fin.is_none_or(|(other, _)| other > at);
    let is_held = is_acked && is_first && other.last_new <= at && time >= 60 * SECOND;
    is_held.then(|| {
        let found = Found::new(Id::CloseWaitHeld, 1 - side, frame);
        Found { time, is_info: false, ..found }
    })
}
