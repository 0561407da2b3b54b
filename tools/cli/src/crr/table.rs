//! The table of `crr`, in the manner of netperf's.

use std::fmt::Write;

use super::{CrrPlan, Mode, judged};
use crate::drive::{FinishedRun, StackState};
use crate::runs::{Outcome, hindrances, of_some, runs};
use crate::wrap::wrap;
use crate::{output, quantity};

/// The table, below a line with the subject of the measurement.
pub(super) fn text(plan: &CrrPlan, ran: &FinishedRun<Outcome>) -> String {
    let record = &ran.outcome.record;
    let latency = &record.corrected;
    let micros = |nanos: f64| {
        of_some(latency, |_| format!("{:.1}", nanos / 1e3)).unwrap_or_else(|| "-".into())
    };
    let at = |quantile| micros(latency.value_at_quantile(quantile) as f64);
    let (send, receive) = buffers(plan, ran);
    let (request, response) = plan.sizes;
    let headline = format!(
        "whimbrel {}  TCP_{}  {}  over {}{}\n",
        env!("CARGO_PKG_VERSION"),
        plan.mode.name().to_uppercase(),
        ran.target,
        plan.setup.typed,
        output::on_shards(&plan.setup)
    );
    let mut text = wrap(&headline, 4);
    text += &wrap(&sureness(plan, &ran.outcome), 4);
    for line in hindrances(record) {
        let _ = writeln!(text, "{}", line.trim_start());
    }
    text += HEADING;
    let _ = writeln!(
        text,
        "{send:<6} {receive:<6} {request:<7} {response:<6} {:<8.2} {:<12.2} {}\n",
        record.elapsed().as_secs_f64(),
        record.rate(),
        record.failed(),
    );
    text += LATENCY;
    let _ = writeln!(
        text,
        "{:>9} {:>9} {:>9} {:>9} {:>10}  {:<6} {:<7} {}",
        micros(latency.mean()),
        at(0.5),
        at(0.9),
        at(0.99),
        micros(latency.max() as f64),
        counted(&ran.client, |state| state.counters.syn_retrans),
        reused(plan, ran),
        counted(&ran.client, |state| {
            (state.census.time_wait + state.census.connections) as u64
        }),
    );
    if let Some(spread) = record.intervals.spread(record.elapsed()).filter(|s| s.intervals > 1) {
        let _ = writeln!(
            text,
            "rate by the second: min {} max {} over {} intervals, cv {:.1}%",
            quantity::thousands(spread.min as u64),
            quantity::thousands(spread.max as u64),
            spread.intervals,
            100.0 * spread.variation()
        );
    }
    text
}

/// The runs, if there are several, and how sure their mean is.
fn sureness(plan: &CrrPlan, outcome: &Outcome) -> String {
    let Some((sure, rates)) = judged(plan, outcome) else { return String::new() };
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let half = sure.level.half_width(&rates).unwrap_or(f64::INFINITY);
    let wanted = if sure.holds(&rates) {
        String::new()
    } else {
        format!(", above the requested {:.2}%: run longer, or more often", 50.0 * sure.width)
    };
    format!(
        "\nmean of {} runs: {mean:.2} per sec, +/- {:.2}% with {}% confidence{wanted}\n{}",
        rates.len(),
        100.0 * half,
        sure.level.percent(),
        runs(outcome)
    )
}

/// The sizes of the client's buffers; the kernel chooses its own as it goes.
fn buffers(plan: &CrrPlan, ran: &FinishedRun<Outcome>) -> (String, String) {
    match ran.client {
        None => ("auto".into(), "auto".into()),
        Some(_) => {
            let tunables = &plan.setup.rules.tunables;
            (tunables.send_buffer.to_string(), tunables.recv_buffer.to_string())
        }
    }
}

fn counted(state: &Option<StackState>, count: impl Fn(&StackState) -> u64) -> String {
    state.as_ref().map_or_else(|| "-".into(), |state| count(state).to_string())
}

/// Number of connections that reused a TIME-WAIT connection, on the side that kept it.
fn reused(plan: &CrrPlan, ran: &FinishedRun<Outcome>) -> String {
    // Stacks count over all runs.
    let runs = ran.outcome.earlier.iter().chain([&ran.outcome]);
    let opened: u64 = runs.map(|run| run.record.opened).sum();
    let states = [ran.client.as_ref(), ran.server.as_ref()];
    if plan.mode == Mode::Rr || opened == 0 || ran.server.is_none() {
        return "-".into();
    }
    let reused: u64 = states.iter().flatten().map(|s| s.counters.time_wait_recycled).sum();
    format!("{:.1}%", 100.0 * reused as f64 / opened as f64)
}

const HEADING: &str = "\
Socket Size   Request Resp.  Elapsed  Trans.       Failed
Send   Recv   Size    Size   Time     Rate
bytes  bytes  bytes   bytes  secs.    per sec
";
const LATENCY: &str = "\
Latency (us)                                        SYN-   TW      Ports
     Mean       P50       P90       P99        Max  retx   reuse   in use
";
