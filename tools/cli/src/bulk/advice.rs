//! Limits of a sender, and advice from what was measured.

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use whimbrel_apps::bulk::{Direction, Peer, Shares, bitrate, transfer};
use whimbrel_apps::record::per_second;
use whimbrel_apps::transport::{Limit, SenderStats};
use whimbrel_explain::{Id, Wait};
use whimbrel_link::LinkConfig;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::BufferSize;

use super::{BulkPlan, Outcome, StreamOutcome};
use crate::quantity;
use crate::wrap::wrap;

/// Some lines, or none if this side did not send, or does not know.
pub(super) fn text(plan: &BulkPlan, outcome: &Outcome) -> String {
    let senders = || outcome.streams.iter().filter(|stream| stream.direction != Direction::Receive);
    let mut shares = Shares::default();
    senders().for_each(|stream| shares.add(&stream.shares));
    let sender_stats =
        senders().find_map(|stream| stream.samples.iter().rev().find_map(|it| it.sender_stats));
    let (Some((greatest, _)), Some(sender_stats)) = (shares.greatest(), sender_stats) else {
        return String::new();
    };
    let mut limits: Vec<_> = Limit::ALL.into_iter().map(|it| (it, shares.share(it))).collect();
    limits.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let limits = limits.iter().filter(|(_, share)| *share >= 0.005);
    let limits: Vec<_> =
        limits.map(|(limit, share)| format!("{} {:.0}%", words(*limit), 100.0 * share)).collect();
    let busy = busy(plan, outcome);
    let is_saturated = busy.is_some_and(|busy| busy >= SATURATED);
    let path = Path::of(plan, outcome, &sender_stats);
    // A sender that fills a line waits for its windows all the time.
    let may_be_full = !is_saturated && greatest != Limit::App;
    let (limits, more) = match may_be_full.then(|| path.full()).flatten() {
        Some((full, queue)) => (full, queue),
        None => {
            let limits = format!("{} of the time", limits.join(", "));
            let more = match is_saturated {
                true => {
                    "This side's processor is the limit: it fills windows and buffers.\n".into()
                }
                false => remedy(plan, greatest, &sender_stats, &path),
            };
            (limits, more)
        }
    };
    let mut text = format!("Limited by: {limits}");
    if let Some(busy) = busy {
        let _ = write!(text, "; processor busy {:.0}%", 100.0 * busy);
    }
    text + "\n" + &more
}

/// For which share of the time each of the threads that move the bytes was on a processor.
fn busy(plan: &BulkPlan, outcome: &Outcome) -> Option<f64> {
    let [user, system] = outcome.effort?;
    let whole = (outcome.elapsed + plan.bulk.omit).as_secs_f64();
    let threads = f64::from(plan.setup.shards.max(1));
    (whole > 0.0).then(|| ((user + system).as_secs_f64() / whole / threads).min(1.0))
}

/// Figures of the path on which this side sends.
struct Path {
    /// Bits per second of the first stream, over the whole run.
    first_stream: f64,
    /// Bits per second of all streams in each interval of the run's second half, without slow start.
    rates: Vec<f64>,
    /// The rate of the line, bits per second, if it is one of this process and does not change.
    line: Option<u64>,
    /// The least round trip, and the last one.
    trips: Option<(Duration, Duration)>,
}

impl Path {
    fn of(plan: &BulkPlan, outcome: &Outcome, sender_stats: &SenderStats) -> Self {
        let senders = || outcome.streams.iter().filter(|it| it.direction != Direction::Receive);
        let is_plain = |link: &&LinkConfig| link.steps.is_empty() && link.back.is_none();
        let rate = |it: &StreamOutcome| per_second(it.counted.sent * 8, outcome.elapsed);
        Self {
            first_stream: senders().next().map_or(0.0, rate),
            rates: second_half(senders()),
            line: plan.setup.wire.mem_link().filter(is_plain).and_then(|link| link.rate),
            trips: sender_stats.min_rtt.zip(sender_stats.rtt),
        }
    }

    /// The words for the path and for its queue if it carries all that it can: a larger window would only
    /// fill the queue.
    fn full(&self) -> Option<(String, String)> {
        let (least, last) = self.trips?;
        let queue = last.saturating_sub(least);
        let rate = self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64;
        let fills = self.line.is_some_and(|line| rate >= FULL * line as f64);
        // A path that carries nothing is flat as well.
        let differs = |it: &f64| *it <= 0.0 || (it - rate).abs() > rate / 4.0;
        let is_flat = self.rates.len() > 1 && !self.rates.iter().any(differs);
        if !(fills || is_flat && queue >= SHORTEST_QUEUE.max(least / 2)) {
            return None;
        }
        let of = match self.line {
            Some(line) => format!("{} of {}", bitrate(rate), bitrate(line as f64)),
            None => bitrate(rate),
        };
        let [least, last, queue] = [least, last, queue].map(quantity::show);
        Some((
            format!("the line, which is full ({of})"),
            format!("Its queue is {queue} long: the round trip rose from {least} to {last}\n"),
        ))
    }

    /// Bytes that the line holds during a round trip without a queue, if its rate is known.
    fn product(&self) -> Option<u64> {
        let (line, (least, _)) = self.line.zip(self.trips)?;
        Some((line as f64 / 8.0 * least.as_secs_f64()) as u64)
    }
}

