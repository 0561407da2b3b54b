//! `whimbrel nstat`: the counters of a running stack under Linux' names, as iproute2's nstat prints them.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::attach::{Attached, HostOption};
use crate::failure::Failure;
use crate::wildcard::is_like;
use crate::{output, quantity};

/// Command line of `whimbrel nstat`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The process, by its number, its command or the path of its control socket [default: the only one
    /// that runs]; then names of counters, in which * is a wildcard [default: all].
    #[arg(value_name = "PROCESS|PATTERN")]
    words: Vec<String>,
    #[command(flatten)]
    host: HostOption,
    /// Counts since the stack began, which they are in any case: there is no history file.
    #[arg(short, long)]
    absolute: bool,
    /// Counters that are 0, too.
    #[arg(short, long)]
    zeros: bool,
    /// Print one JSON document, in nstat's form.
    #[arg(short, long)]
    json: bool,
    /// Print the growth in each interval, and its rate per second, until interrupted.
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time, conflicts_with = "json")]
    watch: Option<Duration>,
}

/// Prints the counters.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_pattern =
        |word: &String| word.contains('*') || GROUPS.iter().any(|group| word.starts_with(group));
    let (process, patterns) = match arguments.words.split_first() {
        Some((first, rest)) if !is_pattern(first) => (Some(first.as_str()), rest),
        _ => (None, arguments.words.as_slice()),
    };
    let mut attached = Attached::new(process, &arguments.host)?;
    let mut last = counters(&mut attached, patterns)?;
    if let Some(interval) = arguments.watch {
        let mut then = Instant::now();
        let mut has_reader = true;
        while has_reader {
            thread::sleep(interval);
            let now = counters(&mut attached, patterns)?;
            // A busy process answers late, and this one may have been stopped.
            let passed = then.elapsed();
            then += passed;
            let text = text(&grown(&now, &last), arguments.zeros, Some(passed));
            has_reader = output::print_to_reader(&text)?;
            last = now;
        }
        return Ok(());
    }
    output::print(&match arguments.json {
        true => format!("{}\n", json!({ "kernel": chosen(&last, arguments.zeros) })),
        false => text(&last, arguments.zeros, None),
    })
}

/// The counters that match one of the patterns, or all.
fn counters(attached: &mut Attached, patterns: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut counters = attached.counters()?;
    if let Some(none) = patterns.iter().find(|it| !counters.keys().any(|name| is_like(it, name))) {
        let text = format!("no counter is named {none:?}; * is a wildcard, as in TcpExtListen*");
        return Err(Failure::usage("PATTERN", text));
    }
    counters.retain(|name, _| {
        patterns.is_empty() || patterns.iter().any(|pattern| is_like(pattern, name))
    });
    Ok(counters)
}

/// The growth of each counter; of a gauge, its value.
fn grown(now: &Map<String, Value>, last: &Map<String, Value>) -> Map<String, Value> {
    let of = |counters: &Map<String, Value>, name: &str| counters.get(name).and_then(Value::as_u64);
    let growth = |(name, value): (&String, &Value)| {
        let value = value.as_u64().unwrap_or(0);
        let before = if name == GAUGE { 0 } else { of(last, name).unwrap_or(0) };
        (name.clone(), value.saturating_sub(before).into())
    };
    now.iter().map(growth).collect()
}

fn chosen(counters: &Map<String, Value>, zeros: bool) -> Map<String, Value> {
    let chosen = counters.iter().filter(|(_, value)| zeros || **value != 0);
    chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn text(counters: &Map<String, Value>, zeros: bool, passed: Option<Duration>) -> String {
    let mut text = String::from("#kernel\n");
    for (name, value) in chosen(counters, zeros) {
        let value = value.as_u64().unwrap_or(0);
        let passed = passed.filter(|_| name != GAUGE);
        let rate = passed.map_or(0.0, |passed| value as f64 / passed.as_secs_f64());
        let _ = writeln!(text, "{name:<32}{value:<16}{rate:6.1}");
    }
    text
}

/// Beginnings of counters' names.
const GROUPS: [&str; 5] = ["Tcp", "Udp", "Ip", "Icmp", "Whimbrel"];
/// Not a counter: it falls, too.
const GAUGE: &str = "TcpCurrEstab";
