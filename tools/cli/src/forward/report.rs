//! Output of `forward`: its start, status and end.

use serde_json::{Map, Value, json};
use whimbrel_base::Instant;
use whimbrel_io::{Device, StackShard};
use whimbrel_wire::{Address, Endpoint};

use super::Forwarded;
use super::board::Counts;
use super::plan::ForwardPlan;
use crate::drive::FinishedRun;
use crate::quantity::{of, thousands};
use crate::serving::left_over;
use crate::wrap::wrap;
use crate::{output, size};

/// The lines at the start: scripts wait for the last one.
pub(super) fn opening(plan: &ForwardPlan, first: &StackShard) -> String {
    let mut text = format!(
        "whimbrel {}  stack up on {}{}\n",
        env!("CARGO_PKG_VERSION"),
        first.device.about(),
        output::on_shards(&plan.setup)
    );
    for at in &plan.listen {
        text += &format!("forwarding {at} to {}   backlog {}\n", plan.server, plan.backlog);
    }
    for at in plan.listen.iter().filter(|at| !at.addr.is_unspecified()) {
        let whence = match plan.setup.wire.is_reached_from_here() {
            true => "",
            false => "   (from another machine)",
        };
        text += &format!("try        nc {} {}{whence}\n", at.addr, at.port);
    }
    wrap(&text, INDENT)
}

/// The answer to a status request.
pub(super) fn status(now: Instant, counts: &Counts) -> String {
    let up = now.since(Instant::ZERO).as_secs_f64();
    let mut text = format!("whimbrel forward, pid {}, up {up:.1} s\n", std::process::id());
    text += &lines(counts);
    let Counts { census, memory, missing, .. } = counts;
    text += &format!(
        "queues     half-open {}, answers {}\n\
         memory     {} of {} (mem.budget), text {}\n",
        thousands(census.syn_entries as u64),
        thousands(census.replies as u64),
        size::display(memory.held),
        size::display(memory.budget),
        size::display(memory.text),
    );
    if *missing > 0 {
        let missing = of(*missing as u64, "shard");
        text += &format!("missing    {missing}, which did not answer in time\n");
    }
    wrap(&text, INDENT)
}

/// The line when no more connections are accepted.
pub(super) fn draining(counts: &Counts) -> String {
    let open = (counts.relay.open + counts.dials.waiting) as u64;
    format!("draining   {}; a second signal ends at once\n", of(open, "flow"))
}

/// The counts at the end.
pub(super) fn summary(counts: &Counts) -> String {
    let left = left_over(&counts.census);
    let text = format!(
        "{}left over: {} ({} in TIME-WAIT)\n",
        lines(counts),
        if left.is_empty() { "none" } else { &left },
        counts.census.time_wait,
    );
    wrap(&text, INDENT)
}

/// The counts for people.
fn lines(counts: &Counts) -> String {
    let Counts { relay, dials, in_segs, out_segs, retransmitted, resets, cookies, drops, .. } =
        counts;
    let mut ends = vec![format!("{} finished", thousands(relay.finished))];
    for (count, end) in [
        (relay.near_failed, "reset by clients"),
        (relay.far_failed, "reset by the server"),
        (relay.abandoned, "half-closed and idle for 60 s"),
        (relay.cut, "cut at the end"),
    ] {
        if count > 0 {
            ends.push(format!("{} {end}", thousands(count)));
        }
    }
    if relay.open > 0 {
        ends.push(format!("{} open", thousands(relay.open as u64)));
    }
    let refused: Vec<_> =
        dials.refused.iter().map(|(why, count)| format!("{} {why}", thousands(*count))).collect();
    let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
    format!(
        "flows      {}: {}\n\
         bytes      {} to the server, {} from it\n\
         refused    {refused}\n\
         waited     {} now, {} repeated at a full backlog, {} withdrawn by clients\n\
         segments   {in_segs} in, {out_segs} out, {retransmitted} retransmitted, {resets} resets sent, \
         {cookies} cookies sent\n\
         drops      {drops}\n",
        thousands(relay.flows),
        ends.join(", "),
        size::display(relay.bytes_up),
        size::display(relay.bytes_down),
        thousands(dials.waiting as u64),
        thousands(dials.repeated),
        thousands(dials.withdrawn),
    )
}

/// The result for programs.
pub(super) fn document(plan: &ForwardPlan, ran: &FinishedRun<Forwarded>) -> Value {
    let Forwarded { counts, elapsed } = &ran.outcome;
    let Counts { relay, dials, .. } = counts;
    let mut document = output::document("whimbrel.forward/1", &plan.setup, ran);
    let listen: Vec<_> = plan.listen.iter().map(ToString::to_string).collect();
    let refused: Map<_, _> =
        dials.refused.iter().map(|(why, count)| (why.replace(' ', "_"), (*count).into())).collect();
    let more = json!({
        "listen": listen,
        "to": plan.server.to_string(),
        "proxy_protocol": plan.proxy.map(|version| format!("{version:?}").to_lowercase()),
        "seconds": elapsed.as_secs_f64(),
        "flows": {
            "forwarded": relay.flows,
            "finished": relay.finished,
            "reset_by_client": relay.near_failed,
            "reset_by_server": relay.far_failed,
            "abandoned": relay.abandoned,
            "cut": relay.cut,
        },
        "bytes": { "to_server": relay.bytes_up, "to_clients": relay.bytes_down },
        "refused": refused,
        "repeated": dials.repeated,
        "withdrawn": dials.withdrawn,
        "cookies_sent": counts.cookies,
    });
    if let Value::Object(more) = more {
        document.extend(more);
    }
    document.into()
}

/// The unspecified endpoint.
pub(super) fn nowhere() -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([0; 4]), 0)
}

/// Indent of the text in a line.
const INDENT: usize = 11;
