//! Output of `run`: what passed between the program and the machine's network. The standard output is the
//! program's.

use serde_json::{Map, Value, json};
use whimbrel_io::text;

use super::Outcome;
use super::gateway::WireCounts;
use super::plan::RunPlan;
use crate::drive::StackState;
use crate::output;
use crate::quantity::{of, thousands};
use crate::size;
use crate::wrap::wrap;

/// The counts for people.
pub(super) fn summary(outcome: &Outcome) -> String {
    let Outcome { counts, drops, .. } = outcome;
    let (relay, udp, pings) = (&counts.relay, &counts.udp, &counts.pings);
    let mut ends = vec![format!("{} finished", thousands(relay.finished))];
    for (count, end) in [
        (relay.near_failed, "reset by the program"),
        (relay.far_failed, "reset by servers"),
        (relay.cut, "cut at the end"),
    ] {
        if count > 0 {
            ends.push(format!("{} {end}", thousands(count)));
        }
    }
    let mut lines = format!(
        "flows      {}: {}\nbytes      {} out, {} in\n",
        thousands(relay.flows),
        ends.join(", "),
        size::display(relay.bytes_up),
        size::display(relay.bytes_down),
    );
    if udp.flows > 0 {
        lines += &format!(
            "datagrams  {} out, {} in, in {}\n",
            thousands(udp.sent),
            thousands(udp.received),
            of(udp.flows, "flow"),
        );
    }
    if pings.sent > 0 {
        let (sent, received) = (thousands(pings.sent), thousands(pings.received));
        lines += &format!("echoes     {sent} requests out, {received} replies in\n");
    }
    for (count, what) in [
        (udp.displaced + pings.displaced, "displaced by newer flows"),
        (udp.dropped + pings.dropped, "lost for want of room"),
    ] {
        if count > 0 {
            lines += &format!("datagrams  {} {what}\n", thousands(count));
        }
    }
    if let Some(links) = &outcome.links {
        for (direction, link) in ["out", "in"].iter().zip(links) {
            lines += &format!(
                "link       {direction}: {} sent, {} lost, {} of them at the queue\n",
                thousands(link.sent),
                thousands(link.lost()),
                thousands(link.lost_queue),
            );
        }
    }
    if let Some(WireCounts { state, drops }) = &counts.wire {
        let StackState { counters, census, .. } = state;
        lines += &format!(
            "wire       {} segments out, {} in, {} retransmitted; drops {drops}\n",
            thousands(counters.out_segs),
            thousands(counters.in_segs),
            thousands(counters.retrans_segs),
        );
        if census.connections > 0 {
            let left = thousands(census.connections as u64);
            lines += &format!("wire       {left} connections whose end was not acknowledged\n");
        }
    }
    lines += &format!("refused    {}\n", counts.refused);
    lines += &format!("drops      {drops}\n");
    wrap(&lines, INDENT)
}

/// The counts for programs.
pub(super) fn document(plan: &RunPlan, outcome: &Outcome) -> Value {
    let Outcome { counts, drops, seconds, .. } = outcome;
    let (relay, udp, pings) = (&counts.relay, &counts.udp, &counts.pings);
    let reasons = |refusals: &crate::refusals::Refusals| -> Map<_, _> {
        refusals.iter().map(|(why, count)| (why.replace(' ', "_"), count.into())).collect()
    };
    json!({
        "schema": "whimbrel.run/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "program": text::path(plan.inside.program.as_ref()).to_string(),
        "exit_code": outcome.exit_code,
        "seconds": seconds,
        "flows": {
            "opened": relay.flows,
            "finished": relay.finished,
            "reset_by_program": relay.near_failed,
            "reset_by_servers": relay.far_failed,
            "cut": relay.cut,
        },
        "bytes": { "out": relay.bytes_up, "in": relay.bytes_down },
        "datagrams": {
            "flows": udp.flows,
            "displaced": udp.displaced,
            "out": udp.sent,
            "in": udp.received,
            "bytes_out": udp.bytes_sent,
            "bytes_in": udp.bytes_received,
            "dropped": udp.dropped,
        },
        "echoes": {
            "out": pings.sent,
            "in": pings.received,
            "displaced": pings.displaced,
            "dropped": pings.dropped,
        },
        "link": outcome.links.map(|[out, into]| json!({
            "out": output::link(&out),
            "in": output::link(&into),
        })),
        "wire": counts.wire.as_ref().map(|WireCounts { state, drops }| json!({
            "segments_out": state.counters.out_segs,
            "segments_in": state.counters.in_segs,
            "retransmitted": state.counters.retrans_segs,
            "connections_left": state.census.connections,
            "time_wait": state.census.time_wait,
            "drops": reasons(drops),
        })),
        "refused": reasons(&counts.refused),
        "drops": reasons(drops),
    })
}

/// Indent of the text in a line.
const INDENT: usize = 11;
