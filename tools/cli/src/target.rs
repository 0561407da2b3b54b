//! Addresses of a target's name, in the order of attempts.

use std::fmt::Display;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use whimbrel_apps::{ConnError, Destination, interleave};
use whimbrel_wire::Endpoint;

use crate::failure::Failure;

/// A target as typed, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'t> {
    /// The option or argument that it was typed as.
    pub(crate) option: &'t str,
    /// Another that is right.
    pub(crate) example: &'t str,
}

/// Host and port of `HOST[:PORT]`, without brackets; the port is empty if there is none. `None`: brackets
/// that do not match.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let Some(rest) = text.strip_prefix('[') else {
        let is_v6 = zone_of(text).0.parse::<Ipv6Addr>().is_ok();
        return Some(text.split_once(':').filter(|_| !is_v6).unwrap_or((text, "")));
    };
    let (host, port) = rest.split_once(']')?;
    match port.strip_prefix(':') {
        Some(port) => Some((host, port)),
        None => port.is_empty().then_some((host, port)),
    }
}

/// The address in front of `%`, and the zone behind it (RFC 4007 11), which RFC 6874 had written `%25` in
/// URLs.
pub(crate) fn zone_of(host: &str) -> (&str, Option<&str>) {
    let Some((addr, zone)) = host.split_once('%') else { return (host, None) };
    let zone = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
    (addr, Some(zone))
}

/// The addresses of `host`: itself, or those from the system's resolver, with families in turn. Over
/// the kernel's sockets a zone names the interface of a link-local address; a stack of this program has
/// one link.
pub(crate) fn look_up(
    host: &str,
    port: u16,
    over_kernel: bool,
    typed: Typed<'_>,
) -> Result<Vec<Destination>, Failure> {
    let (addr, zone) = zone_of(host);
    check_zone(addr, zone, typed)?;
    let text = zone.filter(|_| over_kernel).map(|zone| format!("{addr}%{zone}"));
    let found = (text.as_deref().unwrap_or(addr), port).to_socket_addrs().map_err(
        |error| match (text.is_some(), zone) {
            (true, Some(zone)) => Failure::usage(
                typed.option,
                format!(
                    "{host}: this machine has no interface {zone:?}: give one of those that `ip \
                     link` \
                     lists"
                ),
            ),
            _ => Failure::run(format!("{host}: {error}; {}", typed.example)),
        },
    )?;
    let mut all: Vec<Destination> = Vec::new();
    for destination in found.map(destination) {
        if !all.contains(&destination) {
            all.push(destination);
        }
    }
    if over_kernel {
        all.retain(|found| found.zone != 0 || !is_link_local(found.at));
        if all.is_empty() {
            let text = "is link-local: add its interface, for example [fe80::1%eth0]";
            return Err(Failure::usage(typed.option, format!("{host} {text}")));
        }
    }
    Ok(interleave(all))
}

/// A zone belongs to a link-local address.
fn check_zone(addr: &str, zone: Option<&str>, typed: Typed<'_>) -> Result<(), Failure> {
    let Some(zone) = zone else { return Ok(()) };
    let is_right = addr.parse().is_ok_and(|addr: Ipv6Addr| addr.is_unicast_link_local());
    if is_right && !zone.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{addr}%{zone}: only a link-local address has a zone, its interface's name: for example \
         [fe80::1%eth0]"
    );
    Err(Failure::usage(typed.option, text))
}

fn destination(found: SocketAddr) -> Destination {
    let zone = match found {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    Destination { at: found.into(), zone }
}

fn is_link_local(at: Endpoint) -> bool {
    match at.addr.to_ip() {
        std::net::IpAddr::V6(v6) => v6.is_unicast_link_local(),
        std::net::IpAddr::V4(_) => false,
    }
}

/// Each address that failed, and why, as in `[::1]:80: connection refused; 127.0.0.1:80: unreachable`.
pub(crate) fn each(failed: &[(Endpoint, ConnError)]) -> String {
    let one = |(at, why): &(Endpoint, ConnError)| format!("{at}: {why}");
    failed.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The address of `target`, unless it was typed: ` at 127.0.0.1:80`.
pub(crate) fn at(at: Endpoint, target: impl Display) -> String {
    match target.to_string().contains(&at.addr.to_string()) {
        true => String::new(),
        false => format!(" at {at}"),
    }
}

#[cfg(test)]
mod tests;
