//! `whimbrel serve`: an HTTP/1.1 server, or one of bytes, on the stack.

use clap::Args;
use whimbrel_io::KeySource;

use crate::capture::CaptureOption;
use crate::control::ControlOption;
use crate::failure::Failure;
use crate::options::{OutputOptions, PaceOptions, Switch};
use crate::routes::RouteOptions;
use crate::rules::{RuleOptions, Shorthand};
use crate::shards::ShardOptions;
use crate::trace::TraceOption;
use crate::{congestion, quantity, serving, size, wires};

mod plan;

/// The command line of `whimbrel serve`, as it was typed.
#[derive(Args, Debug)]
#[command(mut_arg("json", |option| option.help(JSON_HELP)))]
#[command(mut_arg("fail_if", |option| option.help(FAIL_IF_HELP)))]
pub(crate) struct Arguments {
    /// The wire.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_SERVERS, default_value = serving::DEFAULT_WIRE)]
    wire: String,
    /// Addresses to listen at.
    #[arg(short, long, value_name = "ADDR:PORT", help = LISTEN_HELP)]
    listen: Vec<String>,
    /// The most connections that wait to be accepted, per address.
    #[arg(long, value_name = "N", default_value_t = serving::BACKLOG, value_parser = quantity::whole::<u32>(1..=u32::MAX.into()))]
    backlog: u32,
    /// Accept data in SYNs (TCP Fast Open, RFC 7413), in up to N handshakes at a time per address. The
    /// network can duplicate a SYN, so the server may execute a request twice.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>(1..=u32::MAX.into()))]
    fastopen: Option<u32>,
    /// When to answer a SYN with a cookie and keep no state: auto (once the limit of half-open
    /// connections is reached), always or off [default: auto].
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "off"])]
    syncookies: Option<String>,
    #[arg(short = 'C', long, value_name = "NAME", help = congestion::help())]
    congestion: Option<String>,
    /// Share SYN cookies with a group of servers behind a load balancer that sends segments to any of
    /// them. All have the same key, 32 hexadecimal digits in a file or a variable, and clocks within 40
    /// s of each other.
    #[arg(long, value_name = "file:PATH|env:NAME")]
    cookie_group: Option<KeySource>,
    /// Answer GET of any path with this many bytes (k, M, G: powers of 1,024), and POST or PUT with the
    /// length and CRC-32 of the request body.
    #[arg(long, value_name = "SIZE", default_value = "128", value_parser = size::parse)]
    body: u64,
    /// Accept HTTP/2 as well, without TLS or Upgrade (RFC 9113 3.3), as curl --http2-prior-knowledge
    /// uses it. Other clients get HTTP/1.1.
    #[arg(long, conflicts_with = "RoleOptions")]
    h2c: bool,
    /// Append a line for each request to this file (-: standard output), in the combined log format.
    /// The server never waits for the disk: it drops and counts lines that the disk is too slow for.
    #[arg(long, value_name = "FILE", conflicts_with = "RoleOptions")]
    access_log: Option<std::path::PathBuf>,
    /// Serve the files below this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "body")]
    file_root: Option<std::path::PathBuf>,
    /// Let PUT create and replace files below the directory.
    #[arg(long, requires = "file_root")]
    upload: bool,
    /// The longest request body.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size::parse)]
    max_body: u64,
    /// Answer 408 to a request whose head takes longer. (HTTP/2: a connection without a request is
    /// closed after a minute.)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::some_time, conflicts_with = "RoleOptions")]
    head_timeout: std::time::Duration,
    /// Serve more than one request per connection, if its client asks for it.
    #[arg(long, value_enum, value_name = "SWITCH", default_value_t = Switch::On, conflicts_with = "RoleOptions")]
    keepalive: Switch,
    /// End each connection after this many requests, by Connection: close in the last response.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX), conflicts_with_all = ["RoleOptions", "h2c", "keepalive"])]
    requests_per_connection: Option<u64>,
    /// After SIGTERM, wait this long for connections to end: each with its next response, by Connection:
    /// close or GOAWAY; those between requests after a second. A second signal ends at once.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    drain: std::time::Duration,
    /// The side that closes first, and so holds the TIME-WAIT [default: server for HTTP, client for
    /// --echo and similar services].
    #[arg(long, value_enum, value_name = "WHO")]
    close: Option<Closer>,
    #[command(flatten)]
    capture: CaptureOption,
    #[command(flatten)]
    trace: TraceOption,
    #[command(flatten)]
    control: ControlOption,
    #[command(flatten)]
    shards: ShardOptions,
    #[command(flatten)]
    role: RoleOptions,
    #[command(flatten)]
    pace: PaceOptions,
    /// Seed of the stack's keys, for tests; the keys can be guessed from it [default: random].
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    #[command(flatten)]
    routes: RouteOptions,
}

impl Arguments {
    /// The options that are short for `-S`.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        let cookies = self.syncookies.as_deref().map(Shorthand::syn_cookies);
        cookies.into_iter().chain(self.congestion.as_deref().map(Shorthand::congestion)).collect()
    }
}

/// Services instead of the web: at most one of them.
#[derive(Args, Debug)]
#[group(multiple = false, conflicts_with_all = ["body", "file_root"])]
pub(crate) struct RoleOptions {
    /// Send received data back (RFC 862), by default on port 7.
    #[arg(long)]
    echo: bool,
    /// Discard received data (RFC 863), by default on port 9.
    #[arg(long)]
    discard: bool,
    /// Send characters without end (RFC 864), by default on port 19.
    #[arg(long)]
    chargen: bool,
    /// Read to the end, then send the number of bytes received, by default on port 5201.
    #[arg(long)]
    sink: bool,
    /// Answer each request of REQ bytes with RESP bytes, by default on port 12865.
    #[arg(long, value_name = "REQ,RESP", value_parser = size::pair)]
    respond: Option<(u64, u64)>,
}

/// The side that closes first.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closer {
    /// This side.
    Server,
    /// The peer.
    Client,
    /// The peer, and this side answers with a reset (not for HTTP).
    Rst,
}

/// Serves until it is interrupted.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reporter = serving::reporter(&arguments.output)?;
    serving::start(plan::new(arguments)?, reporter)
}

const JSON_HELP: &str = "Print one JSON document (whimbrel.serve/1) at the end instead of text";
const FAIL_IF_HELP: &str =
    "Exit with code 3 if this is true of the result, for example 'failed>1% || overflows>0'";
const LISTEN_HELP: &str = "Listen there: ADDR:PORT, NAME:PORT, or PORT on every address; may repeat [default: the port of what is served]";
