//! The page for people: what costs most first, on one screen.

use std::fmt::Write as _;
use std::time::Duration;

use whimbrel_explain::{Finding, FlowReport, Wait};

use super::{Arguments, Explained};
use crate::quantity::{self, thousands};
use crate::wrap::wrap;

/// The page of a capture.
pub(super) fn of(explained: &Explained, arguments: &Arguments) -> String {
    let report = &explained.report;
    let mut page = String::new();
    let lasted = nanos(report.last.saturating_sub(report.first));
    let (frames, flows) = (thousands(report.frames), quantity::of(report.flow_count, "connection"));
    let _ = writeln!(page, "{}: {frames} frames, {flows}, {lasted}", explained.name);
    if explained.dropped > 0 {
        let dropped = thousands(explained.dropped);
        let _ =
            writeln!(page, "  the capture itself dropped {dropped} frames: findings may be wrong");
    }
    if let Some((count, number)) = explained.unknown {
        let frames = quantity::of(count, "frame");
        let _ = writeln!(page, "  {frames} of unknown link types ({number} first) skipped");
    }
    if report.cut > 0 {
        let cut = quantity::of(report.cut, "TCP segment");
        let _ = writeln!(
            page,
            "  {cut} cut within the header left out: capture 96 bytes of each packet (-s 96)"
        );
    }
    if report.segments == 0 {
        let is_selected = arguments.flow.is_some() || arguments.filter.is_some();
        page.push_str(match is_selected {
            true => "  no TCP segment matches: without --flow and --filter, all connections are listed\n",
            false => "  no TCP segments: nothing to explain\n",
        });
        return page;
    }
    let worst: Vec<_> = report.worst().collect();
    if worst.is_empty() {
        page.push_str("  nothing found that costs time\n");
    }
    for finding in worst.iter().take(MOST_SHOWN) {
        page.push_str(&paragraph(finding));
    }
    if worst.len() > MOST_SHOWN {
        let _ = writeln!(page, "\n… and {} more: use --json", worst.len() - MOST_SHOWN);
    }
    let infos: Vec<_> = report.findings.iter().filter(|it| it.is_info).collect();
    if !infos.is_empty() {
        page.push_str("\nINFO, without a cost:\n");
        for finding in infos.iter().take(MOST_INFOS) {
            let _ = writeln!(page, "{}", wrap(&format!("  {}", headline(finding)), 4));
        }
        if infos.len() > MOST_INFOS {
            let _ = writeln!(page, "  … and {} more: use --json", infos.len() - MOST_INFOS);
        }
    }
    page.push_str(&flow_list(explained, arguments));
    page
}

fn paragraph(finding: &Finding) -> String {
    let mut text = format!("\n{}\n", wrap(&headline(finding), 4));
    for fact in &finding.evidence {
        let _ = writeln!(text, "{}", wrap(&format!("  the host says: {fact}"), 4));
    }
    let lines = [
        ("cause", finding.cause()),
        ("refuted if", finding.refuted_by()),
        ("Linux", finding.linux()),
        ("FreeBSD", finding.freebsd()),
    ];
    for (name, line) in lines {
        let _ = writeln!(text, "{}", wrap(&format!("  {name}: {line}"), 4));
    }
    text
}

/// `LOSS congestion (high confidence): 10.0.0.1:40000 -> 10.0.0.2:80, 3 connections, 1.2 s lost, frames 7, 9`
fn headline(finding: &Finding) -> String {
    let mut text = finding.id.name().to_owned();
    if !finding.kind.is_empty() {
        let _ = write!(text, ", {}", finding.kind);
    }
    let [client, server] = finding.ends;
    let at = if finding.side == 0 { "client" } else { "server" };
    let _ = write!(text, " ({} confidence): ", finding.confidence.name());
    match client.port {
        0 => {
            let _ = write!(text, "{} -> {server}", client.addr);
        }
        _ => {
            let _ = write!(text, "{client} -> {server}");
        }
    }
    let _ = write!(text, ", look at the {at}");
    if finding.flows > 1 {
        let _ = write!(text, ", {} connections", thousands(finding.flows));
    }
    if !finding.is_info {
        let _ = write!(text, ", {} lost", nanos(finding.time_lost));
        if finding.flows > 1 {
            let most = nanos(finding.time_lost_most);
            let _ = write!(text, " in sum, {most} at most in one");
        }
    }
    let frames: Vec<_> = finding.frames.iter().map(u64::to_string).collect();
    let _ =
        write!(text, ", frame{} {}", if frames.len() > 1 { "s" } else { "" }, frames.join(", "));
    text
}

fn flow_list(explained: &Explained, arguments: &Arguments) -> String {
    let flows = &explained.report.flows;
    let shown = if arguments.flow.is_some() { flows.len() } else { arguments.worst };
    if shown == 0 || flows.is_empty() {
        return String::new();
    }
    let mut text = "\nConnections, by time lost:\n".to_owned();
    for flow in flows.iter().take(shown) {
        text.push_str(&flow_lines(flow));
    }
    if flows.len() > shown {
        let _ = writeln!(text, "  … and {} more: use --worst N", flows.len() - shown);
    }
    text
}

fn flow_lines(flow: &FlowReport) -> String {
    let [client, server] = flow.ends;
    let ids: Vec<_> = flow.ids.iter().map(|id| id.name()).collect();
    let mut line = format!(
        "  {client} -> {server}, from frame {}, {}, captured at: {}",
        flow.first_frame,
        nanos(flow.last.saturating_sub(flow.first)),
        flow.place.name(),
    );
    if !flow.has_scale && flow.text != [0, 0] {
        line.push_str(", window scale unknown (no SYN)");
    }
    if !ids.is_empty() {
        let _ = write!(line, ": {}", ids.join(", "));
    }
    let mut text = format!("{}\n", wrap(&line, 4));
    for (side, name) in ["client", "server"].into_iter().enumerate() {
        if flow.text[side] == 0 {
            continue;
        }
        let mut line = format!("    {name} sent {} bytes", thousands(flow.text[side]));
        if flow.repeated[side] > 0 {
            let _ = write!(line, ", {} segments again", thousands(flow.repeated[side]));
        }
        if let Some(rtt) = flow.rtt[side] {
            let _ = write!(line, ", least round trip {}", nanos(rtt));
        }
        if !flow.are_shares_known[side] {
            line.push_str("; time: not known here, far from the sender");
            let _ = writeln!(text, "{}", wrap(&line, 6));
            continue;
        }
        let percent = flow.shares[side].percent();
        let waits = Wait::ALL.into_iter().zip(percent).filter(|(_, percent)| *percent > 0);
        let waits: Vec<_> = waits.map(|(wait, it)| format!("{} {it} %", wait.name())).collect();
        let _ = write!(line, "; time: {}", waits.join(", "));
        let _ = writeln!(text, "{}", wrap(&line, 6));
    }
    text
}

fn nanos(nanos: u64) -> String {
    quantity::show(Duration::from_nanos(nanos))
}

/// Findings with all of their text on the page, and in one line each.
const MOST_SHOWN: usize = 5;
const MOST_INFOS: usize = 5;
