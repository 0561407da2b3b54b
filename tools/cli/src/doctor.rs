//! `whimbrel doctor`: capabilities of this machine, and how to get the missing ones.

use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::machine::{Finding, Machine, Verdict};
use crate::need::Need;
use crate::wrap::wrap;
use crate::{output, streams};

/// The command line of `whimbrel doctor`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print one JSON document (whimbrel.doctor/1) instead.
    #[arg(long)]
    json: bool,
}

/// Looks at everything; fails if something is missing that this user could have without root.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = Machine::look();
    let findings: Vec<_> = Need::ALL.iter().map(|need| (*need, need.judge(&machine))).collect();
    let text = match arguments.json {
        true => format!("{:#}\n", document(&findings)),
        false => findings.iter().map(|(need, finding)| line(*need, finding)).collect(),
    };
    output::print(&text)?;
    let failed = findings.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail);
    let (privileged, failed): (Vec<Need>, Vec<Need>) = failed
        .map(|(need, _)| *need)
        .partition(|need| machine.capabilities == 0 && need.is_privileged());
    let names =
        |needs: &[Need]| needs.iter().map(|need| need.name()).collect::<Vec<_>>().join(", ");
    if failed.is_empty() {
        if !privileged.is_empty() {
            let names = names(&privileged);
            streams::tell(&format!("without root, these are missing: {names}; all else works\n"));
        }
        return Ok(());
    }
    let text =
        format!("missing: {}; each line that begins with fail names its fix", names(&failed));
    Err(Failure::Missing { text, needs: &[] })
}

/// One need, for people.
fn line(need: Need, finding: &Finding) -> String {
    let Finding { verdict, found, fix } = finding;
    let fix = fix.as_ref().map_or_else(String::new, |fix| format!(". Fix: {fix}"));
    let text =
        format!("{:5} {:18} {found} ({}){fix}\n", verdict.name(), need.name(), need.purpose());
    wrap(&text, 6)
}

fn document(findings: &[(Need, Finding)]) -> Value {
    let needs = findings.iter().map(|(need, finding)| {
        json!({
            "name": need.name(),
            "verdict": finding.verdict.name(),
            "found": finding.found,
            "purpose": need.purpose(),
            "fix": finding.fix,
        })
    });
    json!({
        "schema": "whimbrel.doctor/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "needs": needs.collect::<Vec<_>>(),
    })
}
