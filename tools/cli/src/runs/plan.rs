//! Plan of a load: its wire, and its repetitions.

use whimbrel_apps::Pace;
use whimbrel_apps::http::Limits;
use whimbrel_apps::load::{self, Repeat};
use whimbrel_wire::Endpoint;

use super::url::Url;
use crate::options::StackSetup;
use crate::shards::Work;

/// A load, its wire, and its output.
pub(crate) struct LoadRunPlan {
    /// The wire, and the rules of the stacks at its ends.
    pub(crate) setup: StackSetup,
    /// URL of the target, if it is not in this process.
    pub(crate) url: Option<Url>,
    pub(crate) target: Option<Endpoint>,
    /// The client's plan; its target is set once it is known.
    pub(crate) load: load::LoadPlan,
    /// Number of threads that share it.
    pub(crate) threads: u32,
    /// Number of runs.
    pub(crate) repeat: Repeat,
    /// The method of each request, as in `GET`.
    pub(crate) method: String,
    /// Bytes of each response of the server in this process.
    pub(crate) body: u64,
    /// Connection limits of that server.
    pub(crate) limits: Limits,
    /// At which pace it does.
    pub(crate) pace: Pace,
}

impl LoadRunPlan {
    /// Number of parts of the load, each on its own thread.
    pub(crate) fn parts(&self) -> u32 {
        self.threads.max(self.setup.shards.into())
    }
}

/// Work for shards to divide: each has at least one connection with something to do.
pub(crate) fn work(connections: u32, exchanges: Option<u64>) -> Work {
    let connections = Work { parts: connections.into(), option: "--connections" };
    match exchanges {
        Some(parts) if parts < connections.parts => Work { parts, option: "-n" },
        _ => connections,
    }
}
