//! Report of a test, in the format of iperf3's server.

use alloc::string::String;
use core::fmt::Write;
use core::time::Duration;

use whimbrel_wire::Endpoint;

use crate::bulk::{Bulk, Direction, Stream, bitrate, transfer};
use crate::iperf3::stream_id;
use crate::record::per_second;
use crate::transport::Transport;

/// The line that names the client.
pub(super) fn accepted(from: Option<Endpoint>) -> String {
    let from = from
        .map_or_else(|| "unknown host".into(), |from| format!("{}, port {}", from.addr, from.port));
    format!("Accepted connection from {from}\n")
}

/// The transfer: bytes, direction and interval of each stream.
pub(super) fn of<T: Transport>(bulk: &Bulk<T>) -> String {
    let mut text = String::new();
    for (place, stream) in bulk.streams().iter().enumerate() {
        let end = |end: Option<Endpoint>| {
            end.map_or_else(|| "?".into(), |end| format!("{} port {}", end.addr, end.port))
        };
        let (local, remote) = (end(stream.local()), end(stream.remote()));
        let _ = writeln!(text, "[{:>3}] local {local} connected to {remote}", stream_id(place));
    }
    let both = bulk.plan().direction == Direction::Both;
    let mark = |direction: Direction| match (both, direction) {
        (false, _) => "",
        (true, Direction::Send) => "[TX-S]",
        (true, _) => "[RX-S]",
    };
    text += "[ ID] Interval           Transfer     Bitrate\n";
    for direction in [Direction::Receive, Direction::Send] {
        let ours = || bulk.streams().iter().filter(|stream| stream.direction() == direction);
        let count = ours().map(|stream| stream.samples().len()).max().unwrap_or(0);
        for interval in 0..count {
            intervals(&mut text, bulk, direction, mark(direction), interval);
        }
    }
    text += "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
    text += "[ ID] Interval           Transfer     Bitrate\n";
    for direction in [Direction::Receive, Direction::Send] {
        totals(&mut text, bulk, direction, mark(direction));
    }
    text
}

fn intervals<T: Transport>(
    text: &mut String,
    bulk: &Bulk<T>,
    direction: Direction,
    mark: &str,
    interval: usize,
) {
    let mut sum = None;
    for (place, stream) in bulk.streams().iter().enumerate() {
        let sample = stream.samples().get(interval).filter(|_| stream.direction() == direction);
        let Some(sample) = sample else { continue };
        let bytes = if direction.sends() { sample.moved.sent } else { sample.moved.received };
        let span = [sample.from, sample.until];
        let end = if sample.omitted { "  (omitted)" } else { "" };
        let _ = writeln!(text, "[{:>3}]{mark} {}{end}", stream_id(place), line(span, bytes));
        let (_, _, all) = sum.unwrap_or((span, end, 0));
        sum = Some((span, end, all + bytes));
    }
    if let Some((span, end, bytes)) = sum.filter(|_| bulk.plan().streams > 1) {
        let _ = writeln!(text, "[SUM]{mark} {}{end}", line(span, bytes));
    }
}

fn totals<T: Transport>(text: &mut String, bulk: &Bulk<T>, direction: Direction, mark: &str) {
    let role = if direction.sends() { "sender" } else { "receiver" };
    let span = [Duration::ZERO, bulk.elapsed()];
    let of = |stream: &Stream<T::Id>| {
        let counted = stream.counted();
        if direction.sends() { counted.sent } else { counted.received }
    };
    let mut sum = None;
    for (place, stream) in bulk.streams().iter().enumerate() {
        if stream.direction() != direction {
            continue;
        }
        let _ =
            writeln!(text, "[{:>3}]{mark} {}  {role}", stream_id(place), line(span, of(stream)));
        sum = Some(sum.unwrap_or(0) + of(stream));
    }
    if let Some(bytes) = sum.filter(|_| bulk.plan().streams > 1) {
        let _ = writeln!(text, "[SUM]{mark} {}  {role}", line(span, bytes));
    }
}

fn line(span: [Duration; 2], bytes: u64) -> String {
    let [from, until] = span;
    let rate = bitrate(per_second(bytes * 8, until.saturating_sub(from)));
    let (from, until) = (from.as_secs_f64(), until.as_secs_f64());
    format!("{from:>6.2}-{until:<6.2} sec  {:>11}  {rate:>15}", transfer(bytes))
}
