//! The table of `bulk`, in the manner of iperf3's.

use std::fmt::Write;
use std::time::Duration;

use whimbrel_apps::bulk::{Direction, Sample, Shares, Totals};
use whimbrel_apps::record::per_second;
use whimbrel_apps::transport::Limit;

use super::{Outcome, Plan, Ran};
use crate::{output, quantity};

/// The whole table.
pub(super) fn text(plan: &Plan, ran: &Ran<Outcome>) -> String {
    let outcome = &ran.outcome;
    let mut text = format!(
        "whimbrel {}  {}  over {}{}\n",
        env!("CARGO_PKG_VERSION"),
        ran.target,
        plan.ground.typed,
        output::on_shards(&plan.ground)
    );
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
    text += &advice(plan, outcome);
    text
}

fn intervals(outcome: &Outcome, direction: Direction) -> String {
    let mut text = String::from(if is_send(direction) { SENDING } else { RECEIVING });
    let count = outcome.streams.iter().map(|stream| stream.samples.len()).max().unwrap_or(0);
    let mut last = vec![0; outcome.streams.len()];
    for interval in 0..count {
        let mut sum = None::<(Sample, u64)>;
        for (number, stream) in outcome.streams.iter().enumerate() {
            let Some(sample) = stream.samples.get(interval) else { continue };
            let moved = moved(sample.moved, direction);
            let _ = write!(text, "[{:>3}] {}", number + 1, span(sample, moved));
            if is_send(direction) {
                text += &sender(sample, &mut last[number]);
            }
            finish_line(&mut text, sample.omitted);
            sum = Some((*sample, sum.map_or(0, |(_, octets)| octets) + moved));
        }
        if let Some((sample, octets)) = sum.filter(|_| outcome.streams.len() > 1) {
            let _ = write!(text, "[SUM] {}", span(&sample, octets));
            finish_line(&mut text, sample.omitted);
        }
    }
    text
}

fn totals(outcome: &Outcome, direction: Direction) -> String {
    let mut text = String::new();
    let whole = |octets: u64| {
        let seconds = outcome.elapsed.as_secs_f64();
        let bits = bitrate(per_second(octets * 8, outcome.elapsed));
        format!("{:>5.2}-{seconds:<6.2} sec  {:>11}  {bits:>15}", 0.0, transfer(octets))
    };
    let mut line = |name: &str, octets: u64, retransmits: Option<u64>, role: &str| {
        let retransmits = retransmits.map_or(String::new(), |count| count.to_string());
        let _ = writeln!(text, "[{name:>3}] {}  {retransmits:>4}  {role:>24}", whole(octets));
    };
    let many = outcome.streams.len() > 1;
    for (number, stream) in outcome.streams.iter().enumerate() {
        let name = (number + 1).to_string();
        let octets = moved(stream.counted, direction);
        if is_send(direction) {
            let own = stream.samples.last().and_then(|sample| sample.gauge?.retransmits);
            line(&name, octets, own, "sender");
            if let Some(confirmed) = stream.confirmed {
                let omitted = stream.totals.sent - stream.counted.sent;
                line(&name, confirmed.saturating_sub(omitted), None, "receiver (says so)");
            }
        } else {
            line(&name, octets, None, "receiver");
        }
    }
    if many {
        let octets = moved(outcome.counted(), direction);
        let retransmits = outcome.retransmits.filter(|_| is_send(direction));
        line("SUM", octets, retransmits, if is_send(direction) { "sender" } else { "receiver" });
    }
    text
}

/// What kept the first sender from sending more, and what would help.
fn advice(plan: &Plan, outcome: &Outcome) -> String {
    let Some(stream) =
        outcome.streams.first().filter(|_| plan.bulk.direction != Direction::Receive)
    else {
        return String::new();
    };
    let gauge = stream.samples.iter().rev().find_map(|sample| sample.gauge);
    let (Some((limit, share)), Some(gauge)) = (stream.shares.greatest(), gauge) else {
        return String::new();
    };
    let mut text = format!("limited by {} {:.0}% of the time", limit.name(), 100.0 * share);
    if let Some(rtt) = gauge.rtt.filter(|rtt| !rtt.is_zero()) {
        let window = match limit {
            Limit::Rwnd => gauge.rwnd,
            Limit::Sndbuf => plan.ground.rules.tunables.send_buffer.into(),
            Limit::Cwnd => gauge.cwnd,
            Limit::App => 0,
        };
        if window > 0 {
            let _ = write!(
                text,
                "; {} in a round trip of {} make at most {}",
                transfer(window),
                quantity::show(rtt),
                bitrate(window as f64 * 8.0 / rtt.as_secs_f64())
            );
        }
    }
    text += match limit {
        Limit::Rwnd => ": raise the receiver's buffers.recv\n",
        Limit::Sndbuf => ": raise buffers.send\n",
        Limit::Cwnd => ": the path is the limit, or its losses\n",
        Limit::App => ": there was nothing more to send\n",
    };
    text
}

/// Interval, transfer and rate.
fn span(sample: &Sample, octets: u64) -> String {
    let length = sample.until.saturating_sub(sample.from);
    format!(
        "{:>5.2}-{:<6.2} sec  {:>11}  {:>15}",
        sample.from.as_secs_f64(),
        sample.until.as_secs_f64(),
        transfer(octets),
        bitrate(per_second(octets * 8, length))
    )
}

/// What the sender knew; `last` is how much it had sent again before.
fn sender(sample: &Sample, last: &mut u64) -> String {
    let Some(gauge) = sample.gauge else { return String::new() };
    let retransmits = gauge.retransmits.map_or_else(
        || "-".into(),
        |count| {
            let fresh = count.saturating_sub(*last);
            *last = count;
            fresh.to_string()
        },
    );
    format!(
        "  {retransmits:>4}  {:>9}  {:>9}  {:>7}  {}",
        transfer(gauge.cwnd),
        transfer(gauge.rwnd),
        gauge.rtt.map_or("-".into(), quantity::show),
        limited(&sample.shares)
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

/// Bytes, as iperf3 prints them: in powers of 1,024, three digits.
fn transfer(octets: u64) -> String {
    three(octets as f64, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"])
}

/// Bits a second, as iperf3 prints them: in powers of 1,000, three digits.
pub(super) fn bitrate(bits: f64) -> String {
    three(bits, 1000.0, ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"])
}

fn three(mut value: f64, step: f64, units: [&str; 5]) -> String {
    let mut units = units.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while value >= step {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = next;
    }
    match value {
        _ if value < 9.995 => format!("{value:.2} {unit}"),
        _ if value < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// A length of time, seconds.
pub(super) fn span_seconds(from: Duration, until: Duration) -> f64 {
    until.saturating_sub(from).as_secs_f64()
}

const SENDING: &str = "[ ID] Interval              Transfer          Bitrate   Retr       Cwnd       \
                       Rwnd      RTT  Limited by\n";
const RECEIVING: &str = "[ ID] Interval              Transfer          Bitrate\n";
