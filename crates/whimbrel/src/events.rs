//! Events of connections for `tracing`: those of the program's `--trace`.

use tracing::{debug, trace, warn};
use whimbrel_base::Instant;
use whimbrel_io::{Device, StackShard, Trace};
use whimbrel_link::tracer::{ConnectionChange, TraceEntry, TraceEvent, limit};

/// Adds to each shard a trace whose entries become events.
pub(crate) fn emit(shards: &mut [StackShard]) {
    let count = shards.len();
    for (number, shard) in shards.iter_mut().enumerate() {
        let medium = shard.device.capabilities().medium;
        let trace = Trace::calling(medium, number, count, Box::new(emit_entry));
        shard.trace = Some(trace.with_refusals());
    }
}

fn emit_entry(entry: &TraceEntry<'_>) {
    match entry {
        TraceEntry::Connection(change) => emit_change(change),
        TraceEntry::Refused { at, reason, count } => {
            warn!(target: REFUSED, t = seconds(*at), refused = reason.name(), count);
        }
        _ => {}
    }
}

/// An event at the target of the weightiest of the entry's events.
fn emit_change(change: &ConnectionChange<'_>) {
    let has = |events: &[TraceEvent]| change.events.iter().any(|it| events.contains(it));
    macro_rules! emit {
        ($level:ident, $target:expr) => {{
            let names: Vec<_> = change.events.iter().map(|event| event.name()).collect();
            let snapshot = change.snapshot;
            $level!(
                target: $target,
                t = seconds(change.at),
                conn = change.number,
                local = %change.flow.local,
                remote = %change.flow.remote,
                events = names.join(","),
                state = change.state.map_or_else(|| "CLOSED".into(), |state| state.to_string()),
                cwnd = snapshot.map(|it| it.cwnd),
                in_flight = snapshot.map(|it| it.snd.in_flight()),
                srtt = snapshot.and_then(|it| Some(it.srtt?.as_secs_f64())),
                rto = snapshot.map(|it| it.rto.as_secs_f64()),
                limit = snapshot.map(|it| limit(it.tally.limit())),
                delivered = snapshot.map(|it| it.tally.bytes_acked),
                received = snapshot.map(|it| it.tally.bytes_received),
            );
        }};
    }
    if has(&LIFE) {
        emit!(debug, CONNECTION);
    } else if has(&RECOVERY_EVENTS) {
        emit!(debug, RECOVERY);
    } else {
        emit!(trace, TRANSFER);
    }
}

/// Seconds since the stack began.
fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

/// Events of [`CONNECTION`].
const LIFE: [TraceEvent; 4] =
    [TraceEvent::Opened, TraceEvent::State, TraceEvent::Closed, TraceEvent::End];
/// Events of [`RECOVERY`].
const RECOVERY_EVENTS: [TraceEvent; 8] = [
    TraceEvent::SentAgain,
    TraceEvent::Disorder,
    TraceEvent::Reduced,
    TraceEvent::Recovery,
    TraceEvent::TimeOut,
    TraceEvent::Recovered,
    TraceEvent::Stalled,
    TraceEvent::Resumed,
];
/// Targets, which docs/LONG-PATHS.md lists.
const CONNECTION: &str = "whimbrel::connection";
const RECOVERY: &str = "whimbrel::recovery";
const TRANSFER: &str = "whimbrel::transfer";
const REFUSED: &str = "whimbrel::refused";
