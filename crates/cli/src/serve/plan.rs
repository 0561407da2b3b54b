//! What was typed, turned into what is meant.

use std::net::SocketAddr;
use std::path::PathBuf;

use whimbrel_apps::Pace;
use whimbrel_apps::http::{CloseBy, KeepAlive, Limits};
use whimbrel_apps::iperf3;
use whimbrel_apps::iperf3_server::Settings;
use whimbrel_apps::peer::{Parting, Role};
use whimbrel_io::{GroupKey, WireSpec};
use whimbrel_stack::InterfaceAddress;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_wire::{Address, Endpoint};

use super::access_log::{AccessLog, is_standard_output};
use super::{Arguments, Closer, RoleOptions};
use crate::failure::Failure;
use crate::load::Switch;
use crate::options::{OutputOptions, SetupParts, StackOptions, StackSetup, answering_option};
use crate::proc;
use crate::rules::Shorthand;

/// The wire if none is given: the next line of the user's can be `curl http://10.9.0.2/`.
pub(crate) const DEFAULT_WIRE: &str =
    "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,addr=fd09::2/64,host=fd09::1";
/// The same where the kernel gives new interfaces no IPv6: an address of it would be refused.
const DEFAULT_WIRE_WITHOUT_IPV6: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";

/// [`DEFAULT_WIRE`], as this machine can have it.
pub(super) fn default_wire() -> &'static str {
    if proc::has_ipv6() { DEFAULT_WIRE } else { DEFAULT_WIRE_WITHOUT_IPV6 }
}

/// What is to be served, where, and how that is told.
#[derive(Debug)]
pub(crate) struct ServePlan {
    /// Where frames go, and by which rules.
    pub(crate) setup: StackSetup,
    /// Where to listen: at least once.
    pub(crate) listen: Vec<Endpoint>,
    /// The bound of each accept queue.
    pub(crate) backlog: u32,
    /// How many handshakes of Fast Open each listener admits at one time.
    pub(crate) fast_open: u32,
    pub(crate) content: ContentPlan,
    /// The group of servers whose handshakes it completes.
    pub(crate) group: Option<GroupKey>,
    /// The bounds of each connection.
    pub(crate) limits: Limits,
    /// At which pace it goes.
    pub(crate) pace: Pace,
    /// Where a line for each request is written, and the log once it is.
    pub(crate) access_log: Option<PathBuf>,
    pub(crate) log: Option<AccessLog>,
}

#[derive(Debug)]
pub(crate) enum ContentPlan {
    /// HTTP/1.1, or HTTP/2 by prior knowledge.
    Web(SitePlan, Protocol),
    /// Bytes, in this role.
    Octets(Role, Parting),
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
            Self::Octets(Role::Discard, _) if at.port == NETSERVER => {
                format!("whimbrel crr {at} --mode cc -w kernel:")
            }
            Self::Octets(Role::Sink | Role::Discard, _) => {
                format!("whimbrel bulk send {at} --peer plain -w kernel:")
            }
            Self::Octets(Role::Chargen, _) => {
                format!("whimbrel bulk recv {at} --peer plain -w kernel:")
            }
            Self::Iperf3(_) if at.port == iperf3::PORT => format!("iperf3 -c {}", at.addr),
            Self::Iperf3(_) => format!("iperf3 -c {} -p {}", at.addr, at.port),
            Self::Octets(Role::Echo, _) => format!("whimbrel crr {at} -w kernel:"),
            Self::Octets(Role::Respond { request, answer }, _) => {
                format!("whimbrel crr {at} -r {request},{} -w kernel:", answer.len())
            }
        }
    }

    /// The port to listen on if none is given: that of the protocol, or of the tool that has it.
    const fn port(&self) -> u16 {
        match self {
            Self::Web(..) => HTTP,
            Self::Octets(Role::Echo, _) => 7,
            Self::Octets(Role::Discard, _) => 9,
            Self::Octets(Role::Chargen, _) => 19,
            Self::Octets(Role::Sink, _) | Self::Iperf3(_) => iperf3::PORT,
            Self::Octets(Role::Respond { .. }, _) => NETSERVER,
        }
    }
}

/// What the web is served by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    /// HTTP/1.1 and nothing else.
    Http1,
    /// HTTP/2 in clear text by prior knowledge, and HTTP/1.1 at the same port.
    H2c,
}

