//! Plan of a server: its contents, its ends, its pace.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::Duration;

use whimbrel_apps::Pace;
use whimbrel_apps::http::Limits;
use whimbrel_apps::iperf3;
use whimbrel_apps::iperf3_server::Settings;
use whimbrel_apps::peer::{CloseMode, Role};
use whimbrel_io::signals::Signals;
use whimbrel_io::{GroupKey, WireSpec};
use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Endpoint};

use super::access_log::AccessLog;
use crate::failure::Failure;
use crate::options::{OutputOptions, StackOptions, StackSetup};
use crate::proc;
use crate::rules::Shorthand;

/// The wire if none is given: the next line of the user's can be `curl http://10.9.0.2/`.
pub(crate) const DEFAULT_WIRE: &str =
    "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,addr=fd09::2/64,host=fd09::1";
/// The default wire if the kernel gives new interfaces no IPv6: it would refuse an address.
const DEFAULT_WIRE_WITHOUT_IPV6: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";

/// [`DEFAULT_WIRE`], as far as this machine supports it.
pub(crate) fn default_wire() -> &'static str {
    if proc::has_ipv6() { DEFAULT_WIRE } else { DEFAULT_WIRE_WITHOUT_IPV6 }
}

/// A server: its content, its addresses, and its output.
#[derive(Debug)]
pub(crate) struct ServePlan {
    /// The wire, and the settings of the stack.
    pub(crate) setup: StackSetup,
    /// Addresses to listen at: at least one.
    pub(crate) listen: Vec<Endpoint>,
    /// The bound of each accept queue.
    pub(crate) backlog: u32,
    /// Number of Fast Open handshakes that each listener admits at one time.
    pub(crate) fast_open: u32,
    pub(crate) content: ContentPlan,
    /// The group of servers whose handshakes it completes.
    pub(crate) group: Option<GroupKey>,
    /// The bounds of each connection.
    pub(crate) limits: Limits,
    /// Time for connections to end after SIGTERM; zero: none.
    pub(crate) drain: Duration,
    /// At which pace it goes.
    pub(crate) pace: Pace,
    /// File of the lines for each request, and the log once it is open.
    pub(crate) access_log: Option<PathBuf>,
    pub(crate) log: Option<AccessLog>,
}

#[derive(Debug)]
pub(crate) enum ContentPlan {
    /// HTTP/1.1, or HTTP/2 by prior knowledge.
    Web(SitePlan, Protocol),
    /// Bytes, in this role.
    Service(Role, CloseMode),
    /// Tests of iperf3's clients.
    Iperf3(Settings),
}

impl ContentPlan {
    /// A command line that talks to it at `at`.
    pub(super) fn example(&self, at: Endpoint) -> String {
        match self {
            Self::Web(_, Protocol::Http1) => format!("curl {}", url(at)),
            Self::Web(_, Protocol::H2c) => {
                format!("curl --http2-prior-knowledge {}", url(at))
            }
            Self::Service(Role::Discard, _) if at.port == NETSERVER => {
                format!("whimbrel crr {at} --mode cc -w kernel:")
            }
            Self::Service(Role::Sink | Role::Discard, _) => {
                format!("whimbrel bulk send {at} --peer plain -w kernel:")
            }
            Self::Service(Role::Chargen, _) => {
                format!("whimbrel bulk recv {at} --peer plain -w kernel:")
            }
            Self::Iperf3(_) if at.port == iperf3::PORT => format!("iperf3 -c {}", at.addr),
            Self::Iperf3(_) => format!("iperf3 -c {} -p {}", at.addr, at.port),
            Self::Service(Role::Echo, _) => format!("whimbrel crr {at} -w kernel:"),
            Self::Service(Role::Respond { request, answer }, _) => {
                format!("whimbrel crr {at} -r {request},{} -w kernel:", answer.len())
            }
        }
    }

    /// The default port to listen at: that of the protocol, or of its usual tool.
    pub(crate) const fn port(&self) -> u16 {
        match self {
            Self::Web(..) => HTTP,
            Self::Service(Role::Echo, _) => 7,
            Self::Service(Role::Discard, _) => 9,
            Self::Service(Role::Chargen, _) => 19,
            Self::Service(Role::Sink, _) | Self::Iperf3(_) => iperf3::PORT,
            Self::Service(Role::Respond { .. }, _) => NETSERVER,
        }
    }
}

/// Protocol of the web server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    /// HTTP/1.1 and nothing else.
    Http1,
    /// HTTP/2 in clear text by prior knowledge, and HTTP/1.1 at the same port.
    H2c,
}

/// Content of the web server.
#[derive(Debug)]
pub(crate) enum SitePlan {
    /// A body of this length.
    Fixed(u64),
    /// The files below this directory.
    Files {
        /// The directory that files are served from.
        root: PathBuf,
        /// Permission of PUT.
        uploads: Uploads,
    },
}

/// Permission for PUT to change files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uploads {
    /// PUT may create and replace files.
    Allowed,
    /// PUT is answered by 405.
    Refused,
}