/// Bits per second of all `streams` in each interval of the second half.
fn second_half<'s>(streams: impl Iterator<Item = &'s StreamOutcome>) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for stream in streams {
        let counted = stream.samples.iter().filter(|sample| !sample.omitted);
        for (place, it) in counted.enumerate() {
            let rate = per_second(it.moved.sent * 8, it.until.saturating_sub(it.from));
            match sums.get_mut(place) {
                Some(sum) => *sum += rate,
                None => sums.push(rate),
            }
        }
    }
    sums.split_off(sums.len() / 2)
}

/// The effect of the largest limit on the path, and how to raise it. The values of the last interval
/// explain a rate only if they come near it.
fn remedy(plan: &BulkPlan, limit: Limit, sender_stats: &SenderStats, path: &Path) -> String {
    let kernel = plan.setup.wire.is_kernel();
    let window = match limit {
        Limit::Rwnd => Some(sender_stats.rwnd),
        Limit::Cwnd => Some(sender_stats.cwnd),
        Limit::Sndbuf if kernel => plan.bulk.options.buffers.map(|(send, _)| send.into()),
        Limit::Sndbuf => Some(largest_send_buffer(&plan.setup.rules.tunables).into()),
        Limit::App => None,
    };
    let window = window.filter(|window| *window > 0);
    let most = window.zip(sender_stats.rtt.filter(|rtt| !rtt.is_zero()));
    let most = most.map(|(window, rtt)| (window, rtt, window as f64 * 8.0 / rtt.as_secs_f64()));
    let ceiling = most.filter(|(_, _, most)| EXPLAINS.contains(&(*most / path.first_stream))).map(
        |(window, rtt, most)| {
            let (window, rtt, most) = (transfer(window), quantity::show(rtt), bitrate(most));
            format!("{window} per {rtt} round trip: at most {most}")
        },
    );
    let window = window.filter(|_| ceiling.is_some());
    // What the line holds in a round trip without a queue, where that is known.
    let more = window.map(|window| match path.product() {
        Some(product) if product > window => typed(product),
        _ => format!("{} or more", typed(window.saturating_mul(2))),
    });
    let remedy = match (limit, more) {
        (Limit::App, _) if plan.bulk.rate.is_some() => Some("--bitrate keeps it there".to_owned()),
        (Limit::Rwnd, Some(more)) if is_asked(plan) => Some(format!("give --window {more}")),
        // The receiver is another's: as `explain` says it.
        (Limit::Rwnd, Some(_)) => Some(settings(Id::RwndLimited)),
        (Limit::Sndbuf, None) if kernel => Some(settings(Id::SenderLimited)),
        (Limit::Sndbuf, Some(more)) => Some(format!("give --window {more}")),
        (Limit::App | Limit::Cwnd, _) | (Limit::Rwnd | Limit::Sndbuf, None) => None,
    };
    match (ceiling, remedy) {
        (Some(ceiling), Some(remedy)) => format!("{ceiling}; {remedy}\n"),
        (Some(only), None) | (None, Some(only)) => format!("{only}\n"),
        (None, None) => String::new(),
    }
}

/// The settings of `explain` for a finding.
fn settings(id: Id) -> String {
    let line = |system, text| wrap(&format!("  {system}: {text}"), 4);
    format!("{id}\n{}\n{}", line("Linux", id.linux()), line("FreeBSD", id.freebsd()))
}

/// Size that a send buffer reaches if it limits the sender, bytes.
fn largest_send_buffer(tunables: &Tunables) -> u32 {
    BufferSize::Auto.send_range(0, tunables).most
}

/// True if --window affects the receiver, too.
fn is_asked(plan: &BulkPlan) -> bool {
    plan.target.is_none() && !plan.setup.wire.is_kernel()
        || matches!(plan.bulk.peer, Peer::Iperf3(_))
}

/// A size as --window takes it, rounded up to a power of two.
fn typed(bytes: u64) -> String {
    let bytes = bytes.checked_next_power_of_two().unwrap_or(1 << 30).clamp(1 << 10, 1 << 30);
    match bytes {
        _ if bytes >= 1 << 20 => format!("{}M", bytes >> 20),
        _ => format!("{}k", bytes >> 10),
    }
}

/// The limit's name, as `explain` has it.
const fn words(limit: Limit) -> &'static str {
    let wait = match limit {
        Limit::App => Wait::Application,
        Limit::Rwnd => Wait::ReceiveWindow,
        Limit::Cwnd => Wait::CongestionWindow,
        Limit::Sndbuf => Wait::SendBuffer,
    };
    wait.name()
}

/// The possible rate of a window, divided by the measured rate, for which the window explains it. Below
/// this, window or round trip were different before the last interval.
const EXPLAINS: Range<f64> = 0.9..2.0;
/// The share of a line's rate from which on it is full: headers take the rest.
const FULL: f64 = 0.9;
/// The shortest queue that counts as one: less is the time of a few segments.
const SHORTEST_QUEUE: Duration = Duration::from_millis(2);
/// From which share on a processor has no time left.
const SATURATED: f64 = 0.9;

#[cfg(test)]
mod tests;