/// What is served of the web.
#[derive(Debug)]
pub(crate) enum SitePlan {
    /// A body of this length.
    Fixed(u64),
    /// The files below this directory.
    Files {
        /// The directory that files are served from.
        root: PathBuf,
        /// Whether PUT may change it.
        uploads: Uploads,
    },
}

/// Whether PUT may change files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uploads {
    /// PUT may create and replace files.
    Allowed,
    /// PUT is answered by 405.
    Refused,
}

impl ServePlan {
    /// What was typed, if it means something on this machine; otherwise which option to change.
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        match arguments.wire.as_str() {
            DEFAULT_WIRE => Self::over(default_wire(), arguments),
            wire => Self::over(wire, arguments),
        }
    }

    fn over(wire: &str, arguments: &Arguments) -> Result<Self, Failure> {
        let setup = SetupParts {
            wire,
            seed: arguments.seed,
            rules: &arguments.rules,
            shorthands: &arguments.shorthands(),
            routes: &arguments.routes,
            shards: &arguments.shards,
            capture: &arguments.capture,
            trace: None,
        };
        let setup = setup.setup(None, check_wire)?;
        let content = content(arguments)?;
        let pace = arguments.pace.pace(None)?;
        check_pace(pace, &content)?;
        if arguments.fastopen.is_some() && setup.wire.is_kernel() {
            let why = "the kernel has its own: sysctl net.ipv4.tcp_fastopen=0x403";
            return Err(Failure::usage("--fastopen", why));
        }
        // What applications hold counts beside what the stack does: a quarter of the same bound.
        let held = setup.rules.tunables.mem_budget / 4 / u64::from(setup.shards.max(1));
        Ok(Self {
            group: group(arguments, &setup)?,
            listen: listen(&arguments.listen, &setup.wire, content.port())?,
            setup,
            backlog: arguments.backlog,
            fast_open: arguments.fastopen.unwrap_or(0),
            content,
            limits: Limits { held, ..limits(arguments) },
            pace,
            access_log: access_log(arguments)?,
            log: None,
        })
    }
}

/// Servers for another command, by what was typed after that.
pub(crate) struct OtherServer<'a> {
    pub(crate) setup: &'a StackOptions,
    pub(crate) shorthands: Vec<Shorthand>,
    pub(crate) content: ContentPlan,
    /// The port to listen on if none is given.
    pub(crate) port: u16,
    pub(crate) pace: Pace,
    /// Where to listen; without it everywhere.
    pub(crate) listen: Option<&'a str>,
    pub(crate) output: &'a OutputOptions,
}

impl ServePlan {
    /// Where it listens first.
    pub(crate) fn target(&self) -> Endpoint {
        self.listen.first().copied().unwrap_or(Endpoint::new(Address::from_v4_octets([0; 4]), 0))
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
            pace: server.pace,
            access_log: None,
            log: None,
        })
    }
}

/// Where a line for each request goes. What programs read of the standard output is not mixed with it.
fn access_log(arguments: &Arguments) -> Result<Option<PathBuf>, Failure> {
    let output = &arguments.output;
    let is_document = output.json.is_some() || output.json_stream || output.csv;
    if is_standard_output(&arguments.access_log) && is_document && output.output.is_none() {
        let text = "-: the document goes there: give a file, or the document one by -o";
        return Err(Failure::usage("--access-log", text));
    }
    Ok(arguments.access_log.clone())
}

fn check_wire(wire: &WireSpec) -> Result<(), Failure> {
    if wire.mem_link().is_some() {
        let text = "nobody but this process is on a mem: wire: `whimbrel load` and `crr` serve \
                    themselves there; give tun:, tap:, packet:, unix:, pcap: or kernel:";
        return Err(Failure::usage("--wire", text));
    }
    Ok(())
}

fn check_pace(pace: Pace, content: &ContentPlan) -> Result<(), Failure> {
    match (content, answering_option(pace)) {
        (ContentPlan::Octets(Role::Discard | Role::Chargen, _), Some(option)) => {
            let text = "--discard and --chargen answer nothing: leave it out";
            Err(Failure::usage(option, text))
        }
        (ContentPlan::Web(_, Protocol::H2c), Some("--service-rate")) => {
            let text = "only HTTP/1.1 is served at a rate: leave --h2c out";
            Err(Failure::usage("--service-rate", text))
        }
        _ => Ok(()),
    }
}

