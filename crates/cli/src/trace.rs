//! `--trace FILE`: what becomes of each connection, as lines of JSON.

use std::path::PathBuf;

use clap::Args;
use whimbrel_io::{Device, StackShard, Trace, WireSpec, text};
use whimbrel_stack::Medium;

use crate::capture::{self, CaptureOutcome};
use crate::failure::Failure;

/// The options about traces, as they were typed.
#[derive(Args, Debug)]
pub(crate) struct TraceOption {
    /// Write a line of JSON to this file whenever segments came or left and something about a connection
    /// changed: what happened, its state, that of recovery, cwnd, pipe, ssthresh, round trip and RTO, the
    /// peer's window, what the sender waits for, and how much was delivered. See docs/LONG-PATHS.md.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// A trace to be written.
#[derive(Clone, Debug)]
pub(crate) struct TracePlan {
    path: PathBuf,
    /// What becomes of it.
    pub(crate) outcome: CaptureOutcome,
}

impl TraceOption {
    /// What is meant on this wire.
    pub(crate) fn plan(&self, wire: &WireSpec) -> Result<Option<TracePlan>, Failure> {
        if self.trace.is_some() && wire.is_kernel() {
            let text =
                "the kernel's sockets are not traced: look with `ss -ti`, or give another wire";
            return Err(Failure::usage(OPTION, text));
        }
        let plan = |path| TracePlan { path, outcome: CaptureOutcome::default() };
        Ok(self.trace.clone().map(plan))
    }
}

impl TracePlan {
    /// Begins it, for each of so many shards.
    pub(crate) fn open(
        &self,
        medium: Medium,
        shards: usize,
    ) -> Result<Vec<Option<Trace>>, Failure> {
        let path = text::path(&self.path);
        let out = capture::create(&self.path).map_err(|error| {
            Failure::run(format!("{OPTION} {path}: {error}; give a file that can be written"))
        })?;
        let witness = self.outcome.witness(OPTION, path.to_string(), "trace");
        Ok(Trace::begin(witness, medium, shards, out).into_iter().map(Some).collect())
    }

    /// The same for those of a stack over a device.
    pub(crate) fn of(&self, mut shards: Vec<StackShard>) -> Result<Vec<StackShard>, Failure> {
        let Some(first) = shards.first() else { return Ok(shards) };
        let traces = self.open(first.device.capabilities().medium, shards.len())?;
        shards.iter_mut().zip(traces).for_each(|(shard, trace)| shard.trace = trace);
        Ok(shards)
    }
}

const OPTION: &str = "--trace";
