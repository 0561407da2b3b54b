//! What was typed, turned into what is meant.

use std::net::SocketAddr;
use std::path::PathBuf;

use whimbrel_apps::http::{CloseBy, Limits};
use whimbrel_io::WireSpec;
use whimbrel_stack::InterfaceAddress;
use whimbrel_tcp::Tunables;
use whimbrel_wire::Endpoint;

use super::{Arguments, Closer};
use crate::failure::Failure;
use crate::options;

/// The wire if none is given: the next line of the user's can be `curl http://10.9.0.2/`.
pub(crate) const DEFAULT_WIRE: &str =
    "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,addr=fd09::2/64,host=fd09::1";

/// What is meant.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The wire.
    pub(crate) wire: WireSpec,
    /// Where to listen: at least once.
    pub(crate) listen: Vec<Endpoint>,
    /// The bound of each accept queue.
    pub(crate) backlog: u32,
    /// What to serve.
    pub(crate) content: ContentPlan,
    /// The bounds of each connection.
    pub(crate) limits: Limits,
    /// The rules of the stack.
    pub(crate) tunables: Tunables,
    /// What to print.
    pub(crate) volume: Volume,
}

/// What to serve.
#[derive(Debug)]
pub(crate) enum ContentPlan {
    /// A body of this length.
    Fixed(u64),
    /// The files below this directory.
    Files {
        /// The directory.
        root: PathBuf,
        /// Whether PUT may change it.
        uploads: Uploads,
    },
}

/// Whether PUT may change files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uploads {
    /// It may.
    Allowed,
    /// 405.
    Refused,
}

/// What to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Volume {
    /// Errors.
    Quiet,
    /// The beginning and the end, and a line a second on a terminal.
    Normal,
    /// A line a second in any case.
    Verbose,
}

impl Plan {
    /// What `arguments` mean.
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let wire: WireSpec =
            arguments.wire.parse().map_err(|error| Failure::usage("--wire", error))?;
        if let WireSpec::Tun(tun) = &wire
            && tun.queues() > 1
        {
            let text = format!("queues={}: serve has one shard, give queues=1", tun.queues());
            return Err(Failure::usage("--wire", text));
        }
        Ok(Self {
            listen: listen(&arguments.listen, wire.addresses())?,
            wire,
            backlog: arguments.backlog,
            content: content(arguments),
            limits: limits(arguments),
            tunables: options::tunables(&arguments.set)
                .map_err(|error| Failure::usage("--set", error))?,
            volume: volume(arguments),
        })
    }
}

fn content(arguments: &Arguments) -> ContentPlan {
    let uploads = if arguments.upload { Uploads::Allowed } else { Uploads::Refused };
    match &arguments.file_root {
        Some(root) => ContentPlan::Files { root: root.clone(), uploads },
        None => ContentPlan::Fixed(arguments.body),
    }
}

fn limits(arguments: &Arguments) -> Limits {
    let close_by = match arguments.close {
        Closer::Server => CloseBy::Server,
        Closer::Client => CloseBy::Client,
    };
    Limits { body: arguments.max_body, close_by, ..Limits::default() }
}

fn volume(arguments: &Arguments) -> Volume {
    match (arguments.quiet, arguments.verbose) {
        (true, _) => Volume::Quiet,
        (false, true) => Volume::Verbose,
        (false, false) => Volume::Normal,
    }
}

fn listen(typed: &[String], own: &[InterfaceAddress]) -> Result<Vec<Endpoint>, Failure> {
    if typed.is_empty() {
        return Ok(own.iter().map(|own| Endpoint::new(own.addr, HTTP)).collect());
    }
    typed
        .iter()
        .map(|text| endpoint(text, own).map_err(|error| Failure::usage("--listen", error)))
        .collect()
}

fn endpoint(text: &str, own: &[InterfaceAddress]) -> Result<Endpoint, String> {
    let example = "as in 10.9.0.2:80 or [fd09::2]:80";
    let at: SocketAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no address with a port: give ADDR:PORT, {example}"))?;
    if at.port() == 0 {
        return Err(format!("{text}: port 0 cannot be listened on, give 1 to 65535"));
    }
    let own = own.iter().map(|own| own.addr);
    let end = Endpoint::from(at);
    let family = |addr: &whimbrel_wire::Address| addr.is_v4() == end.addr.is_v4();
    let ours = if end.addr.is_unspecified() {
        own.clone().any(|addr| family(&addr))
    } else {
        own.clone().any(|addr| addr == end.addr)
    };
    if !ours {
        let own: Vec<_> = own.map(|addr| addr.to_string()).collect();
        return Err(format!(
            "{at} is not an address of the wire, which has {}: listen on one of those, or add \
             addr= to --wire",
            own.join(" and ")
        ));
    }
    Ok(end)
}

/// The port of http: URLs.
const HTTP: u16 = 80;

#[cfg(test)]
mod tests;
