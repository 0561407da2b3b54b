//! Address of the other side of a transfer.

use whimbrel_apps::Destination;
use whimbrel_apps::iperf3::PORT;
use whimbrel_wire::Family;

use crate::failure::Failure;
use crate::target::{self, Typed};

/// Addresses of `HOST[:PORT]`: an address itself, or a name through the system's resolver. They have
/// this family, in the order of attempts; there is at least one.
pub(super) fn resolve(
    text: &str,
    family: Option<Family>,
    over_kernel: bool,
) -> Result<Vec<Destination>, Failure> {
    let (host, port) = target::split(text).ok_or_else(|| refused(text))?;
    let port = match port {
        "" if text.ends_with(':') => return Err(refused(text)),
        "" => PORT,
        port => port.parse().ok().filter(|port| *port != 0).ok_or_else(|| refused(text))?,
    };
    let letters = |it: char| it.is_ascii_alphanumeric() || ".-_:".contains(it);
    if host.is_empty() || !target::zone_of(host).0.chars().all(letters) {
        return Err(refused(text));
    }
    let example = format!("give an address, as in 10.9.0.1:{PORT}");
    let typed = Typed { option: "TARGET", example: &example };
    let mut found = target::look_up(host, port, over_kernel, typed)?;
    found.retain(|found| {
        family.is_none_or(|family| found.at.addr.is_v4() == (family == Family::V4))
    });
    if found.is_empty() {
        let (option, kind) = match family {
            Some(Family::V4) => ("--ipv4", "IPv4"),
            _ => ("--ipv6", "IPv6"),
        };
        let text = format!("{text} has no {kind} address: leave it out, or use another name");
        return Err(Failure::usage(option, text));
    }
    Ok(found)
}

fn refused(text: &str) -> Failure {
    let example = "give HOST[:PORT], as in 10.9.0.1, 10.9.0.1:5201 or [fd09::1]:5201";
    Failure::usage("TARGET", format!("{text:?}: {example}"))
}

#[cfg(test)]
mod tests;
