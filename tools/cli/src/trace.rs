//! `--trace FILE`: the course of each connection, as lines of JSON.

use std::path::PathBuf;

use clap::Args;
use whimbrel_io::{Device, StackShard, Trace, WireSpec, text};
use whimbrel_stack::Medium;

use crate::capture::{self, CaptureOutcome};
use crate::failure::Failure;
use bounded::BoundedLines;

mod bounded;

/// The options about traces, as they were typed.
#[derive(Args, Debug)]
pub(crate) struct TraceOption {
    /// Write a line of JSON to this file each time segments change a connection: the event, TCP and
    /// recovery state, cwnd, pipe, ssthresh, round trip, RTO, the peer's window, what limits the
    /// sender, and bytes delivered. See docs/LONG-PATHS.md.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// A trace to be written.
#[derive(Clone, Debug)]
pub(crate) struct TracePlan {
    path: PathBuf,
    /// True for a server: refusals are traced, and lines that the disk is too slow for are dropped.
    is_of_server: bool,
    /// Its outcome.
    pub(crate) outcome: CaptureOutcome,
}

impl TraceOption {
    /// The trace on this wire.
    pub(crate) fn plan(&self, wire: &WireSpec) -> Result<Option<TracePlan>, Failure> {
        if self.trace.is_some() && wire.is_kernel() {
            let text = "the kernel's sockets are not traced: use `ss -ti`, or another wire";
            return Err(Failure::usage(OPTION, text));
        }
        let outcome = CaptureOutcome::default();
        Ok(self.trace.clone().map(|path| TracePlan { path, is_of_server: false, outcome }))
    }
}

impl TracePlan {
    /// The trace of a server, which never waits for the disk.
    pub(crate) fn of_server(self) -> Self {
        Self { is_of_server: true, ..self }
    }

    /// Begins it, for each of `shards`.
    pub(crate) fn open(
        &self,
        medium: Medium,
        shards: usize,
    ) -> Result<Vec<Option<Trace>>, Failure> {
        let path = text::path(&self.path);
        let out = capture::create(&self.path).map_err(|error| {
            Failure::run(format!("{OPTION} {path}: {error}; use a file that can be written"))
        })?;
        let handler = self.outcome.error_handler(OPTION, path.to_string(), "trace");
        if self.is_of_server {
            let out = BoundedLines::begin(out).map_err(Failure::run)?;
            let traces = Trace::begin(handler, medium, shards, out).into_iter();
            return Ok(traces.map(|trace| Some(trace.with_refusals())).collect());
        }
        Ok(Trace::begin(handler, medium, shards, out).into_iter().map(Some).collect())
    }

    /// Adds the trace to the shards of a stack over a device.
    pub(crate) fn of(&self, mut shards: Vec<StackShard>) -> Result<Vec<StackShard>, Failure> {
        let Some(first) = shards.first() else { return Ok(shards) };
        let traces = self.open(first.device.capabilities().medium, shards.len())?;
        shards.iter_mut().zip(traces).for_each(|(shard, trace)| shard.trace = trace);
        Ok(shards)
    }
}

const OPTION: &str = "--trace";
