//! The document `whimbrel.script/1`.

use serde_json::{Value, json};
use whimbrel_io::text;
use whimbrel_script::packet::Mode;
use whimbrel_script::report::{ScriptReport, Verdict};

use super::plan::ScriptPlan;
use super::work::{Done, ScriptCounts};
use super::{ScriptTarget, seconds};
use crate::rules;

/// The document, being written.
pub(super) struct Document {
    config: Value,
    files: Vec<Value>,
}

impl Document {
    pub(super) fn new(plan: &ScriptPlan) -> Self {
        let config = json!({
            "against": match plan.against {
                ScriptTarget::Shard => "shard",
                ScriptTarget::Kernel => "kernel",
            },
            "rules": rules::document(&plan.rules),
            "mode": match plan.mode() {
                Mode::Strict => "strict",
                Mode::Semantic => "semantic",
            },
            "jobs": plan.jobs,
        });
        Self { config, files: Vec::new() }
    }

    pub(super) fn add(&mut self, done: &Done) {
        let report = ScriptReport::new(&text::path(&done.path).to_string(), &done.verdict);
        self.files.push(json!({
            "path": report.name,
            "dialect": done.dialect.name(),
            "verdict": match done.verdict {
                Verdict::Passed { .. } => "passed",
                Verdict::Failed(_) => "failed",
                Verdict::Skipped(_) => "skipped",
            },
            "rules": report.rules,
            "line": report.line,
            "expected": report.expected,
            "came": report.came,
            "packets": report.packets,
            "reasons": report.reasons,
            "warnings": report.warnings,
            "seconds": seconds(done.took),
        }));
    }

    pub(super) fn finish(self, counts: &ScriptCounts) -> Value {
        json!({
            "schema": "whimbrel.script/1",
            "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
            "config": self.config,
            "summary": {
                "passed": counts.passed,
                "by_rules": counts.by_rules,
                "failed": counts.failed,
                "skipped": counts.skipped,
                "seconds": seconds(counts.seconds),
            },
            "files": self.files,
        })
    }
}
