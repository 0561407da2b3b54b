//! `whimbrel ss`: the sockets of a running stack, with iproute2's columns, options and filters.

use clap::Args;
use serde_json::{Value, json};

use crate::attach::{Attached, HostOption};
use crate::failure::Failure;
use crate::output;
use filter::Filter;
use states::States;
use table::{Summary, Table};

mod filter;
mod info;
mod states;
mod table;
mod tokens;
mod waits;

/// Command line of `whimbrel ss`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The process, by its number, its command or the path of its control socket [default: the only one
    /// that runs]; then a filter: state NAME, sport, dport, src, dst, and, or, not, and brackets.
    #[arg(value_name = "PROCESS|FILTER")]
    words: Vec<String>,
    #[command(flatten)]
    pub(crate) host: HostOption,
    /// TCP sockets.
    #[arg(short, long)]
    tcp: bool,
    /// UDP sockets.
    #[arg(short, long)]
    udp: bool,
    /// Sockets in every state.
    #[arg(short, long)]
    all: bool,
    /// Ports as numbers, which they are in any case.
    #[arg(short, long)]
    numeric: bool,
    /// Only listeners.
    #[arg(short, long)]
    listening: bool,
    /// Timers.
    #[arg(short, long)]
    options: bool,
    /// The cookie of each flow: it stays when the flow enters TIME-WAIT.
    #[arg(short, long)]
    extended: bool,
    /// Buffers.
    #[arg(short, long)]
    memory: bool,
    /// The process.
    #[arg(short, long)]
    processes: bool,
    /// Variables of each connection.
    #[arg(short, long)]
    info: bool,
    /// Number of sockets by transport.
    #[arg(short, long)]
    summary: bool,
    /// Only IPv4.
    #[arg(short = '4', long)]
    ipv4: bool,
    /// Only IPv6.
    #[arg(short = '6', long)]
    ipv6: bool,
    /// No header line.
    #[arg(short = 'H', long)]
    no_header: bool,
    /// One line for each socket.
    #[arg(short = 'O', long)]
    oneline: bool,
    /// Drop the sockets that match, and print them: a connection is reset.
    #[arg(short = 'K', long)]
    kill: bool,
    /// Reason why each connection waits, and for how long, in words.
    #[arg(long)]
    why: bool,
    /// Every deadline of each socket.
    #[arg(long)]
    deadlines: bool,
    /// Print one JSON document (whimbrel.ss/1).
    #[arg(short, long)]
    json: bool,
}

/// Prints the requested sockets.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (process, words) = match arguments.words.split_first() {
        Some((first, rest)) if !tokens::begins_filter(first) => (Some(first.as_str()), rest),
        _ => (None, arguments.words.as_slice()),
    };
    let (states, filter) = filter::parse(words)?;
    let states = states.unwrap_or_else(|| States::of_options(arguments.all, arguments.listening));
    let mut attached = Attached::new(process, &arguments.host)?;
    let selection = Selection { arguments, states, filter };
    if arguments.kill && selection.filter.is_none() && words.is_empty() {
        let text = "it would drop every connection: add a filter, for example dst 10.0.0.1, or state \
                    all";
        return Err(Failure::usage("--kill", text));
    }
    let mut shown = match (arguments.json, arguments.summary) {
        (true, _) => Shown::Document(Vec::new()),
        (false, true) => Shown::Summary(Summary::default()),
        (false, false) => Shown::Table(Table::new(arguments, &selection.states, &attached)),
    };
    if arguments.kill {
        let mut sockets = Vec::new();
        selection.list(&mut attached, |socket| sockets.push(socket))?;
        for socket in sockets {
            if kill(&mut attached, &socket)? {
                shown.add(socket);
            }
        }
    } else {
        selection.list(&mut attached, |socket| shown.add(socket))?;
    }
    output::print(&match shown {
        Shown::Document(sockets) => format!("{:#}\n", document(&attached, &sockets)),
        Shown::Summary(summary) => summary.text(),
        Shown::Table(table) => table.text(),
    })
}

/// Text of the sockets, which are added as they come: a listing can have millions, and each takes 2 KB then.
enum Shown<'a> {
    Document(Vec<Value>),
    Summary(Summary),
    Table(Table<'a>),
}

impl Shown<'_> {
    fn add(&mut self, socket: Value) {
        match self {
            Self::Document(sockets) => sockets.push(socket),
            Self::Summary(summary) => summary.add(&socket),
            Self::Table(table) => table.add(&socket),
        }
    }
}

/// Drops a socket. False if it was gone.
fn kill(attached: &mut Attached, socket: &Value) -> Result<bool, Failure> {
    let (local, remote) = (endpoint(&socket["local"]), endpoint(&socket["remote"]));
    let (Some(local), Some(remote), "tcp") = (local, remote, field(socket, "transport")) else {
        return Ok(false);
    };
    let answer = attached.ask("close", json!({ "local": local, "remote": remote }))?;
    Ok(answer["closed"] == true)
}

/// An end as `ADDR:PORT`.
fn endpoint(end: &Value) -> Option<String> {
    let (addr, port) = (end["addr"].as_str()?, end["port"].as_u64()?);
    Some(if addr.contains(':') { format!("[{addr}]:{port}") } else { format!("{addr}:{port}") })
}

fn document(attached: &Attached, sockets: &[Value]) -> Value {
    json!({
        "schema": "whimbrel.ss/1",
        "pid": attached.pid,
        "command": attached.command,
        "sockets": sockets,
    })
}

/// Selection of the printed sockets.
struct Selection<'a> {
    arguments: &'a Arguments,
    states: States,
    filter: Option<Filter>,
}

impl Selection<'_> {
    /// Passes on each selected socket as it comes.
    fn list(&self, attached: &mut Attached, mut pass: impl FnMut(Value)) -> Result<(), Failure> {
        let Arguments { tcp, udp, info, memory, json, why, .. } = *self.arguments;
        let transport = match (tcp, udp) {
            (true, false) => "tcp",
            (false, true) => "udp",
            _ => "all",
        };
        let detail = if info || memory || json || why { "full" } else { "brief" };
        attached.list(json!({ "transport": transport, "detail": detail }), |socket| {
            if self.has(&socket) {
                pass(socket);
            }
            Ok(())
        })
    }

    fn has(&self, socket: &Value) -> bool {
        let Arguments { ipv4, ipv6, summary, .. } = *self.arguments;
        let is_ipv6 = field(&socket["local"], "addr").contains(':');
        let of_family = ipv4 == ipv6 || is_ipv6 == ipv6;
        let of_state = summary || self.states.contain(socket);
        of_family && of_state && self.filter.as_ref().is_none_or(|filter| filter.matches(socket))
    }
}

/// A text of an object.
fn field<'v>(object: &'v Value, name: &str) -> &'v str {
    object[name].as_str().unwrap_or_default()
}
