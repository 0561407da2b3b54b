//! The table of `bulk`, in the manner of iperf3's.

use std::fmt::Write;
use std::time::Duration;

use whimbrel_apps::bulk::{Direction, Sample, Shares, Totals, bitrate, transfer};
use whimbrel_apps::record::per_second;

use super::{BulkPlan, FinishedRun, Outcome, StreamOutcome, Window};
use crate::wrap::wrap;
use crate::{output, quantity, size};

/// The result as the table that iperf3 prints.
pub(super) fn text(plan: &BulkPlan, ran: &FinishedRun<Outcome>) -> String {
    let outcome = &ran.outcome;
    let headline = format!(
        "whimbrel {}  {}  over {}{}{}\n",
        env!("CARGO_PKG_VERSION"),
        ran.target,
        plan.setup.typed,
        output::on_shards(&plan.setup),
        window(plan)
    );
    let mut text = wrap(&headline, 4);
    let directions: &[Direction] = match plan.bulk.direction {
        Direction::Both => &[Direction::Send, Direction::Receive],
        Direction::Send => &[Direction::Send],
        Direction::Receive => &[Direction::Receive],
    };
    for direction in directions {
        if directions.len() > 1 {
            let _ = writeln!(text, "{}:", if is_send(*direction) { "sent" } else { "received" });
        }
        text += &intervals(outcome, *direction);
        text += "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";
        text += &totals(outcome, *direction);
    }
    text
}

/// Meaning of `--window` for this transfer: buffers of this stack grow from it, those of the kernel keep it.
fn window(plan: &BulkPlan) -> String {
    let Some(Window { send, recv, exact }) = plan.window else { return String::new() };
    let sizes = match send == recv {
        true => size::display(send),
        false => format!("{} / {}", size::display(send), size::display(recv)),
    };
    let grows = !exact && !plan.setup.wire.is_kernel();
    format!(", window {sizes}{}", if grows { " and growing" } else { ", fixed" })
}

fn intervals(outcome: &Outcome, direction: Direction) -> String {
    let mut text = String::from(if is_send(direction) { SENDING } else { RECEIVING });
    let count = outcome.streams.iter().map(|stream| stream.samples.len()).max().unwrap_or(0);
    let mut last = vec![0; outcome.streams.len()];
    for interval in 0..count {
        let mut sum = None::<(Sample, u64)>;
        for (number, stream) in of_direction(outcome, direction) {
            let Some(sample) = stream.samples.get(interval) else { continue };
            let moved = moved(sample.moved, direction);
            let _ = write!(text, "[{:>3}] {}", number + 1, span(sample, moved));
            if is_send(direction) {
                text += &sender(sample, &mut last[number]);
            }
            finish_line(&mut text, sample.omitted);
            sum = Some((*sample, sum.map_or(0, |(_, bytes)| bytes) + moved));
        }
        if let Some((sample, bytes)) = sum.filter(|_| of_direction(outcome, direction).count() > 1)
        {
            let _ = write!(text, "[SUM] {}", span(&sample, bytes));
            finish_line(&mut text, sample.omitted);
        }
    }
    text
}

