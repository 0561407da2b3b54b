//! What the machine's kernel tells of itself in `/proc`.

use std::fs;

/// The first line of a file of the kernel's; empty if there is none.
pub(crate) fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().into()
}

/// The ports that the kernel draws from, the last one included.
pub(crate) fn ports() -> Option<(u16, u16)> {
    range(&first_line("/proc/sys/net/ipv4/ip_local_port_range"))
}

fn range(line: &str) -> Option<(u16, u16)> {
    let mut ports = line.split_whitespace().map(str::parse);
    Some((ports.next()?.ok()?, ports.next()?.ok()?))
}

/// Connections of this network namespace that are in TIME-WAIT, whoever their peer is.
pub(crate) fn time_wait() -> Option<u32> {
    waiting(&fs::read_to_string("/proc/net/sockstat").ok()?)
}

fn waiting(sockstat: &str) -> Option<u32> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests;
