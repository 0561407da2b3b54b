//! `http://host[:port]/path?query`, as far as a load needs it.

use std::fmt;

use whimbrel_apps::Destination;
use whimbrel_wire::Endpoint;

use crate::failure::Failure;
use crate::target::{self, Typed};

/// The parts of a URL that a request is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Url {
    /// Name or address, and the port if it is not 80.
    authority: String,
    /// The URL's host as the value of `Host`. RFC 6874 4: "An HTTP client, proxy, or other intermediary
    /// MUST remove any ZoneID attached to an outgoing URI, as it has only local significance at the
    /// sending host."
    pub(crate) field: String,
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
                return Err(format!("{text}: TLS is not supported; {example}"));
            }
            Some((scheme, _)) => return Err(format!("scheme {scheme:?} is unknown; {example}")),
            None => text,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        if authority.contains('@') {
            let remedy = "leave them out, and use -H 'Authorization: …'";
            return Err(format!(
                "{text:?}: a user name and password in a URL are not sent: {remedy}"
            ));
        }
        let (host, port) =
            target::split(authority).ok_or_else(|| format!("{text:?}: {example}"))?;
        if host.is_empty() {
            return Err(format!("{text:?}: {example}"));
        }
        let number = || port.parse().ok().filter(|port| *port > 0);
        let port = if port.is_empty() { Some(HTTP) } else { number() };
        let port =
            port.ok_or_else(|| format!("{text:?}: the port must be 1 to 65535; {example}"))?;
        let (addr, zone) = target::zone_of(host);
        let field = match zone {
            None => authority.into(),
            Some(_) => authority.replacen(host, addr, 1),
        };
        Ok(Self { authority: authority.into(), field, host: host.into(), port, target: path })
    }

    /// Addresses of the host: an address itself, or a name through the system's resolver. They are
    /// those that `allowed` takes, in the order of attempts; at least one.
    pub(crate) fn resolve(
        &self,
        over_kernel: bool,
        allowed: impl Fn(Endpoint) -> bool,
    ) -> Result<Vec<Destination>, Failure> {
        let example = "give an address, as in http://10.9.0.1/";
        let typed = Typed { option: "URL", example };
        let mut found = target::look_up(&self.host, self.port, over_kernel, typed)?;
        found.retain(|found| allowed(found.at));
        if found.is_empty() {
            let text = "has no address of the wire's address families";
            return Err(Failure::usage("URL", format!("{} {text}; {example}", self.host)));
        }
        Ok(found)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.target)
    }
}

/// The port of http: URLs.
const HTTP: u16 = 80;

#[cfg(test)]
mod tests;
