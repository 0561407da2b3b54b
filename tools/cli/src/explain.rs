//! `whimbrel explain`: from captures to causes and settings.

use std::path::{Path, PathBuf};

use clap::Args;
use whimbrel_explain::Explainer;
use whimbrel_io::Stop;
use whimbrel_io::signals::Signals;
use whimbrel_io::text;
use whimbrel_link::filter::Filter;
use whimbrel_wire::Endpoint;

use crate::failure::Failure;
use crate::{output, streams};
use input::{Ended, Frame, Input};

mod document;
mod evidence;
mod input;
mod page;

/// The command line of `whimbrel explain`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Captures, each explained separately: pcap or pcapng of Ethernet, raw IP, loopback or Linux' cooked
    /// interfaces, also with gzip (-: standard input).
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Explain only the flow between these ends, and show where its time went, for example
    /// 10.0.0.1:40000-10.0.0.2:80.
    #[arg(long, value_name = "ADDRESS:PORT-ADDRESS:PORT", value_parser = flow)]
    flow: Option<[Endpoint; 2]>,
    /// List this many flows, those that lost most time first.
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,
    /// Explain only packets that match, in the language of `whimbrel pcap`, for example 'port 80'.
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Settle findings by counters of the host at which the capture was taken: a file with what `nstat -azj`
    /// prints there.
    #[arg(long, value_name = "FILE")]
    nstat: Option<PathBuf>,
    /// Settle findings by that host's sockets: a file with what `ss -tinmoe` prints while they last, or
    /// `ss -tinmoea` with listeners and TIME-WAIT.
    #[arg(long, value_name = "FILE")]
    ss: Option<PathBuf>,
    /// Print one JSON document (whimbrel.explain/1) instead.
    #[arg(long)]
    json: bool,
}

/// Explains each file, and prints the results. After a signal it prints those so far.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.filter.as_deref().map(str::parse::<Filter>).transpose();
    let filter = filter.map_err(|error| Failure::usage("--filter", error))?;
    let evidence = evidence::read(arguments.nstat.as_deref(), arguments.ss.as_deref())?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let mut captures = Vec::new();
    for path in &arguments.files {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => text::path(path).to_string(),
        };
        let mut explained = explain(path, &name, arguments, filter.as_ref(), &stop)?;
        explained.report.settle(&evidence);
        if !arguments.json {
            let is_first = captures.is_empty();
            let separator = if is_first { "" } else { "\n" };
            output::print(&format!("{separator}{}", page::of(&explained, arguments)))?;
        }
        captures.push(explained);
        if stop.is_set() {
            break;
        }
    }
    match arguments.json {
        true => output::print(&format!("{:#}\n", document::of(&captures))),
        false => Ok(()),
    }
}

/// A capture and its explanation.
struct Explained {
    /// Its name, as it can be printed.
    name: String,
    /// Its name without escapes, if that is text.
    file: String,
    report: whimbrel_explain::Report,
    /// Frames that the capture's statistics report as dropped.
    dropped: u64,
    /// Frames of unknown link types, and the number of the first one's.
    unknown: Option<(u64, u32)>,
    ended: Ended,
}

fn explain(
    path: &Path,
    name: &str,
    arguments: &Arguments,
    filter: Option<&Filter>,
    stop: &Stop,
) -> Result<Explained, Failure> {
    let mut input = Input::open(path, name, stop)?;
    let mut explainer = Explainer::new();
    let ended = input.read(stop, |frame| {
        let Frame::Packet(packet) = frame else { return explainer.skip_untimed() };
        let is_wanted = filter.is_none_or(|it| it.matches(packet.link_type, packet.bytes));
        let is_asked = arguments.flow.is_none_or(|ends| is_of(packet, ends));
        match is_wanted && is_asked {
            true => explainer.take(packet),
            false => explainer.skip(packet.at),
        }
    })?;
    if let Ended::Early(why) = &ended {
        streams::tell(&format!("note: {name}: {why}; explained up to there\n"));
    }
    let (dropped, unknown) = (input.dropped(), input.unknown());
    let file = match path.to_str() {
        Some("-") => name.to_owned(),
        path => path.unwrap_or(name).to_owned(),
    };
    let (name, report) = (name.to_owned(), explainer.finish());
    Ok(Explained { name, file, report, dropped, unknown, ended })
}

/// True if a packet is of the flow between these ends.
fn is_of(packet: &whimbrel_link::reader::Packet<'_>, [a, b]: [Endpoint; 2]) -> bool {
    Explainer::ends(packet).is_some_and(|ends| ends == [a, b] || ends == [b, a])
}

/// Parses two ends.
fn flow(typed: &str) -> Result<[Endpoint; 2], String> {
    let end = |text: &str| text.parse::<std::net::SocketAddr>().ok();
    let ends = typed.split_once('-').and_then(|(a, b)| end(a).zip(end(b)));
    let (a, b) = ends.ok_or("give two ends, as in 10.0.0.1:40000-10.0.0.2:80")?;
    Ok([a, b].map(|end| Endpoint::new(end.ip().into(), end.port())))
}
