//! Losses and their kinds, late segments, long segments that vanish, and paths that carry nothing.

use super::{Confidence, Found, Surroundings, has, is_seen_at};
use crate::flow::Flow;
use crate::half::{Half, Losses, MS, SECOND};
use crate::id::{Id, kinds};
use crate::shares::Wait;

pub(super) fn judge(flow: &Flow, around: &Surroundings, found: &mut Vec<Found>) {
    for (side, half) in flow.halves.iter().enumerate() {
        found.extend(blackhole(flow, side, half));
        let explained = [Id::PmtuBlackhole, Id::PeerSilent, Id::IdleForgotten, Id::AcceptOverflow];
        if !has(found, &explained) {
            found.extend(outage(flow, side, half, around));
        }
        found.extend(reordering(side, half));
        found.extend(spurious(flow, side, half));
        let explained =
            [Id::PmtuBlackhole, Id::PeerSilent, Id::IdleForgotten, Id::Outage, Id::AcceptOverflow];
        if !has(found, &explained) {
            found.extend(tail(flow, side, half));
            found.extend(loss(flow, side, half));
        }
    }
}

/// Sees segments of one length that are sent three times and more and never acknowledged, while shorter ones
/// are.
fn blackhole(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let stubborn = half.losses.stubborn;
    let is_long = stubborn.text > 500 && stubborn.text > half.losses.longest_acked;
    let is_full = stubborn.text >= half.mss / 10 * 9;
    if stubborn.repeats < 3 || !is_long || !is_full {
        return None;
    }
    let do_pass = half.losses.longest_acked > 0 || half.flight.iter().any(|sent| sent.is_sacked);
    let found = Found::new(Id::PmtuBlackhole, side, stubborn.frame);
    let time = stubborn.until.saturating_sub(stubborn.since);
    let confidence = if do_pass { Confidence::High } else { Confidence::Low };
    Some(Found { time, confidence, ..found }.costs(time, flow))
}

/// Sees a time in which text is repeated after time-outs twice and more, without any sign from the other end,
/// before both go on. Another connection that is silent then makes it certain.
fn outage(flow: &Flow, side: usize, half: &Half, around: &Surroundings) -> Option<Found> {
    // What was repeated had arrived: the path was slow, not down.
    if half.losses.spurious > 0 && half.losses.spurious * 2 >= half.losses.repeated {
        return None;
    }
    let long = half
        .losses
        .silences
        .iter()
        .filter(|(since, until, _)| until.saturating_sub(*since) >= SECOND);
    let (mut time, mut frame) = (0u64, None);
    for (since, until, at) in long {
        time = time.saturating_add(until.saturating_sub(*since));
        frame = frame.or(Some(*at));
    }
    let confidence = if around.is_shared_silence { Confidence::High } else { Confidence::Medium };
    Some(Found::new(Id::Outage, side, frame?).confidence(confidence).costs(time, flow))
}

/// Sees segments that came after others of a later IP id or TSval.
fn reordering(side: usize, half: &Half) -> Option<Found> {
    let losses = &half.losses;
    let found = Found::new(Id::Reordering, side, losses.overtaken_frame);
    let is_often = losses.overtaken * 500 >= half.segments;
    (losses.overtaken >= 3).then(|| if is_often { found } else { found.info() })
}

/// Sees D-SACK blocks (RFC 2883), and echoes of a first transmission's timestamp (RFC 3522).
fn spurious(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let losses = &half.losses;
    if losses.spurious == 0 || losses.overtaken >= 3 {
        return None;
    }
    let time = half.shares.of(Wait::Recovery);
    let found = Found::new(Id::SpuriousRetransmit, side, losses.spurious_frame);
    let is_most = losses.spurious * 2 >= losses.repeated + losses.needless;
    let found = found.costs(time, flow);
    Some(if is_most { found } else { found.info() })
}

/// Sees text that is repeated after a time-out, without duplicate ACKs or SACK blocks, and then acknowledged.
fn tail(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let losses = &half.losses;
    if losses.timeouts == 0 || losses.spurious >= losses.timeouts || !is_seen_at(flow, side, half) {
        return None;
    }
    let found = Found::new(Id::TailLoss, side, losses.timeout_frame);
    Some(found.costs(losses.timeout_time, flow))
}

