//! Handshakes: SYNs without an answer, refused ones, full accept queues, missing options.

use super::{Confidence, Found, Surroundings};
use crate::flow::{CLIENT, Flow, SERVER};
use crate::half::{MS, SECOND};
use crate::id::Id;
use crate::id::kinds::{SYNS_DROPPED, SYNS_UNHEEDED, UNKNOWN};
use crate::shares::Wait;

pub(super) fn judge(flow: &Flow, around: &Surroundings, found: &mut Vec<Found>) {
    if flow.halves[CLIENT].opening.count == 0 {
        return;
    }
    found.extend(refused(flow, around));
    found.extend(overflow(flow, around));
    if found.is_empty() {
        found.extend(lost_opening(flow, around));
    }
    found.extend(options(flow));
}

/// Sees SYNs of a client that nothing, a reset, or an ACK without SYN answers. If ports and time are those
/// of a connection that has just closed, its record at the server is the reason.
fn refused(flow: &Flow, around: &Surroundings) -> Option<Found> {
    let [client, server] = flow.halves.each_ref().map(|half| half.opening);
    let is_accepted = server.count > 0;
    let until = if is_accepted { server.first } else { client.last };
    let waited = until.saturating_sub(client.first);
    let recent = flow.prior.filter(|prior| {
        prior.is_closed && client.first.saturating_sub(prior.closed_at) < 250 * SECOND
    });
    let costs = |found: Found| Found { time: waited, is_info: false, ..found };
    if let Some(prior) = recent {
        let closer = match prior.closer {
            Some(CLIENT) => "the client had closed first",
            _ => "the server had closed first",
        };
        let late = match flow.refusal {
            Some(refusal) if refusal.is_reset => Some("a reset answers"),
            Some(refusal) => {
                let is_old = prior.next[CLIENT]
                    .is_some_and(|next| refusal.ack.distance_from(next).unsigned_abs() < 1 << 17);
                is_old.then_some(closer)
            }
            None if client.count > 1 && flow.heard[SERVER] == 0 => Some("silence answers"),
            None => None,
        };
        if let Some(kind) = late {
            let frame = flow.refusal.map_or(client.last_frame, |refusal| refusal.frame);
            let found = costs(Found::new(Id::TwSynRefused, SERVER, frame).kind(kind));
            let is_sure = flow.refusal.is_some_and(|refusal| !refusal.is_reset);
            let is_quick = is_accepted && waited < 200 * MS;
            let found = if is_quick { found.info() } else { found };
            return Some(if is_sure { found } else { found.confidence(Confidence::Medium) });
        }
    }
    if let Some(refusal) = flow.refusal.filter(|refusal| refusal.is_reset && !is_accepted) {
        return Some(costs(Found::new(Id::SynRefused, SERVER, refusal.frame)));
    }
    let left = around.end.saturating_sub(client.last);
    let is_unanswered = flow.heard[SERVER] == 0 && (client.count > 1 || left >= 900 * MS);
    let found = Found::new(Id::SynUnanswered, SERVER, client.last_frame);
    let time = waited.saturating_add(left.min(waited.max(SECOND)));
    is_unanswered.then_some(Found { time, is_info: false, ..found })
}

/// Sees SYN-ACKs that come again although the third segment had passed, or text that is repeated behind it
/// without any answer (a server that uses SYN cookies then keeps nothing that could send its SYN-ACK again).
/// Only at the server it is certain that these had arrived; elsewhere several connections at once must show it.
fn overflow(flow: &Flow, around: &Surroundings) -> Option<Found> {
    let established = flow.established?;
    let unaccepted = flow.unaccepted();
    let (until, frame) = match (flow.late_syn_acks, unaccepted) {
        (0, None) => return None,
        (0, Some((_, until, frame))) => (until, frame),
        (_, unaccepted) => {
            let last = flow.halves[SERVER].opening.last;
            let until = unaccepted.map_or(last, |(_, until, _)| until.max(last));
            (until, flow.late_syn_ack_frame)
        }
    };
    let found = Found::new(Id::AcceptOverflow, SERVER, frame);
    let time = until.saturating_sub(established);
    let found = Found { time, is_info: time < 200 * MS, ..found };
    let is_shown = flow.late_syn_acks > 0 || flow.answered.is_some() || around.is_alive[SERVER];
    match flow.is_near(SERVER) {
        true => Some(found),
        false if around.overflows >= 3 && is_shown => Some(found.confidence(Confidence::Medium)),
        false => None,
    }
}

/// Sees SYNs or SYN-ACKs that come again before the handshake ends. SYNs that a capture at the server has were
/// dropped there; elsewhere they were lost, unless several connections at once, or others that it did not accept,
/// show that its queue was full.
fn lost_opening(flow: &Flow, around: &Surroundings) -> Option<Found> {
    let [client, server] = flow.halves.each_ref().map(|half| half.opening);
    let until = flow.established?;
    if server.count == 0 || client.count.max(server.count) < 2 {
        return None;
    }
    let (side, opening) = if client.count > 1 { (CLIENT, client) } else { (SERVER, server) };
    let lost = Found::new(Id::Loss, side, opening.last_frame).confidence(Confidence::Low);
    let full = Found::new(Id::AcceptOverflow, SERVER, opening.last_frame).kind(SYNS_DROPPED);
    let is_known = flow.is_near(SERVER) || around.overflows > 0;
    let found = match flow.unheeded_syns() {
        Some(_) if is_known => full.confidence(Confidence::Medium),
        Some(_) if around.is_full => full.confidence(Confidence::Low),
        Some(_) => lost.kind(SYNS_UNHEEDED),
        None => lost.kind(UNKNOWN),
    };
    Some(found.costs(until.saturating_sub(flow.first), flow))
}

/// Sees options that only one end has offered, or none. Without a window scale it costs what the window
/// costs, without SACK what repairs cost.
fn options(flow: &Flow) -> Option<Found> {
    let [client, server] = flow.halves.each_ref().map(|half| half.opening);
    if server.count == 0 || client.offer.is_cut || server.offer.is_cut {
        return None;
    }
    let [ours, theirs] = [client.offer, server.offer];
    let side = |is_offered: bool| usize::from(is_offered);
    let wait = |wait: Wait| flow.halves.iter().map(|half| half.shares.of(wait)).max().unwrap_or(0);
    let make = |kind: &'static str, is_offered: bool, time: u64| {
        let frame = if is_offered { server.frame } else { client.frame };
        let found = Found::new(Id::OptionsMissing, side(is_offered), frame).kind(kind);
        found.costs(time, flow)
    };
    let mut all = Vec::new();
    if ours.scale.is_none() || theirs.scale.is_none() {
        let is_offered = ours.scale.is_some();
        let kind =
            if is_offered { "window scale not accepted" } else { "window scale not offered" };
        let is_large = flow.halves.iter().any(|half| half.text > 100_000);
        let time = if is_large { wait(Wait::ReceiveWindow) } else { 0 };
        all.push(make(kind, is_offered, time));
    }
    if !(ours.sack && theirs.sack) {
        let kind = if ours.sack { "SACK not accepted" } else { "SACK not offered" };
        let is_lossy = flow.halves.iter().any(|half| half.losses.repeated >= 3);
        let time = if is_lossy { wait(Wait::Recovery) } else { 0 };
        all.push(make(kind, ours.sack, time));
    }
    if !(ours.timestamps && theirs.timestamps) {
        let kind =
            if ours.timestamps { "timestamps not accepted" } else { "timestamps not offered" };
        all.push(make(kind, ours.timestamps, 0).info());
    }
    all.into_iter().max_by_key(|found| found.time)
}
