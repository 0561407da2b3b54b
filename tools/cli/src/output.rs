//! Output of results, and the origin in each document.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde_json::{Map, Value, json};
use whimbrel_apps::Pace;
use whimbrel_apps::http::{KeepAlive, Limits};
use whimbrel_io::steering::SteeringCounters;
use whimbrel_link::LinkCounters;
use whimbrel_stack::Capabilities;
use whimbrel_stack::shard::SocketState;

use crate::drive::{FinishedRun, ResourceUsage, StackState};
use crate::failure::Failure;
use crate::options::{ClockKind, Detail, StackSetup};
use crate::proc::{self, first_line};
use crate::wrap::wrap;
use crate::{quantity, rules, streams};

/// Prints on the standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_on(io::stdout().lock(), text)
}

/// Prints on what stands for the standard output.
pub(crate) fn print_on(out: impl Write, text: &str) -> Result<(), Failure> {
    streams::write(out, text).map(drop).map_err(|error| unwritable(&error))
}

/// Prints on the standard output. False if its reader is gone.
pub(crate) fn print_to_reader(text: &str) -> Result<bool, Failure> {
    streams::write(io::stdout().lock(), text).map_err(|error| unwritable(&error))
}

/// Why the standard output cannot be written.
pub(crate) fn unwritable(error: &io::Error) -> Failure {
    Failure::run(format!("cannot write to the standard output: {error}; redirect it"))
}

/// First fields of each document.
pub(crate) fn document(
    schema: &str,
    setup: &StackSetup,
    ran: &FinishedRun<impl Sized>,
) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema".into(), schema.into());
    document.insert("tool".into(), format!("whimbrel {}", env!("CARGO_PKG_VERSION")).into());
    document.insert(
        "env".into(),
        json!({
            "cpu": cpu(),
            "kernel": first_line("/proc/sys/kernel/osrelease"),
            "wire": setup.typed,
            "wire_by_default": setup.by_default,
            "clock": if setup.clock == ClockKind::Virtual { "virtual" } else { "real" },
            "shards": setup.shards,
            "offloads": ran.offloads.as_ref().map(offloads),
        }),
    );
    // A run in virtual time repeats to the byte, and so does its document.
    let real = ran.effort.as_ref().filter(|_| setup.clock == ClockKind::Real);
    document.insert("effort".into(), real.map_or(Value::Null, effort));
    document.insert("rules".into(), rules::document(&setup.rules));
    if let Some(server) = &setup.server_rules {
        document.insert("server_rules".into(), rules::document(server));
    }
    document.insert("interrupted".into(), ran.is_interrupted.into());
    document.insert("seed".into(), ran.seed.map_or(Value::Null, Value::from));
    document.insert("target".into(), ran.target.to_string().into());
    document.insert(
        "stack".into(),
        json!({
            "client": ran.client.as_ref().map(stack),
            "server": ran.server.as_ref().map(stack),
            "kernel": ran.effort.as_ref().filter(|_| ran.is_over_the_kernel()).map(kernel),
        }),
    );
    let steering = (setup.shards > 1).then(|| steering(&ran.steering));
    document.insert("steering".into(), steering.into());
    document.insert(
        "links".into(),
        ran.links.map_or(Value::Null, |links| links.iter().map(link).collect()),
    );
    document
}

fn offloads(of: &Capabilities) -> Value {
    json!({
        "mtu": of.mtu,
        "tx_checksum": of.tx_checksum,
        "segmentation": if of.max_super > of.mtu.into() { of.max_super } else { 0 },
    })
}

fn effort(effort: &ResourceUsage) -> Value {
    json!({
        "user": effort.cpu.user.as_secs_f64(),
        "system": effort.cpu.system.as_secs_f64(),
        "elapsed": effort.elapsed.as_secs_f64(),
    })
}

/// A histogram of HdrHistogram's V2 format, compressed, in base64: tools of that family read it.
pub(crate) fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The system's name, release and architecture.
pub(crate) fn system() -> String {
    let release = first_line("/proc/sys/kernel/osrelease");
    let host = first_line("/proc/sys/kernel/hostname");
    format!("Linux {host} {release} {}", std::env::consts::ARCH)
}

