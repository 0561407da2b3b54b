//! Where the other side of a transfer is.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use whimbrel_apps::iperf3::PORT;
use whimbrel_wire::{Endpoint, Family};

use crate::failure::Failure;

/// What `HOST[:PORT]` means: an address as it stands, a name by the system's resolver, and of its
/// addresses the first of this family.
pub(super) fn resolve(text: &str, family: Option<Family>) -> Result<Endpoint, Failure> {
    let found: Vec<SocketAddr> = match (text.parse(), bare(text)) {
        (Ok(at), _) => vec![at],
        (Err(_), Some(ip)) => vec![SocketAddr::new(ip, PORT)],
        (Err(_), None) => by_name(text)?,
    };
    let wanted =
        |at: &SocketAddr| family.is_none_or(|family| at.is_ipv4() == (family == Family::V4));
    let at = found.into_iter().find(wanted).ok_or_else(|| {
        let (option, kind) = match family {
            Some(Family::V4) => ("--ipv4", "IPv4"),
            _ => ("--ipv6", "IPv6"),
        };
        Failure::usage(
            option,
            format!("{text} has no {kind} address: leave it out, or give another"),
        )
    })?;
    match at.port() {
        0 => Err(refused(text)),
        _ => Ok(at.into()),
    }
}

/// An address without a port; one of IPv6 may have brackets.
fn bare(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(text).parse().ok()
}

fn by_name(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| refused(text))?),
        None => (text, PORT),
    };
    let letters =
        |name: &str| name.chars().all(|it| it.is_ascii_alphanumeric() || ".-_".contains(it));
    if name.is_empty() || !letters(name) {
        return Err(refused(text));
    }
    let found = (name, port).to_socket_addrs();
    found.map(Iterator::collect).map_err(|error| {
        Failure::run(format!("{name}: {error}; give an address, as in 10.9.0.1:{PORT}"))
    })
}

fn refused(text: &str) -> Failure {
    let example = "give HOST[:PORT], as in 10.9.0.1, 10.9.0.1:5201 or [fd09::1]:5201";
    Failure::usage("TARGET", format!("{text:?}: {example}"))
}

#[cfg(test)]
mod tests;
