//! The document for programs: `whimbrel.explain/1`. Times are nanoseconds.

use serde_json::{Value, json};
use whimbrel_explain::{Finding, FlowReport, Wait};
use whimbrel_wire::Endpoint;

use super::{Ended, Explained};

/// The document of all captures.
pub(super) fn of(captures: &[Explained]) -> Value {
    json!({
        "schema": "whimbrel.explain/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "captures": captures.iter().map(capture).collect::<Vec<_>>(),
    })
}

fn capture(explained: &Explained) -> Value {
    let report = &explained.report;
    json!({
        "file": explained.file,
        "whole": matches!(explained.ended, Ended::Whole),
        "frames": report.frames,
        "segments": report.segments,
        "cut": report.cut,
        "connections": report.flow_count,
        "summed_up": report.summed_up,
        "dropped": explained.dropped,
        "unknown_link": explained.unknown.map_or(0, |(count, _)| count),
        "first": report.first,
        "last": report.last,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "flows": report.flows.iter().map(flow).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "id": finding.id.name(),
        "kind": finding.kind,
        "confidence": finding.confidence.name(),
        "info": finding.is_info,
        "client": end(finding.ends[0]),
        "server": end(finding.ends[1]),
        "look_at": if finding.side == 0 { "client" } else { "server" },
        "flows": finding.flows,
        "time_lost": finding.time_lost,
        "time_lost_most": finding.time_lost_most,
        "frames": finding.frames,
        "evidence": finding.evidence,
        "cause": finding.cause(),
        "refuted_by": finding.refuted_by(),
        "settings": { "linux": finding.linux(), "freebsd": finding.freebsd() },
    })
}

fn flow(flow: &FlowReport) -> Value {
    let direction = |side: usize| {
        let shares = Wait::ALL.into_iter().zip(flow.shares[side].nanos());
        let shares = shares.map(|(wait, nanos)| (wait.name().replace(' ', "_"), nanos.into()));
        json!({
            "text": flow.text[side],
            "repeated": flow.repeated[side],
            "rtt": flow.rtt[side],
            "time": shares.collect::<serde_json::Map<String, Value>>(),
            "time_known": flow.are_shares_known[side],
        })
    };
    json!({
        "client": end(flow.ends[0]),
        "server": end(flow.ends[1]),
        "first_frame": flow.first_frame,
        "first": flow.first,
        "last": flow.last,
        "place": flow.place.name(),
        "window_scale_known": flow.has_scale,
        "ids": flow.ids.iter().map(|id| id.name()).collect::<Vec<_>>(),
        "time_lost": flow.time_lost,
        "directions": [direction(0), direction(1)],
    })
}

fn end(end: Endpoint) -> String {
    match end.port {
        0 => end.addr.to_string(),
        _ => end.to_string(),
    }
}