/// A server for another command, with that command's arguments.
pub(crate) struct OtherServer<'a> {
    pub(crate) setup: &'a StackOptions,
    pub(crate) shorthands: Vec<Shorthand>,
    pub(crate) content: ContentPlan,
    /// The port to listen on if none is given.
    pub(crate) port: u16,
    pub(crate) pace: Pace,
    /// Address to listen at; any without it.
    pub(crate) listen: Option<&'a str>,
    pub(crate) output: &'a OutputOptions,
}

impl ServePlan {
    /// The first address it listens at.
    pub(crate) fn target(&self) -> Endpoint {
        self.listen.first().copied().unwrap_or(Endpoint::new(Address::from_v4_bytes([0; 4]), 0))
    }

    /// True if connections have time to end, now that one of the signals has come.
    pub(crate) fn drains(&self, signals: &Signals) -> bool {
        signals.are_termination() && !self.drain.is_zero()
    }

    /// The plan for the other side of `crr` or `bulk`.
    pub(crate) fn other(server: OtherServer<'_>) -> Result<Self, Failure> {
        let wire = server.setup.typed_wire()?.unwrap_or(default_wire());
        let setup = server.setup.parts(wire, &server.shorthands).setup(None, check_wire)?;
        let at: Vec<_> = server.listen.map(str::to_owned).into_iter().collect();
        Ok(Self {
            listen: listen(&at, &setup.wire, server.port)?,
            setup,
            backlog: BACKLOG,
            fast_open: 0,
            group: None,
            content: server.content,
            limits: Limits::default(),
            drain: Duration::ZERO,
            pace: server.pace,
            access_log: None,
            log: None,
        })
    }
}

/// Refuses a wire that no client is at.
pub(crate) fn check_wire(wire: &WireSpec) -> Result<(), Failure> {
    if wire.mem_link().is_some() {
        let text = "a mem: wire connects only this process, where load, crr and bulk start their \
                    own \
                    server: use tun:, tap:, packet:, unix:, pcap: or kernel:";
        return Err(Failure::usage("--wire", text));
    }
    Ok(())
}

/// The ends to listen at, if the wire has them; without any typed `port` of each of its addresses.
pub(crate) fn listen(
    typed: &[String],
    wire: &WireSpec,
    port: u16,
) -> Result<Vec<Endpoint>, Failure> {
    // The kernel knows its addresses, and says so.
    let own = (!wire.is_kernel()).then_some(wire.addresses());
    let everywhere = |port| match own {
        None => vec![Endpoint::new(Address::from_v4_bytes([0; 4]), port)],
        Some(own) => own.iter().map(|own| Endpoint::new(own.addr, port)).collect(),
    };
    if typed.is_empty() {
        return Ok(everywhere(port));
    }
    let ends = typed.iter().map(|text| match only_port(text) {
        Some(port) => Ok(everywhere(port)),
        None => Ok(vec![endpoint(text, own).map_err(|error| Failure::usage("--listen", error))?]),
    });
    Ok(ends.collect::<Result<Vec<_>, Failure>>()?.concat())
}

/// The port of `8080` and `:8080`.
fn only_port(text: &str) -> Option<u16> {
    text.strip_prefix(':').unwrap_or(text).parse().ok().filter(|port| *port > 0)
}

fn endpoint(text: &str, own: Option<&[InterfaceAddress]>) -> Result<Endpoint, String> {
    let refused = || {
        format!(
            "{text:?} is no address with a port: give ADDR:PORT, PORT or NAME:PORT, as in 10.9.0.2:80, \
             [fd09::2]:80 or localhost:80"
        )
    };
    let found = || text.to_socket_addrs().ok()?.next();
    let at = text.parse().ok().or_else(found).ok_or_else(refused)?;
    if at.port() == 0 {
        return Err(format!("{text}: port 0 is not valid: use 1 to 65535"));
    }
    let end = Endpoint::from(at);
    let Some(own) = own else { return Ok(end) };
    let own = own.iter().map(|own| own.addr);
    let family = |addr: &Address| addr.is_v4() == end.addr.is_v4();
    let ours = if end.addr.is_unspecified() {
        own.clone().any(|addr| family(&addr))
    } else {
        own.clone().any(|addr| addr == end.addr)
    };
    if !ours {
        let own: Vec<_> = own.map(|addr| addr.to_string()).collect();
        return Err(format!(
            "{at} is not an address of the wire, which has {}: use one of those, or add addr= to \
             --wire",
            own.join(" and ")
        ));
    }
    Ok(end)
}

/// The address as a browser takes it.
fn url(at: Endpoint) -> String {
    match (at.addr.is_v4(), at.port) {
        (true, 80) => format!("http://{}/", at.addr),
        (false, 80) => format!("http://[{}]/", at.addr),
        _ => format!("http://{at}/"),
    }
}

/// The bound of each accept queue, if none is given.
pub(crate) const BACKLOG: u32 = 4096;
/// The port of netperf's other side.
pub(crate) const NETSERVER: u16 = 12_865;
/// The port of http: URLs.
const HTTP: u16 = 80;