fn totals(outcome: &Outcome, direction: Direction) -> String {
    let mut text = String::new();
    let here = outcome.elapsed.as_secs_f64();
    let mut line = |name: &str, (bytes, seconds): (u64, f64), again: Option<u64>, role: &str| {
        let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let again = again.map_or(String::new(), |count| count.to_string());
        let moved = format!("{:>11} {:>14}", transfer(bytes), bitrate(rate));
        let _ = writeln!(text, "[{name:>3}] {} {moved} {again:>4}  {role}", times(0.0, seconds));
    };
    let (ours, theirs) = match is_send(direction) {
        true => ("sender", "receiver"),
        false => ("receiver", "sender"),
    };
    let (mut own, mut other) = (0, None);
    let mut seconds_there = 0.0;
    for (number, stream) in of_direction(outcome, direction) {
        let name = (number + 1).to_string();
        let bytes = stream.counted(direction);
        let again = stream.samples.last().and_then(|sample| sample.sender_stats?.retransmits);
        own += bytes;
        line(&name, (bytes, here), again.filter(|_| is_send(direction)), ours);
        if let Some((bytes, seconds)) = stream.counted_there(direction) {
            let again = stream.theirs.and_then(|theirs| theirs.retransmits);
            let seconds = seconds.unwrap_or(here);
            seconds_there = f64::max(seconds_there, seconds);
            other = Some(other.unwrap_or(0) + bytes);
            line(&name, (bytes, seconds), again.filter(|_| !is_send(direction)), theirs);
        }
    }
    if of_direction(outcome, direction).count() > 1 {
        let again = outcome.retransmits.filter(|_| is_send(direction));
        line("SUM", (own, here), again, ours);
        if let Some(bytes) = other {
            line("SUM", (bytes, seconds_there), None, theirs);
        }
    }
    text
}

/// The streams that go this way, and their numbers.
fn of_direction(
    outcome: &Outcome,
    direction: Direction,
) -> impl Iterator<Item = (usize, &StreamOutcome)> {
    let goes = move |stream: &StreamOutcome| {
        stream.direction == direction || stream.direction == Direction::Both
    };
    outcome.streams.iter().enumerate().filter(move |(_, stream)| goes(stream))
}

/// Interval, transfer and rate.
fn span(sample: &Sample, bytes: u64) -> String {
    let length = sample.until.saturating_sub(sample.from);
    let rate = bitrate(per_second(bytes * 8, length));
    let (from, until) = (sample.from.as_secs_f64(), sample.until.as_secs_f64());
    format!("{} {:>11} {rate:>14}", times(from, until), transfer(bytes))
}

/// From when until when, seconds: as exact as the column is wide.
fn times(from: f64, until: f64) -> String {
    let places = if until < 100.0 { 2 } else { 1 };
    format!("{from:>5.places$}-{until:<5.places$}")
}

/// A number of bytes in five columns.
fn short(bytes: u64) -> String {
    transfer(bytes).trim_end_matches("Bytes").replace(' ', "")
}

/// The sender's values; `last` is its earlier count of retransmissions.
fn sender(sample: &Sample, last: &mut u64) -> String {
    let Some(sender_stats) = sample.sender_stats else { return String::new() };
    let retransmits = sender_stats.retransmits.map_or_else(
        || "-".into(),
        |count| {
            let fresh = count.saturating_sub(*last);
            *last = count;
            fresh.to_string()
        },
    );
    format!(
        " {retransmits:>4} {:>5} {:>5} {:>7} {}",
        short(sender_stats.cwnd),
        short(sender_stats.rwnd),
        sender_stats.rtt.map_or("-".into(), quantity::show),
        if sample.omitted { String::new() } else { limited(&sample.shares) }
    )
}

fn limited(shares: &Shares) -> String {
    let greatest = shares.greatest();
    greatest.map_or_else(String::new, |(limit, share)| {
        format!("{} {:.0}%", limit.name(), 100.0 * share)
    })
}

fn finish_line(text: &mut String, omitted: bool) {
    let trimmed = text.trim_end().len();
    text.truncate(trimmed);
    text.push_str(if omitted { "  (omitted)\n" } else { "\n" });
}

fn moved(totals: Totals, direction: Direction) -> u64 {
    if is_send(direction) { totals.sent } else { totals.received }
}

fn is_send(direction: Direction) -> bool {
    direction == Direction::Send
}

/// A length of time, seconds.
pub(super) fn span_seconds(from: Duration, until: Duration) -> f64 {
    until.saturating_sub(from).as_secs_f64()
}

const SENDING: &str =
    "[ ID] Interval, s    Transfer        Bitrate Retr  Cwnd  Rwnd     RTT Limited by\n";
const RECEIVING: &str = "[ ID] Interval, s    Transfer        Bitrate\n";