/// A name for a run, of the length and the letters that iperf3's cookies have.
pub(crate) fn cookie(seed: u64) -> String {
    let mut state = seed ^ u64::from(std::process::id()) << 32 | 1;
    let letter = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyz234567"[(state >> 59) as usize])
    };
    (0..36).map(letter).collect()
}

/// Number of shards behind the wire, if there are several.
pub(crate) fn on_shards(setup: &StackSetup) -> String {
    match setup.shards {
        1 => String::new(),
        shards => format!("  on {shards} shards"),
    }
}

/// The counters of both stacks, for people, if they are ours.
pub(crate) fn counters(ran: &FinishedRun<impl Sized>, detail: Detail) -> String {
    let mut text = String::new();
    if detail == Detail::Plain {
        return text;
    }
    for (side, state) in [("client", &ran.client), ("server", &ran.server)] {
        let Some(state) = state else { continue };
        text += &format!("\nCounters ({side} side):\n");
        let drops = state.counters.drops();
        let drops = drops.map(|(reason, count)| (reason.name(), reason.help(), count));
        let all = state.counters.iter().chain(drops);
        for (name, about, value) in
            all.filter(|(.., value)| detail == Detail::Explained || *value > 0)
        {
            let _ = writeln!(text, "  {name:<32}{:>14}", quantity::thousands(value));
            if detail == Detail::Explained {
                text += &wrap(&format!("      {about}\n"), 6);
            }
        }
    }
    text
}

fn stack(state: &StackState) -> Value {
    let counters = state.counters.iter().filter(|(_, _, value)| *value > 0);
    let drops = state.counters.drops().filter(|(_, count)| *count > 0);
    let census = &state.census;
    let count = |(state, count): (SocketState, usize)| (key(state), count.into());
    json!({
        "counters": counters.map(|(name, _, value)| (name.into(), value.into())).collect::<Map<_, _>>(),
        "drops": drops.map(|(reason, count)| (reason.name().into(), count.into())).collect::<Map<_, _>>(),
        "states": state.states.iter().map(count).collect::<Map<_, _>>(),
        "connections": census.connections,
        "half_open": census.syn_entries,
        "time_wait": census.time_wait,
    })
}

/// The kernel's counts in this network namespace during the run, and its TIME-WAIT connections now.
fn kernel(effort: &ResourceUsage) -> Value {
    json!({ "counters": effort.kernel, "time_wait": proc::time_wait() })
}

/// The name of a state as a key: `syn_sent`.
fn key(state: SocketState) -> String {
    state.to_string().to_lowercase().replace('-', "_")
}

/// One direction of a link.
pub(crate) fn link(counters: &LinkCounters) -> Value {
    json!({
        "sent": counters.sent,
        "sent_octets": counters.sent_bytes,
        "delivered": counters.delivered,
        "lost": counters.lost(),
        "lost_queue": counters.lost_queue,
        "lost_targeted": counters.lost_targeted,
        "lost_policed": counters.lost_policed,
        "lost_replaced": counters.lost_replaced,
        "lost_forgotten": counters.lost_forgotten,
        "lost_too_long": counters.lost_too_long,
        "lost_down": counters.lost_down,
        "marked": counters.marked,
        "bleached": counters.bleached,
        "stripped": counters.stripped,
        "options_stripped": counters.options_stripped,
        "resets_forged": counters.resets_forged,
        "batched": counters.batched,
        "duplicated": counters.duplicated,
        "reordered": counters.reordered,
    })
}

fn steering(counters: &SteeringCounters) -> Value {
    json!({
        "forwarded": counters.forwarded,
        "adopted": counters.adopted,
        "dropped": counters.dropped,
    })
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|rest| rest.split_once(':')).map_or(String::new(), |(_, name)| name.trim().into())
}

/// Artificial delays of a server.
pub(crate) fn pace(pace: Pace) -> Value {
    json!({
        "think": pace.think.as_secs_f64(),
        "accept_delay": pace.accept.as_secs_f64(),
        "service_rate": (!pace.work.is_zero()).then(|| 1.0 / pace.work.as_secs_f64()),
    })
}

/// Number of requests on each connection of a server, if limited.
pub(crate) fn requests_per_connection(limits: Limits) -> Option<u64> {
    match limits.keep_alive {
        KeepAlive::UpTo(most) => Some(most),
        KeepAlive::Never => Some(1),
        KeepAlive::AsAsked => None,
    }
}
