//! Everything that the screen shows at one moment, as a value: drawing looks at nothing else.

use std::time::Duration;

use hdrhistogram::Histogram;

/// All that the screen shows at a time.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) title: Title,
    pub(super) activity: LoadActivity,
    pub(super) connections: Connections,
    pub(super) progress: Progress,
    /// The run that is under way, and of how many.
    pub(super) run: (usize, u32),
    pub(super) rates: Rates,
    /// Latencies of this run in nanoseconds, corrected if there is a rate.
    pub(super) latency: Histogram<u64>,
    /// Answers by their status.
    pub(super) answers: Vec<(u16, u64)>,
    /// Failures by their reason.
    pub(super) errors: Vec<(&'static str, u64)>,
    /// In which states connections are, if that is known.
    pub(super) states: Option<States>,
    /// Ports to draw from, if known.
    pub(super) ports: Option<Ports>,
    /// Result of a key.
    pub(super) message: Option<Message>,
}

/// Target and options of the load, as requested.
#[derive(Clone, Debug)]
pub(super) struct Title {
    /// The request: `GET http://10.9.0.1/`.
    pub(super) whom: String,
    /// `mem:  on 2 shards`.
    pub(super) wire: String,
    /// The end of connections: `kept alive`.
    pub(super) ending: &'static str,
    /// `, 500 requests/s`, or nothing.
    pub(super) rate: String,
    /// ` corrected `, or nothing.
    pub(super) latency: &'static str,
}

/// State of sending at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoadActivity {
    Running,
    Paused,
    /// It goes, and is not measured yet.
    WarmingUp,
    /// A run is over, and the next has not begun.
    Between,
}

/// Number of wanted connections at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Connections {
    /// As it was typed.
    pub(super) typed: u32,
    /// Number wanted since by keys.
    pub(super) wanted: u32,
}

/// Progress of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// Completed exchanges, their total, and the time so far.
    Exchanges { done: u64, of: u64, elapsed: Duration },
    /// This time of that.
    Elapsed { elapsed: Duration, of: Duration },
}

/// Rates of answers, a second.
#[derive(Clone, Default, Debug)]
pub(super) struct Rates {
    /// Unit of the rates: `req/s`.
    pub(super) unit: &'static str,
    /// By quarters of a second, the latest at the end.
    pub(super) samples: Vec<u64>,
    /// Of the last second.
    pub(super) now: u64,
    /// Of the whole run.
    pub(super) mean: u64,
    /// Of the best quarter.
    pub(super) max: u64,
}

/// Number of connections in each state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct States {
    pub(super) syn_sent: u64,
    pub(super) established: u64,
    pub(super) closing: u64,
    /// None if unknown.
    pub(super) time_wait: Option<u64>,
}

/// Ports to draw from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ports {
    /// The limit, over all addresses together.
    pub(super) all: u64,
    /// Unless they are not counted.
    pub(super) in_use: Option<u64>,
    /// Exchanges that wait for one.
    pub(super) waiting: u64,
}

/// Result of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Done(String),
    Failed(String),
}

impl Progress {
    /// The share that is done, 0 to 1.
    pub(super) fn share(self) -> f64 {
        let (done, of) = match self {
            Self::Exchanges { done, of, .. } => (done as f64, of as f64),
            Self::Elapsed { elapsed, of } => (elapsed.as_secs_f64(), of.as_secs_f64()),
        };
        if of > 0.0 { (done / of).min(1.0) } else { 0.0 }
    }
}