/// Sees text that is repeated after signs from behind it, or that fills a gap.
fn loss(flow: &Flow, side: usize, half: &Half) -> Option<Found> {
    let losses = &half.losses;
    let lost = losses.repeated.saturating_sub(losses.timeouts).saturating_sub(losses.spurious);
    let frame = *losses.frames.first()?;
    if lost == 0 {
        return None;
    }
    let (kind, confidence) = match is_seen_at(flow, side, half) {
        true => kind_of(half),
        false => (kinds::NOT_HERE, Confidence::Medium),
    };
    let found = Found::new(Id::Loss, side, frame).kind(kind).confidence(confidence);
    let found = Found { frames: losses.frames.clone(), ..found };
    let recovery = half.shares.of(Wait::Recovery);
    let found = found.costs(recovery, flow);
    // One of a thousand segments costs a flow little.
    let is_rare = lost * 1_000 < half.segments;
    Some(if is_rare { found.info() } else { found })
}

/// Tells congestion, a policer and chance apart.
fn kind_of(half: &Half) -> (&'static str, Confidence) {
    let points = &half.losses.points;
    let range = half.rtt.most.saturating_sub(half.rtt.least);
    let is_queue = range >= (half.rtt.least / 10).max(2 * MS);
    let high = half.rtt.least.saturating_add(range / 2);
    let grown = points.iter().filter(|point| point.rtt >= high).count();
    if is_queue && grown * 10 >= points.len() * 6 {
        return (kinds::CONGESTION, Confidence::High);
    }
    if points.len() >= 15 && is_policed(half) {
        return (kinds::POLICER, Confidence::High);
    }
    match points.len() {
        3.. => (kinds::BY_CHANCE, Confidence::Medium),
        _ => (kinds::UNKNOWN, Confidence::Low),
    }
}

/// True if a bucket of tokens explains the losses: at each of them about as much had passed as a constant rate
/// allows, and in between never more. Losses by chance on a link whose rate is reached lie on such a line, too,
/// but amid the others.
fn is_policed(half: &Half) -> bool {
    let size = u64::from(half.mss) + HEADERS;
    let mut lost: Vec<_> = half.losses.points.iter().map(|it| (it.at, it.sent)).collect();
    if lost.len() >= Losses::MOST_POINTS {
        // The repairs of later ones are not known.
        let until = half.losses.points_until.saturating_sub(half.rtt.most.max(half.rtt.least) * 2);
        lost.retain(|it| it.0 < until);
    }
    lost.sort_unstable();
    let passed = |(at, sent): (u64, u64)| {
        let before = lost.partition_point(|it| it.0 < at) as u64;
        (at, sent.saturating_sub(before * size))
    };
    let points: Vec<_> = lost.iter().copied().map(passed).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return false };
    let total = last.1.saturating_sub(first.1);
    if last.0 == first.0 || total == 0 {
        return false;
    }
    let tolerance = (total / 50).max(20_000);
    let is_near = |at: &&(u64, u64)| at.1.abs_diff(on_line(*first, *last, at.0)) <= tolerance;
    let near = points.iter().filter(is_near).count();
    let course = half.pace.as_ref().map_or(&[][..], |pace| pace.points());
    let within = course.iter().filter(|it| it.0 > first.0 && it.0 < last.0);
    let (mut all, mut above) = (0, 0);
    for (at, sent) in within.copied().map(passed) {
        let next = points.partition_point(|it| it.0 <= at);
        let Some([from, to]) = points.get(next.saturating_sub(1)..=next) else { continue };
        all += 1;
        above += usize::from(sent > on_line(*from, *to, at) + size);
    }
    near * 10 >= points.len() * 9 && above * 25 <= all
}

/// Bytes that had passed at `at`, on the line through two points.
fn on_line(from: (u64, u64), to: (u64, u64), at: u64) -> u64 {
    let time = u128::from(to.0.saturating_sub(from.0)).max(1);
    let passed = u128::from(to.1.saturating_sub(from.1));
    from.1 + (passed * u128::from(at.saturating_sub(from.0)) / time) as u64
}

/// Bytes of the headers of IPv4 and of TCP with timestamps.
const HEADERS: u64 = 52;
