//! Files of `nstat -azj` and `ss -tinmoe`: what a host says of itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use serde_json::Value;
use whimbrel_explain::{Evidence, Socket};
use whimbrel_io::text;
use whimbrel_wire::Endpoint;

use crate::failure::Failure;

/// The evidence of both files, of those that are given.
pub(super) fn read(nstat: Option<&Path>, ss: Option<&Path>) -> Result<Evidence, Failure> {
    let mut evidence = Evidence::default();
    if let Some(path) = nstat {
        let named = |error: String| Failure::run(format!("--nstat {}: {error}", text::path(path)));
        evidence.counters = contents(path).and_then(|it| counters(&it)).map_err(named)?;
    }
    if let Some(path) = ss {
        let named = |error: String| Failure::run(format!("--ss {}: {error}", text::path(path)));
        evidence.sockets = contents(path).and_then(|it| sockets(&it)).map_err(named)?;
    }
    Ok(evidence)
}

fn contents(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|it| it.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("the file cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("the file has more than {MOST_BYTES} bytes: give one with less"));
    }
    String::from_utf8(bytes).map_err(|_| "the file is no text: give the output of the tool".into())
}

/// Counters of `nstat -azj`, or of `nstat -az`: a name and a count a line.
fn counters(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let other = || "this is no output of nstat: give that of `nstat -azj`".to_owned();
    if text.trim_start().starts_with('{') {
        let document: Value = serde_json::from_str(text)
            .map_err(|error| format!("this is no output of nstat -azj: {error}; give it whole"))?;
        let counters = document.get("kernel").and_then(Value::as_object).ok_or_else(other)?;
        let counts = counters.iter().filter_map(|(name, it)| Some((name.clone(), it.as_u64()?)));
        return Ok(counts.collect());
    }
    let mut counters = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let count = words.next().zip(words.next().and_then(|word| word.parse().ok()));
        let (name, count) = count.ok_or_else(other)?;
        counters.insert(name.to_owned(), count);
    }
    if counters.is_empty() { Err(other()) } else { Ok(counters) }
}

/// Sockets of `ss -tinmoe`: a line with the ends, and details in the same or the next.
fn sockets(text: &str) -> Result<Vec<Socket>, String> {
    let mut sockets: Vec<Socket> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let Some(socket) = socket(&words) {
            sockets.push(socket);
        }
        if let Some(socket) = sockets.last_mut() {
            words.iter().for_each(|word| detail(socket, word));
        }
    }
    // Of a host without sockets the head alone is printed.
    let is_empty = text.lines().next().is_some_and(|line| line.contains("Recv-Q"));
    match sockets.is_empty() && !is_empty {
        true => Err("this is no output of ss: give that of `ss -tinmoe`, or `ss -tinmoea`".into()),
        false => Ok(sockets),
    }
}

/// `ESTAB 0 0 10.0.0.1:80 10.0.0.2:40000`, maybe behind `tcp`.
fn socket(words: &[&str]) -> Option<Socket> {
    let words = words.strip_prefix(&["tcp"]).unwrap_or(words);
    let [state, receive, send, local, peer, ..] = words else { return None };
    if !STATES.contains(state) {
        return None;
    }
    let mut socket = Socket::new((*state).to_owned(), end(local)?, end(peer)?);
    socket.queues = [receive.parse().ok()?, send.parse().ok()?];
    Some(socket)
}

/// Parses an end as ss prints it: `10.0.0.1:80`, `[fe80::1]%eth0:80`, `0.0.0.0:*`.
fn end(word: &str) -> Option<Endpoint> {
    let (host, port) = word.rsplit_once(':')?;
    let host = host.split('%').next()?.trim_matches(['[', ']']);
    let addr = if host == "*" { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { host.parse().ok()? };
    // A socket of both families shows IPv4 in IPv6.
    let addr = addr.to_canonical();
    Some(Endpoint::new(addr.into(), if port == "*" { 0 } else { port.parse().ok()? }))
}

/// Takes the time, in milliseconds, of a word such as `sndbuf_limited:780ms(38.8%)`.
fn detail(socket: &mut Socket, word: &str) {
    let Some((name, value)) = word.split_once(':') else { return };
    let place = match name {
        "busy" => &mut socket.busy,
        "rwnd_limited" => &mut socket.rwnd_limited,
        "sndbuf_limited" => &mut socket.sndbuf_limited,
        _ => return,
    };
    *place = value.split("ms").next().and_then(|millis| millis.parse().ok()).unwrap_or(*place);
}

/// Limit of a file of nstat or ss, bytes; a longer one is refused.
const MOST_BYTES: u64 = 256 << 20;
/// States, as ss names them.
const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "NEW-SYN-RECV",
];
