//! Typed arguments become a plan.

use std::time::Duration;

use whimbrel_apps::proxy_header::ProxyVersion;
use whimbrel_io::WireSpec;
use whimbrel_wire::Endpoint;

use super::Arguments;
use super::server::Server;
use crate::failure::Failure;
use crate::options::{SetupParts, StackSetup};
use crate::serving::{DEFAULT_WIRE, default_wire, listen};

/// Listeners and their server.
pub(super) struct ForwardPlan {
    pub(super) setup: StackSetup,
    pub(super) listen: Vec<Endpoint>,
    pub(super) backlog: u32,
    pub(super) server: Server,
    pub(super) proxy: Option<ProxyVersion>,
    /// Time for open flows after a signal, if limited.
    pub(super) linger: Option<Duration>,
}

impl ForwardPlan {
    /// Returns the plan, or the option to change.
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let wire = match arguments.wire.as_str() {
            DEFAULT_WIRE => default_wire(),
            wire => wire,
        };
        let parts = SetupParts {
            wire,
            seed: None,
            rules: &arguments.rules,
            shorthands: &[],
            routes: &arguments.routes,
            shards: &arguments.shards,
            capture: &arguments.capture,
            trace: None,
            control: &arguments.control,
        };
        let setup = parts.setup(None, check_wire)?;
        Ok(Self {
            // Without a port of its own, the server's has no meaning here: one is always typed.
            listen: listen(&arguments.listen, &setup.wire, 0)?,
            server: Server::parse(&arguments.to, &setup.wire)?,
            setup,
            backlog: arguments.backlog,
            proxy: arguments.proxy_protocol.map(Into::into),
            linger: arguments.linger,
        })
    }
}

/// Refuses a wire without clients of other programs.
fn check_wire(wire: &WireSpec) -> Result<(), Failure> {
    let text = if wire.is_kernel() {
        "kernel: clients would have the kernel's TCP, as they have at the server: use tun:, tap:, \
         packet: or unix:"
    } else if wire.mem_link().is_some() {
        "a mem: wire connects only this process: use tun:, tap:, packet: or unix:"
    } else if wire.is_capture() {
        "a capture is read-only, so no server's data could reach its clients: use tun:, tap:, \
         packet: or unix:"
    } else {
        return Ok(());
    };
    Err(Failure::usage("--wire", text))
}
