//! The document `whimbrel.serve/1`, and the figures that conditions name.

use serde_json::{Value, json};
use whimbrel_apps::Statistics;
use whimbrel_apps::condition::{Figure, Measure};
use whimbrel_apps::http::{CloseBy, KeepAlive};
use whimbrel_apps::peer::{CloseMode, Role};
use whimbrel_io::text;

use super::Served;
use super::access_log::LogLines;
use super::plan::{ContentPlan, Protocol, ServePlan, SitePlan, Uploads};
use crate::drive::FinishedRun;
use crate::output::{self, pace, requests_per_connection};

/// The document of a server.
pub(super) fn document(plan: &ServePlan, ran: &FinishedRun<Served>) -> Value {
    let mut document = output::document("whimbrel.serve/1", &plan.setup, ran);
    document.insert("config".into(), config(plan));
    let Statistics {
        accepted,
        open: _,
        requests,
        refused,
        failed,
        silent,
        slow_heads,
        received,
        sent,
    } = ran.outcome.totals.statistics;
    document.insert(
        "summary".into(),
        json!({
            "duration": ran.effort.as_ref().map(|effort| effort.elapsed.as_secs_f64()),
            "accepted": accepted,
            "requests": requests,
            "refused": refused,
            "failed": failed,
            "silent": silent,
            "slow_heads": slow_heads,
            "received": received,
            "sent": sent,
            "access_log": plan.log.as_ref().map(|log| {
                let LogLines { written, lost } = log.finish();
                json!({ "written": written, "lost": lost })
            }),
        }),
    );
    document.into()
}

fn config(plan: &ServePlan) -> Value {
    let web = matches!(plan.content, ContentPlan::Web(..));
    json!({
        "listen": plan.listen.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "backlog": plan.backlog,
        "fast_open": plan.fast_open,
        "cookie_group": plan.group.is_some(),
        "content": content(&plan.content),
        "access_log": plan.access_log.as_ref().map(|path| text::path(path).to_string()),
        "h2c": matches!(plan.content, ContentPlan::Web(_, Protocol::H2c)),
        "close": close(plan),
        "keepalive": web.then_some(plan.limits.keep_alive != KeepAlive::Never),
        "requests_per_connection": requests_per_connection(plan.limits).filter(|_| web),
        "max_body": web.then_some(plan.limits.body),
        "head_timeout": web.then_some(plan.limits.head_time.as_secs_f64()),
        "pace": pace(plan.pace),
    })
}

fn content(content: &ContentPlan) -> Value {
    match content {
        ContentPlan::Web(SitePlan::Fixed(length), _) => json!({ "body": length }),
        ContentPlan::Web(SitePlan::Files { root, uploads }, _) => json!({
            "file_root": text::path(root).to_string(),
            "upload": *uploads == Uploads::Allowed,
        }),
        ContentPlan::Iperf3(_) => json!("iperf3"),
        ContentPlan::Service(role, _) => match role {
            Role::Echo => json!("echo"),
            Role::Discard => json!("discard"),
            Role::Chargen => json!("chargen"),
            Role::Sink => json!("sink"),
            Role::Respond { request, answer } => json!({ "respond": [request, answer.len()] }),
        },
    }
}

/// Which side closes connections first, as the document names it.
fn close(plan: &ServePlan) -> &'static str {
    match (&plan.content, plan.limits.close_by) {
        (ContentPlan::Service(_, CloseMode::First), _)
        | (ContentPlan::Web(..), CloseBy::Server) => "server",
        (ContentPlan::Service(_, CloseMode::Second) | ContentPlan::Iperf3(_), _)
        | (ContentPlan::Web(..), CloseBy::Client) => "client",
        (ContentPlan::Service(_, CloseMode::Reset), _) => "rst",
    }
}

/// A figure by its name.
pub(super) fn figure(ran: &FinishedRun<Served>, name: &str) -> Option<Figure> {
    let Statistics { accepted, requests, refused, failed, silent, slow_heads, .. } =
        ran.outcome.totals.statistics;
    let stack = ran.server.as_ref().map(|server| &server.counters);
    let (value, whole) = match name {
        "accepted" => (accepted, 1),
        "requests" => (requests, 1),
        "refused" => (refused, requests),
        "failed" => (failed, accepted),
        "silent" => (silent, accepted),
        "slow_heads" => (slow_heads, accepted),
        "retransmits" => (stack?.retrans_segs, stack?.out_segs),
        "resets" => (stack?.out_rsts, stack?.out_segs),
        "overflows" => (stack?.listen_overflows, 1),
        _ => return None,
    };
    Some(Figure { value: value as f64, whole: whole as f64 })
}

/// Names for `--fail-if`.
pub(super) const FIGURES: [(&str, Measure); 9] = [
    ("accepted", Measure::Number),
    ("requests", Measure::Number),
    ("refused", Measure::Share),
    ("failed", Measure::Share),
    ("silent", Measure::Share),
    ("slow_heads", Measure::Share),
    ("retransmits", Measure::Share),
    ("resets", Measure::Share),
    ("overflows", Measure::Number),
];
/// Of a second, with commas.
pub(super) const COLUMNS: [&str; 12] = [
    "start",
    "end",
    "accepted",
    "requests",
    "open",
    "retransmits",
    "resets",
    "drops",
    "accept_queue",
    "half_open",
    "time_wait",
    "memory",
];
