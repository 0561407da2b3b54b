//! `--control` and `--metrics`: how others look into a running command, and change it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use whimbrel_io::control::{ControlHost, ControlInfo, ControlPlace, ControlServer};
use whimbrel_io::metrics::MetricsServer;
use whimbrel_io::rules::Rules;
use whimbrel_io::{Inspect, Inspector, StackShard, WireSpec};
use whimbrel_tcp::TUNABLES;

use crate::failure::{Failure, warn};

/// The options by which others look into a running command, as they were typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ControlOption {
    /// Control socket for `whimbrel ss`, `nstat`, `netstat` and `sysctl`: a path, or off [default: its
    /// process number with .sock, in whimbrel in $XDG_RUNTIME_DIR or /run, or in /tmp/whimbrel-UID].
    #[arg(long, value_name = "PATH|off")]
    control: Option<PathBuf>,
    /// Serve counters and states to Prometheus there, at /metrics: ADDR:PORT, or PORT on 127.0.0.1.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = metrics_at)]
    metrics: Option<SocketAddr>,
}

/// A control socket and metrics to be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ControlPlan {
    place: Option<ControlPlace>,
    metrics: Option<SocketAddr>,
}

/// The servers, until they are dropped.
#[derive(Default, Debug)]
pub(crate) struct ControlServers {
    _control: Option<ControlServer>,
    _metrics: Option<MetricsServer>,
}

impl ControlOption {
    /// The control socket and the metrics of a stack on this wire.
    pub(crate) fn plan(&self, wire: &WireSpec) -> Result<ControlPlan, Failure> {
        let is_off = self.control.as_ref().is_some_and(|path| path.as_os_str() == "off");
        let refused =
            [(OPTION, self.control.is_some() && !is_off), (METRICS, self.metrics.is_some())];
        if let Some((option, _)) =
            refused.iter().find(|(_, is_given)| *is_given && wire.is_kernel())
        {
            let text = "of the kernel's sockets there is none: use the system's ss and nstat, or \
                        another wire (-w)";
            return Err(Failure::usage(option, text));
        }
        let place = match &self.control {
            _ if is_off || wire.is_kernel() => None,
            None => Some(ControlPlace::Default),
            Some(path) => Some(ControlPlace::Path(path.clone())),
        };
        Ok(ControlPlan { place, metrics: self.metrics })
    }
}

impl ControlPlan {
    /// Serves the shards of a stack over a device, until the result is dropped.
    pub(crate) fn serve(
        &self,
        rules: &Rules,
        shards: &mut [StackShard],
    ) -> Result<ControlServers, Failure> {
        self.start(rules, || {
            Ok(vec![ControlHost::new(shared(shards.iter_mut().map(StackShard::inspector)))])
        })
    }

    /// Serves the hosts that `hosts` makes. Without a typed path, a failure of the socket is only a warning.
    pub(crate) fn start(
        &self,
        rules: &Rules,
        hosts: impl FnOnce() -> Result<Vec<ControlHost>, Failure>,
    ) -> Result<ControlServers, Failure> {
        if self.place.is_none() && self.metrics.is_none() {
            return Ok(ControlServers::default());
        }
        let hosts = hosts()?;
        let metrics = self.metrics.map(|at| MetricsServer::start(at, hosts.clone())).transpose();
        let metrics = metrics.map_err(|error| Failure::run(format!("{METRICS} {error}")))?;
        let control = self.place.as_ref().map(|place| control(place, rules, hosts)).transpose()?;
        Ok(ControlServers { _control: control.flatten(), _metrics: metrics })
    }
}

fn control(
    place: &ControlPlace,
    rules: &Rules,
    hosts: Vec<ControlHost>,
) -> Result<Option<ControlServer>, Failure> {
    let command = COMMAND.get().map_or("whimbrel", String::as_str);
    let info = ControlInfo::new(command).with_origins(origins(rules));
    match (ControlServer::start(place, info, hosts), place) {
        (Ok(server), _) => Ok(Some(server)),
        (Err(error), ControlPlace::Path(_)) => Err(Failure::run(format!("{OPTION} {error}"))),
        (Err(error), ControlPlace::Default) => {
            warn(&format!("there is no control socket: {error}"));
            Ok(None)
        }
    }
}

/// The address of --metrics: a port alone is one of this machine's own.
fn metrics_at(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "use PORT, or ADDR:PORT with a numeric address of this machine".into())
}

/// The inspectors as a host's shards.
pub(crate) fn shared(inspectors: impl IntoIterator<Item = Inspector>) -> Vec<Arc<dyn Inspect>> {
    inspectors.into_iter().map(|it| Arc::new(it) as Arc<dyn Inspect>).collect()
}

/// Notes the name of the command that runs.
pub(crate) fn name_command(name: &str) {
    // The first name stays: a process runs one command.
    let _ = COMMAND.set(name.to_owned());
}

/// Origins of the values that are not defaults.
fn origins(rules: &Rules) -> Vec<(String, String)> {
    let origin = |info: &whimbrel_tcp::tunables::TunableInfo| {
        Some((info.name.text.to_owned(), rules.origin(info)?.to_string()))
    };
    TUNABLES.iter().filter_map(origin).collect()
}

static COMMAND: OnceLock<String> = OnceLock::new();
const OPTION: &str = "--control";
const METRICS: &str = "--metrics";
