//! `http://host[:port]/path?query`, as far as a load needs it.

use std::fmt;
use std::net::ToSocketAddrs;

use whimbrel_wire::Endpoint;

use crate::failure::Failure;

/// The parts of a URL that a request is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Url {
    /// Name or address, and the port if it is not 80: the value of `Host`.
    pub(crate) authority: String,
    host: String,
    port: u16,
    /// Path and query; begins with `/`.
    pub(crate) target: String,
}

impl Url {
    /// The URL, or why it is none that can be loaded.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let example = "give http://ADDRESS[:PORT]/PATH, as in http://10.9.0.1:8080/";
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                return Err(format!("{text}: there is no TLS here; {example}"));
            }
            Some((scheme, _)) => return Err(format!("scheme {scheme:?} is unknown; {example}")),
            None => text,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let target = target.split('#').next().unwrap_or_default();
        let target = if target.starts_with('/') { target.into() } else { format!("/{target}") };
        if authority.contains('@') {
            let remedy = "leave them out, and give -H 'Authorization: …'";
            return Err(format!(
                "{text:?}: a name and a password are not sent from there: {remedy}"
            ));
        }
        let (host, port) = split(authority).ok_or_else(|| format!("{text:?}: {example}"))?;
        if host.is_empty() {
            return Err(format!("{text:?}: {example}"));
        }
        let number = || port.parse().ok().filter(|port| *port > 0);
        let port = if port.is_empty() { Some(HTTP) } else { number() };
        let port = port
            .ok_or_else(|| format!("{text:?}: its port is no number from 1 to 65535; {example}"))?;
        Ok(Self { authority: authority.into(), host: host.into(), port, target })
    }

    /// Where it is: an address as it stands, a name by the system's resolver. An address of the
    /// first kind that `allowed` takes.
    pub(crate) fn resolve(&self, allowed: impl Fn(Endpoint) -> bool) -> Result<Endpoint, Failure> {
        let remedy = "give an address, as in http://10.9.0.1/";
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found =
            found.map_err(|error| Failure::run(format!("{}: {error}; {remedy}", self.host)))?;
        let mut ends = found.map(Endpoint::from);
        ends.find(|end| allowed(*end)).ok_or_else(|| {
            let text = "has no address of a family that the wire has";
            Failure::usage("URL", format!("{} {text}; {remedy}", self.host))
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.target)
    }
}

/// Host, and port if there is one; the brackets of an IPv6 address go.
fn split(authority: &str) -> Option<(&str, &str)> {
    let Some(rest) = authority.strip_prefix('[') else {
        return Some(authority.split_once(':').unwrap_or((authority, "")));
    };
    let (host, port) = rest.split_once(']')?;
    match port.strip_prefix(':') {
        Some(port) => Some((host, port)),
        None => port.is_empty().then_some((host, port)),
    }
}

/// The port of http: URLs.
const HTTP: u16 = 80;

#[cfg(test)]
mod tests;
