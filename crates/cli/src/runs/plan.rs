//! Plan of a load: over what it goes, and how often.

use whimbrel_apps::Pace;
use whimbrel_apps::http::Limits;
use whimbrel_apps::load::{self, Repeat};
use whimbrel_wire::Endpoint;

use super::url::Url;
use crate::options::StackSetup;
use crate::shards::Work;

/// What is to be loaded, over what, and how that is told.
pub(crate) struct LoadRunPlan {
    /// The wire, and the rules of the stacks at its ends.
    pub(crate) setup: StackSetup,
    /// What is loaded, if it is not in this process.
    pub(crate) url: Option<Url>,
    pub(crate) target: Option<Endpoint>,
    /// What the client does; its target is set when it is known.
    pub(crate) load: load::LoadPlan,
    /// How many threads share that.
    pub(crate) threads: u32,
    /// How often it does that.
    pub(crate) repeat: Repeat,
    /// The method of each request, as in `GET`.
    pub(crate) method: String,
    /// Octets of each response of the server in this process.
    pub(crate) body: u64,
    /// How that server goes about connections.
    pub(crate) limits: Limits,
    /// At which pace it does.
    pub(crate) pace: Pace,
}

impl LoadRunPlan {
    /// How many parts share the load, each on a thread of its own.
    pub(crate) fn parts(&self) -> u32 {
        self.threads.max(self.setup.shards.into())
    }
}

/// What shards divide: each has a connection at least, and something to do on it.
pub(crate) fn work(connections: u32, exchanges: Option<u64>) -> Work {
    let connections = Work { parts: connections.into(), option: "--connections" };
    match exchanges {
        Some(parts) if parts < connections.parts => Work { parts, option: "-n" },
        _ => connections,
    }
}