fn group(arguments: &Arguments, setup: &StackSetup) -> Result<Option<GroupKey>, Failure> {
    let Some(source) = &arguments.cookie_group else { return Ok(None) };
    let refused = |text: &str| Err(Failure::usage("--cookie-group", text));
    if setup.wire.is_kernel() {
        return refused("the kernel's sockets have keys of their own: leave it out");
    }
    if setup.rules.tunables.syn_cookies == SynCookies::Off {
        return refused("net.ipv4.tcp_syncookies is off: give --syncookies auto or always");
    }
    source.read().map(Some).map_err(|error| Failure::usage("--cookie-group", error))
}

fn content(arguments: &Arguments) -> Result<ContentPlan, Failure> {
    if let Some(role) = role(&arguments.role)? {
        let parting = match arguments.close {
            Some(Closer::Server) => Parting::First,
            None | Some(Closer::Client) => Parting::Second,
            Some(Closer::Rst) => Parting::Reset,
        };
        return Ok(ContentPlan::Octets(role, parting));
    }
    if arguments.close == Some(Closer::Rst) {
        let text = "a web server does not reset who it answered: give server or client, or serve \
                    octets with --echo or --respond";
        return Err(Failure::usage("--close", text));
    }
    let uploads = if arguments.upload { Uploads::Allowed } else { Uploads::Refused };
    let site = match &arguments.file_root {
        Some(root) => SitePlan::Files { root: root.clone(), uploads },
        None => SitePlan::Fixed(arguments.body),
    };
    let protocol = if arguments.h2c { Protocol::H2c } else { Protocol::Http1 };
    Ok(ContentPlan::Web(site, protocol))
}

fn role(options: &RoleOptions) -> Result<Option<Role>, Failure> {
    let plain = [
        (options.echo, Role::Echo),
        (options.discard, Role::Discard),
        (options.chargen, Role::Chargen),
        (options.sink, Role::Sink),
    ];
    let Some((request, answer)) = options.respond else {
        return Ok(plain.into_iter().find_map(|(asked, role)| asked.then_some(role)));
    };
    if request == 0 || !(1..=LONGEST_ANSWER).contains(&answer) {
        let text = "a request has at least one byte, and a response 1 to 16M";
        return Err(Failure::usage("--respond", text));
    }
    let answer = vec![b'a'; usize::try_from(answer).unwrap_or(0)].into();
    Ok(Some(Role::Respond { request, answer }))
}

fn limits(arguments: &Arguments) -> Limits {
    let close_by = match arguments.close {
        None | Some(Closer::Server | Closer::Rst) => CloseBy::Server,
        Some(Closer::Client) => CloseBy::Client,
    };
    let keep_alive = match (arguments.keepalive, arguments.requests_per_connection) {
        (Switch::On, None) => KeepAlive::AsAsked,
        (Switch::On, Some(most)) => KeepAlive::UpTo(most),
        (Switch::Off, _) => KeepAlive::Never,
    };
    Limits {
        body: arguments.max_body,
        head_time: arguments.head_timeout,
        close_by,
        keep_alive,
        ..Limits::default()
    }
}

fn listen(typed: &[String], wire: &WireSpec, port: u16) -> Result<Vec<Endpoint>, Failure> {
    let own = wire.addresses();
    let kernel = wire.is_kernel();
    if typed.is_empty() && kernel {
        return Ok(vec![Endpoint::new(Address::from_v4_octets([0; 4]), port)]);
    }
    if typed.is_empty() {
        return Ok(own.iter().map(|own| Endpoint::new(own.addr, port)).collect());
    }
    // The kernel knows its addresses, and says so.
    let own = (!kernel).then_some(own);
    typed
        .iter()
        .map(|text| endpoint(text, own).map_err(|error| Failure::usage("--listen", error)))
        .collect()
}

fn endpoint(text: &str, own: Option<&[InterfaceAddress]>) -> Result<Endpoint, String> {
    let example = "as in 10.9.0.2:80 or [fd09::2]:80";
    let at: SocketAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no address with a port: give ADDR:PORT, {example}"))?;
    if at.port() == 0 {
        return Err(format!("{text}: port 0 cannot be listened on, give 1 to 65535"));
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
            "{at} is not an address of the wire, which has {}: listen on one of those, or add \
             addr= to --wire",
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
pub(super) const BACKLOG: u32 = 4096;
/// The port of netperf's other side.
pub(crate) const NETSERVER: u16 = 12_865;
/// The port of http: URLs.
const HTTP: u16 = 80;
/// The longest response of `--respond`, bytes: it is kept in one piece.
const LONGEST_ANSWER: u64 = 16 << 20;

#[cfg(test)]
mod tests;
