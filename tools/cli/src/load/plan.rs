//! Typed arguments become a load plan.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use whimbrel_apps::Pace;
use whimbrel_apps::http::reply::Expected;
use whimbrel_apps::http::{CloseBy, Composition, KeepAlive, Limits};
use whimbrel_apps::load::{
    self, Correction, Ending, Exchange, FastOpen, Repeat, ResponseEnd, StopCondition,
};
use whimbrel_io::{WireSpec, text};
use whimbrel_wire::{Address, Endpoint};

use super::Arguments;
use crate::failure::Failure;
use crate::options::{Closer, StackSetup, Switch};
use crate::runs::{LoadRunPlan, Url, work};

/// Returns the plan, or the option to change.
pub(super) fn new(arguments: &Arguments) -> Result<LoadRunPlan, Failure> {
    let url = arguments.url.as_deref().map(Url::parse).transpose();
    let url = url.map_err(|error| Failure::usage("URL", error))?;
    let work = work(arguments.connections, arguments.requests);
    let mut setup =
        arguments.setup.setup(arguments.url.as_deref(), &arguments.shorthands(), work)?;
    let pace = arguments.pace.pace(arguments.url.as_deref())?;
    let is_timed = arguments.requests.is_none() || arguments.warmup.is_some();
    if is_timed && arguments.rate.is_none() && pace == Pace::default() {
        setup.check_that_time_passes()?;
    }
    setup.add_addresses(&arguments.local_addr)?;
    check_fast_open(arguments, &setup)?;
    let (wire, over_kernel) = (&setup.wire, setup.wire.is_kernel());
    let found = url.as_ref().map(|url| url.resolve(over_kernel, |end| is_reachable(wire, end)));
    let destinations = found.transpose()?.unwrap_or_default();
    let close_by = match arguments.close {
        Closer::Server => CloseBy::Server,
        Closer::Client | Closer::Rst => CloseBy::Client,
    };
    Ok(LoadRunPlan {
        target: destinations.first().map(|first| first.at),
        load: load::LoadPlan { destinations, ..load_plan(arguments, url.as_ref())? },
        threads: threads(arguments, &setup.wire)?,
        setup,
        url,
        repeat: Repeat::times(arguments.repeat, arguments.gap),
        method: arguments.method.clone(),
        body: arguments.body,
        limits: Limits { close_by, keep_alive: keep_alive(arguments), ..Limits::default() },
        pace,
    })
}

/// Number of requests on a connection.
fn keep_alive(arguments: &Arguments) -> KeepAlive {
    arguments.requests_per_connection.map_or(KeepAlive::AsAsked, KeepAlive::UpTo)
}

/// Checks that connections can use Fast Open.
fn check_fast_open(arguments: &Arguments, setup: &StackSetup) -> Result<(), Failure> {
    let text = match setup.wire.is_kernel() {
        _ if !arguments.fastopen => return Ok(()),
        true if arguments.url.is_none() => {
            "over kernel: the server in this process accepts no data in SYNs: use the URL of a \
             server that does"
        }
        false if !setup.rules.tunables.fast_open_client => {
            "net.inet.tcp.fastopen.client_enable is off: turn it on, or leave this out"
        }
        _ => return Ok(()),
    };
    Err(Failure::usage("--fastopen", text))
}

/// Number of threads that share the load.
fn threads(arguments: &Arguments, wire: &WireSpec) -> Result<u32, Failure> {
    let threads = arguments.threads;
    let text = match arguments.requests {
        _ if threads == 1 => return Ok(threads),
        _ if !wire.is_kernel() => {
            "on this stack each thread is a shard with its own wire queue: use --shards, or -w \
             kernel:"
                .into()
        }
        _ if threads > arguments.connections => {
            format!("exceeds the {} --connections: use at most that many", arguments.connections)
        }
        Some(requests) if u64::from(threads) > requests => {
            format!("exceeds the {requests} requests: use at most that many")
        }
        _ => return Ok(threads),
    };
    Err(Failure::usage("--threads", format!("{threads}: {text}")))
}

/// True if the stack on this wire has an address of that family.
fn is_reachable(wire: &WireSpec, end: Endpoint) -> bool {
    let own = wire.addresses();
    own.is_empty() || own.iter().any(|own| own.addr.is_v4() == end.addr.is_v4())
}

fn load_plan(arguments: &Arguments, url: Option<&Url>) -> Result<load::LoadPlan, Failure> {
    let expected = match arguments.method.as_str() {
        "HEAD" => Expected::Empty,
        "CONNECT" => Expected::Tunnel,
        _ => Expected::Body,
    };
    let ending = match (arguments.no_keepalive, arguments.close) {
        (false, _) => Ending::KeepAlive,
        (true, Closer::Server) => Ending::Server,
        (true, Closer::Client) => Ending::Client,
        (true, Closer::Rst) => Ending::Reset,
    };
    let exchange =
        Exchange { request: request(arguments, url)?, answer: ResponseEnd::Http(expected) };
    let lasts = arguments.duration.unwrap_or(DEFAULT_DURATION);
    let plan = load::LoadPlan::new(exchange, arguments.connections, lasts);
    Ok(load::LoadPlan {
        until: arguments.requests.map_or(plan.until, StopCondition::Exchanges),
        rate: arguments.rate,
        ending,
        timeout: arguments.timeout,
        connect_timeout: arguments.connect_timeout,
        warmup: arguments.warmup.unwrap_or_default(),
        interval: arguments.interval,
        correction: match arguments.latency_correction {
            Switch::On => Correction::On,
            Switch::Off => Correction::Off,
        },
        local: arguments.local_addr.iter().map(|addr| Address::from(*addr)).collect(),
        fast_open: if arguments.fastopen { FastOpen::On } else { FastOpen::Off },
        ..plan
    })
}

fn request(arguments: &Arguments, url: Option<&Url>) -> Result<bytes::Bytes, Failure> {
    let body = match (&arguments.data, &arguments.data_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => content(path)?,
        (None, None) => Vec::new(),
    };
    let field = |text: &String| {
        let (name, value) = text.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let fields = arguments.headers.iter().map(|text| {
        field(text).ok_or_else(|| {
            let text =
                format!("{text:?} has no colon: give NAME: VALUE, as in 'Accept: text/html'");
            Failure::usage("--header", text)
        })
    });
    let composition = Composition {
        method: &arguments.method,
        target: url.map_or("/", |url| &url.target),
        host: url.map_or("whimbrel", |url| &url.field),
        fields: &fields.collect::<Result<Vec<_>, _>>()?,
        body: &body,
        persistent: !arguments.no_keepalive,
    };
    composition.compose().map_err(|error| Failure::usage("the request", error))
}

/// Contents of a file that is the body of requests: each connection sends it from memory.
fn content(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    let path = text::path(path);
    match read {
        Ok(_) if bytes.len() as u64 > LONGEST => Err(Failure::run(format!(
            "--data-file {path}: the file exceeds the limit of 256M: use a shorter one"
        ))),
        Ok(_) => Ok(bytes),
        Err(error) => {
            Err(Failure::run(format!("--data-file {path}: {error}; use a file that can be read")))
        }
    }
}

/// The most bytes of a request's body.
const LONGEST: u64 = 256 << 20;
/// As long as wrk loads by default.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
