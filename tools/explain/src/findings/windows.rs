//! Limits of a sender that loses nothing: applications, windows, buffers, queues.

use super::{Confidence, Found, has, is_seen_at};
use crate::flow::Flow;
use crate::half::{Half, MS};
use crate::id::Id;
use crate::shares::Wait;

pub(super) fn judge(flow: &Flow, found: &mut Vec<Found>) {
    for (side, half) in flow.halves.iter().enumerate() {
        let receiver = 1 - side;
        found.extend(nagle(flow, side, half));
        found.extend(zero_window(flow, receiver, half));
        if !has(found, &[Id::OptionsMissing, Id::ZeroWindow]) || half.zero_window.count == 0 {
            found.extend(receive_window(flow, receiver, half, found));
        }
        found.extend(application(flow, side, half));
        found.extend(bufferbloat(flow, side, half));
        let is_plateau = send_buffer(flow, side, half);
        let lost = [Id::Loss, Id::TailLoss, Id::PmtuBlackhole, Id::Outage, Id::PeerSilent];
        if is_plateau.is_none() && !has(found, &lost) {
            found.extend(congestion_window(flow, side, half));
        }
        found.extend(is_plateau);
    }
}

/// Sees an application that is late while nothing is in flight: before an answer of the server, or in the
/// middle of what a side sends. A client that waits between requests costs nothing; nor does a side that had
/// sent all it had, as one that pushes events, which looks like one that is slow.
fn application(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let (answering, pausing) = (half.app.answering, half.app.pausing);
    let is_server = side == 1;
    let (pause, kind) = match (is_server, answering.time >= pausing.time) {
        (true, true) => (answering, "the server answers late"),
        (true, false) => (pausing, "the server pauses while it sends"),
        (false, _) if pausing.count > 0 && pausing.time >= answering.time => {
            (pausing, "the client pauses while it sends")
        }
        (false, _) => (answering, "the client waits between requests"),
    };
    if pause.count == 0 || pause.time < 200 * MS {
        return None;
    }
    let found = Found::new(Id::AppSlow, side, pause.frame).kind(kind).costs(pause.time, flow);
    Some(match kind {
        "the server answers late" => found,
        "the client waits between requests" => found.info(),
        _ => found.confidence(Confidence::Medium).info(),
    })
}

/// Sees text up to the window's right edge, time and again, where the sender is seen.
fn receive_window(flow: &Flow, receiver: usize, half: &Half, found: &[Found]) -> Option<Found> {
    let time = half.shares.of(Wait::ReceiveWindow).saturating_sub(half.zero_window.time);
    let is_scale = found.iter().any(|it| it.id == Id::OptionsMissing && !it.is_info);
    if time < 200 * MS || is_scale || !is_seen_at(flow, 1 - receiver, half) {
        return None;
    }
    let found = Found::new(Id::RwndLimited, receiver, half.rtt_frame(flow)).costs(time, flow);
    let is_known = half.edge_shift.is_some();
    Some(if is_known { found } else { found.confidence(Confidence::Low).info() })
}

/// Sees windows of 0.
fn zero_window(flow: &Flow, receiver: usize, half: &Half) -> Option<Found> {
    let open = half.zero_window.since.map_or(0, |since| flow.last.saturating_sub(since));
    let time = half.zero_window.time.saturating_add(open);
    let is_seen = half.zero_window.count > 0 || half.zero_window.since.is_some();
    let is_ended = flow.resets.is_empty() || half.zero_window.time > 0;
    (is_seen && is_ended && time >= 100 * MS)
        .then(|| Found::new(Id::ZeroWindow, receiver, half.zero_window.frame).costs(time, flow))
}

/// Sees a constant amount in flight for eight round trips, below the window, without a loss and with more to
/// send.
fn send_buffer(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let rounds = &half.rounds;
    if !half.has_plateau() || !is_seen_at(flow, side, half) {
        return None;
    }
    let found = Found::new(Id::SenderLimited, side, rounds.plateau_frame);
    Some(found.confidence(Confidence::Medium).costs(rounds.plateau_time, flow))
}

/// Sees, by exclusion, time that passes while a sender with more text waits for acknowledgments.
fn congestion_window(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let time = half.shares.of(Wait::CongestionWindow);
    let is_most = time >= 200 * MS && time >= half.shares.total() / 10 * 3;
    if !is_most || half.rounds.count < 3 || !is_seen_at(flow, side, half) {
        return None;
    }
    let kind = if half.rounds.count < 15 { "first window" } else { "growth" };
    let found = Found::new(Id::CwndLimited, side, half.rtt_frame(flow)).kind(kind);
    Some(found.confidence(Confidence::Low).costs(time, flow).info())
}

/// Sees short text that leaves just after an acknowledgment which came 40 to 500 ms late, time and again.
fn nagle(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let pause = half.delayed_acks;
    let confidence = match pause.count {
        0 => return None,
        1 | 2 => Confidence::Medium,
        _ => Confidence::High,
    };
    let found = Found::new(Id::NagleDelack, side, pause.frame).confidence(confidence);
    Some(found.costs(pause.time, flow))
}

/// Sees round trips of four times the least, and 100 ms, while much is in flight.
fn bufferbloat(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    if half.rtt.high < 10 || !is_seen_at(flow, side, half) {
        return None;
    }
    let found = Found::new(Id::Bufferbloat, side, half.rtt.high_frame);
    Some(found.costs(half.rtt.high_time, flow))
}

impl Half {
    /// A frame that shows what the flow waits for: the last of its first text.
    const fn rtt_frame(&self, flow: &Flow) -> u64 {
        if self.rounds.plateau_frame > 0 { self.rounds.plateau_frame } else { flow.last_frame }
    }
}
