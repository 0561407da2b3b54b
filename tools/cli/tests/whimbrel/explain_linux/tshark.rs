//! Round trips and retransmissions against tshark's, and where both differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::running::{succeed, whimbrel};

/// Seconds by which a capture's times are off, where nothing but the kernel's own work is between two frames.
const JITTER: f64 = 50e-6;

/// One direction of a flow, by tshark.
#[derive(Default)]
struct Seen {
    repeated: Vec<u64>,
    out_of_order: Vec<u64>,
    least_rtt: Option<f64>,
}

/// The frames of a capture that tshark judges otherwise, with the reason; an error, if there is none.
pub(super) fn differences(file: &Path, label: &str) -> Result<String, String> {
    let seen = judge(file);
    let text = succeed(&mut whimbrel(&format!("explain --json --worst 100 {}", file.display())));
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut told = String::new();
    for flow in document["captures"][0]["flows"].as_array().unwrap() {
        let port = flow["client"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        for side in [0, 1] {
            let none = Seen::default();
            let theirs = seen.get(&(port.clone(), side)).unwrap_or(&none);
            let ours = &flow["directions"][side];
            let rtt = ours["rtt"].as_f64().map(|it| it / 1e9);
            if let (Some(own), Some(their)) = (rtt, theirs.least_rtt)
                && (own - their).abs() > (their * 0.01).max(JITTER)
            {
                return Err(format!(
                    "{label}, port {port}: least round trip {own}, by tshark {their}"
                ));
            }
            let (repeated, late) = (&theirs.repeated, &theirs.out_of_order);
            let own = ours["repeated"].as_u64().unwrap() as usize;
            let reason = match () {
                () if own == repeated.len() => continue,
                // The receiver's SACK blocks tell that they were lost; tshark goes by time alone.
                () if own == repeated.len() + late.len() => "repairs after SACK, not out of order",
                // Their IP ids tell that they were sent before, and once.
                () if label == "REORDERING" && own == 0 => "overtaken, not repeated",
                () => {
                    let counts = format!("{own} repeats, by tshark {repeated:?} and {late:?}");
                    return Err(format!("{label}, port {port}: {counts}"));
                }
            };
            let frames = if own == 0 { repeated } else { late };
            let _ = write!(told, "\n    frames {frames:?}: {reason}");
        }
    }
    Ok(told)
}

/// Retransmissions (those of SYNs apart), late segments and round trips by tshark, of each client's port and
/// direction.
fn judge(file: &Path) -> BTreeMap<(String, usize), Seen> {
    let fields = [
        "frame.number",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.flags.syn",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.ack_rtt",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-Y", "tcp", "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let text = succeed(tshark.arg("-r").arg(file));
    let mut all: BTreeMap<_, Seen> = BTreeMap::new();
    for line in text.lines() {
        let [frame, from, to, syn, repeated, late, rtt] = *line.split('\t').collect::<Vec<_>>()
        else {
            panic!("{line:?}")
        };
        let (port, side) = if to == "8080" { (from, 0) } else { (to, 1) };
        let is_syn = ["1", "True"].contains(&syn);
        let own = all.entry((port.to_owned(), side)).or_default();
        if !repeated.is_empty() && !is_syn {
            own.repeated.push(frame.parse().unwrap());
        } else if !late.is_empty() {
            own.out_of_order.push(frame.parse().unwrap());
        }
        if let Ok(rtt) = rtt.parse::<f64>() {
            let other = all.entry((port.to_owned(), 1 - side)).or_default();
            other.least_rtt = Some(other.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }
    all
}
