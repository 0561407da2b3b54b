//! The result of a transfer, and whether it is complete.

use std::time::Duration;

use whimbrel_apps::ConnError;
use whimbrel_apps::bulk::{Direction, Sample, Shares, Totals};
use whimbrel_apps::condition::{Figure, Measure};
use whimbrel_apps::iperf3::{Fault, Results, StreamResult};
use whimbrel_apps::transport::PortShortage;
use whimbrel_wire::Endpoint;

use crate::descriptors;
use crate::failure::Failure;
use crate::target::{at, each, split, zone_of};

/// The result of a transfer.
pub(super) struct Outcome {
    pub(super) streams: Vec<StreamOutcome>,
    /// This side was to send nothing.
    pub(super) only_receives: bool,
    pub(super) elapsed: Duration,
    pub(super) conn_error: Option<ConnError>,
    /// Why a test of iperf3's came to nothing, if it did.
    pub(super) fault: Option<Fault>,
    /// Reason why no local port was free, if none was.
    pub(super) shortage: Option<PortShortage>,
    /// Address of the other side, as far as it was found.
    pub(super) target: Endpoint,
    /// Addresses of its name that could not be reached, with errors.
    pub(super) unreached: Vec<(Endpoint, ConnError)>,
    pub(super) retransmits: Option<u64>,
    /// Final report of an iperf3 server.
    pub(super) theirs: Option<Results>,
    /// Processor time of this process while bytes flowed: in user space, and in the kernel.
    pub(super) effort: Option<[Duration; 2]>,
}

/// The result of a stream.
pub(super) struct StreamOutcome {
    pub(super) direction: Direction,
    pub(super) local: Option<Endpoint>,
    pub(super) samples: Vec<Sample>,
    pub(super) counted: Totals,
    pub(super) totals: Totals,
    pub(super) shares: Shares,
    /// Bytes that this side gave to be sent.
    pub(super) given: u64,
    /// Bytes received according to the other side.
    pub(super) confirmed: Option<u64>,
    /// Time until the other side had confirmed them.
    pub(super) confirmed_after: Option<Duration>,
    /// Counts of an iperf3 server.
    pub(super) theirs: Option<StreamResult>,
}

impl StreamOutcome {
    /// Bytes sent or received, without the omitted time, as this side counted them.
    pub(super) const fn counted(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Send => self.counted.sent,
            Direction::Receive | Direction::Both => self.counted.received,
        }
    }

    /// The other side's count of bytes, and its seconds if reported; `None` without a report.
    pub(super) fn counted_there(&self, direction: Direction) -> Option<(u64, Option<f64>)> {
        if let Some(theirs) = self.theirs {
            return Some((theirs.bytes, Some(theirs.seconds).filter(|seconds| *seconds > 0.0)));
        }
        let omitted = self.totals.sent.saturating_sub(self.counted.sent);
        let confirmed = self.confirmed.filter(|_| direction == Direction::Send)?;
        let seconds = self.confirmed_after.map(|after| after.as_secs_f64());
        Some((confirmed.saturating_sub(omitted), seconds))
    }
}

/// Name of the other side in errors: the typed one and a colon, if it differs from the tried address,
/// and that address with the typed zone.
fn names(target: Endpoint, typed: Option<&str>) -> (String, String) {
    let host = typed.and_then(split).map_or("", |(host, _)| host);
    match (zone_of(host).1, typed) {
        (Some(zone), _) => (String::new(), format!("[{}%{zone}]:{}", target.addr, target.port)),
        (None, Some(typed)) if !at(target, typed).is_empty() => {
            (format!("{typed}: "), target.to_string())
        }
        _ => (String::new(), target.to_string()),
    }
}

impl Outcome {
    pub(super) fn moved_anything(&self) -> bool {
        self.streams.iter().any(|stream| stream.totals != Totals::default())
    }

    /// Fails if the transfer broke off, or more was sent than came; the error names the other side as `typed`,
    /// too, where that is a name, and its zone.
    pub(super) fn judge(&self, target: Endpoint, typed: Option<&str>) -> Result<(), Failure> {
        let (name, tried) = names(target, typed);
        if let Some(fault) = self.fault {
            return Err(Failure::run(format!("{name}{tried}: {fault}")));
        }
        if let Some(conn_error) = self.conn_error {
            let about = match (self.shortage, conn_error) {
                (Some(ports), _) => format!(" ({ports})"),
                (None, ConnError::NoDescriptor) => format!(" of {}", descriptors::own_limit()),
                _ => String::new(),
            };
            let before = self.unreached.iter().filter(|(at, _)| *at != target);
            let before: String = before.map(|failed| each(&[*failed]) + "; ").collect();
            let remedy = self.shortage.map_or_else(|| conn_error.remedy().into(), |it| it.remedy());
            return Err(Failure::run(format!(
                "{name}{before}{tried}: {conn_error}{about}: {remedy}"
            )));
        }
        let plain = self.theirs.is_none();
        if self.only_receives && !self.moved_anything() && plain {
            return Err(Failure::run(format!(
                "{name}{tried}: no data received: does the server send, as `whimbrel serve \
                 --chargen` does?"
            )));
        }
        let lacking = self.streams.iter().find_map(|stream| {
            let confirmed = stream.confirmed?;
            (confirmed != stream.given).then_some((stream.given, confirmed))
        });
        match lacking {
            Some((sent, came)) => Err(Failure::run(format!(
                "{name}{tried}: {sent} bytes were sent on a stream, but the other side received \
                 {came}"
            ))),
            None => Ok(()),
        }
    }

    /// Bytes sent and received, without the omitted time.
    pub(super) fn counted(&self) -> Totals {
        self.streams.iter().fold(Totals::default(), |sum, stream| Totals {
            sent: sum.sent + stream.counted.sent,
            received: sum.received + stream.counted.received,
        })
    }

    /// Returns a figure that conditions compare; [`PathFigures`](super::path::PathFigures) has the others.
    pub(super) fn figure(&self, name: &str) -> Option<Figure> {
        let Totals { sent, received } = self.counted();
        let bits = |bytes: u64| whimbrel_apps::record::per_second(bytes * 8, self.elapsed);
        let value = match name {
            "bitrate" => bits(sent.max(received)),
            "sent" => sent as f64,
            "received" => received as f64,
            "retransmits" => self.retransmits? as f64,
            _ => return None,
        };
        Some(Figure { value, whole: 1.0 })
    }
}

/// Names for `--fail-if`.
pub(super) const FIGURES: [(&str, Measure); 7] = [
    ("bitrate", Measure::Number),
    ("sent", Measure::Number),
    ("received", Measure::Number),
    ("retransmits", Measure::Number),
    ("again", Measure::Share),
    ("wait.mean", Measure::Time),
    ("wait.p99", Measure::Time),
];
